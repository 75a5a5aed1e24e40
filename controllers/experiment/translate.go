package experiment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/algorithm"
	"github.com/vernier-ml/vernier/suggest/stop"
)

// This file is the only one that knows both the API and the words of search.

// errExhausted says that nothing is left to try, ever.
var errExhausted = suggest.ErrExhausted

// propose asks the experiment's algorithm for at most n points.
func (c *Controller) propose(ctx context.Context, exp *v1beta1.Experiment, trials []*v1beta1.Trial, n int) ([]proposal, error) {
	m, err := c.searcher(exp)
	if err != nil {
		return nil, &fatalError{err.Error()}
	}
	ctx, cancel := context.WithTimeout(ctx, suggestTimeout)
	defer cancel()
	start := c.Now()
	points, err := m.algorithm.Suggest(ctx, studyOf(exp, m.space, trials), n)
	name := exp.Spec.Algorithm.AlgorithmName
	c.Metrics.suggested(name, len(points), err, c.Now().Sub(start))
	if err != nil {
		return nil, fmt.Errorf("algorithm %q: %w", name, err)
	}
	out := make([]proposal, len(points))
	for i, p := range points {
		out[i].meta, out[i].resource = p.Meta, p.Resource
		if p.Fallback != "" {
			c.Metrics.fellBack(name, p.Fallback)
		}
		for _, a := range m.space.Assignments(p.Point) {
			out[i].assignments = append(out[i].assignments, v1beta1.ParameterAssignment{Name: a.Name, Value: a.Value})
		}
	}
	return out, nil
}

// searcher is what searches for one experiment.
type searcher struct {
	space     suggest.Space
	algorithm suggest.Algorithm
	stopper   suggest.Stopper // nil: no early stopping
	// past holds the curves of trials that have ended.
	past map[types.UID][]sample
}

func newSearcher(spec *v1beta1.ExperimentSpec) (*searcher, error) {
	space, err := spaceOf(spec)
	if err != nil {
		return nil, fmt.Errorf("spec.parameters: %w", err)
	}
	m := &searcher{space: space, past: map[types.UID][]sample{}}
	if m.algorithm, err = algorithmOf(spec, space); err != nil {
		return nil, fmt.Errorf("spec.algorithm: %w", err)
	}
	if m.stopper, err = stopperOf(spec); err != nil {
		return nil, fmt.Errorf("spec.earlyStopping: %w", err)
	}
	return m, nil
}

// searcher is the experiment's, which must be valid.
func (c *Controller) searcher(exp *v1beta1.Experiment) (*searcher, error) {
	return c.models.get(exp, func() (*searcher, error) { return newSearcher(&exp.Spec) })
}

// hopeless are the running trials that the early stopping rule stops, and why.
func (m *searcher) hopeless(exp *v1beta1.Experiment, trials []*v1beta1.Trial, curves map[types.UID][]sample) []verdict {
	s := studyOf(exp, m.space, trials)
	byNumber := map[int]*v1beta1.Trial{}
	for _, t := range trials {
		if n, ok := t.Number(); ok {
			byNumber[n] = t
		}
	}
	for i := range s.Trials {
		for _, p := range curves[byNumber[s.Trials[i].Number].UID] {
			s.Trials[i].Curve = append(s.Trials[i].Curve, suggest.Sample{Step: p.step, Value: p.value})
		}
	}
	var out []verdict
	for _, t := range s.Trials {
		trial := byNumber[t.Number]
		if t.State != suggest.Running || askedToStop(trial) {
			continue
		}
		if stop, why := m.stopper.Stop(s, t); stop {
			out = append(out, verdict{trial: trial, why: exp.Spec.EarlyStopping.AlgorithmName + ": " + why})
		}
	}
	return out
}

func stopperOf(spec *v1beta1.ExperimentSpec) (suggest.Stopper, error) {
	e := spec.EarlyStopping
	if e == nil {
		return nil, nil
	}
	known, ok := stop.Get(e.AlgorithmName)
	if !ok {
		return nil, fmt.Errorf("there is no rule %q; use one of %s", e.AlgorithmName, strings.Join(stop.Names(), ", "))
	}
	var settings suggest.Settings
	for _, s := range e.AlgorithmSettings {
		settings = append(settings, suggest.Setting{Name: s.Name, Value: s.Value})
	}
	return known.New(settings)
}

func spaceOf(spec *v1beta1.ExperimentSpec) (suggest.Space, error) {
	params := make([]suggest.ParameterSpec, len(spec.Parameters))
	for i, p := range spec.Parameters {
		params[i] = suggest.ParameterSpec{
			Name: p.Name, Kind: suggest.Kind(p.ParameterType),
			Min: p.FeasibleSpace.Min, Max: p.FeasibleSpace.Max, Step: p.FeasibleSpace.Step,
			List: p.FeasibleSpace.List, Distribution: suggest.Distribution(p.FeasibleSpace.Distribution),
		}
		if p.When != nil {
			params[i].When = &suggest.When{Parameter: p.When.Parameter, In: p.When.In}
		}
	}
	space, err := suggest.NewSpace(params)
	if err != nil {
		return space, err
	}
	return space.WithConstraints(spec.ParameterConstraints)
}

// pointOf is the point that assignments stand for; ok is false when it is not in
// the space.
func pointOf(space suggest.Space, assignments []v1beta1.ParameterAssignment) (p suggest.Point, ok bool) {
	assigned := make([]suggest.Assignment, len(assignments))
	for i, a := range assignments {
		assigned[i] = suggest.Assignment{Name: a.Name, Value: a.Value}
	}
	return space.Parse(assigned)
}

func algorithmOf(spec *v1beta1.ExperimentSpec, space suggest.Space) (suggest.Algorithm, error) {
	if spec.Algorithm == nil || spec.Algorithm.AlgorithmName == "" {
		return nil, errors.New("no algorithm is named")
	}
	known, ok := algorithm.Get(spec.Algorithm.AlgorithmName)
	if !ok {
		return nil, fmt.Errorf("there is no algorithm %q; use one of %s", spec.Algorithm.AlgorithmName, strings.Join(Algorithms{}.Names(), ", "))
	}
	settings := settingsOf(spec)
	named := slices.ContainsFunc(settings, func(s suggest.Setting) bool { return s.Name == "resource_name" })
	switch {
	case known.Name == "pbt" || known.Name == "pb2":
		return nil, fmt.Errorf("%s copies checkpoints between trials, which experiments cannot do yet; use it through vernier optimize, or another algorithm", known.Name)
	case known.MultiFidelity && !named:
		return nil, fmt.Errorf("%s needs the setting resource_name: the parameter, such as the number of epochs, that says how long a trial trains", known.Name)
	}
	return known.New(space, settings)
}

func settingsOf(spec *v1beta1.ExperimentSpec) suggest.Settings {
	var settings suggest.Settings
	for _, s := range spec.Algorithm.AlgorithmSettings {
		settings = append(settings, suggest.Setting{Name: s.Name, Value: s.Value})
	}
	return settings
}

// studyOf is what is known of an experiment.
func studyOf(exp *v1beta1.Experiment, space suggest.Space, trials []*v1beta1.Trial) suggest.Study {
	s := suggest.Study{Space: space, Seed: seedOf(exp), Trials: make([]suggest.Trial, 0, len(trials))}
	obj := exp.Spec.Objective
	if obj != nil {
		s.Objectives = []suggest.Objective{{
			Name: obj.ObjectiveMetricName, Direction: suggest.Direction(obj.Type), Goal: obj.Goal,
		}}
	}
	if exp.Spec.MaxTrialCount != nil {
		s.Budget = int(*exp.Spec.MaxTrialCount)
	}
	if exp.Spec.ParallelTrialCount != nil {
		s.Parallel = int(*exp.Spec.ParallelTrialCount)
	}
	for _, i := range exp.Spec.InitialTrials {
		if p, ok := pointOf(space, i.ParameterAssignments); ok {
			s.Initial = append(s.Initial, p)
		}
	}
	for _, t := range trials {
		n, ok := t.Number()
		if !ok {
			continue // made by hand, and not ours to learn from
		}
		s.Trials = append(s.Trials, trialOf(obj, space, t, n))
	}
	return s
}

func trialOf(obj *v1beta1.ObjectiveSpec, space suggest.Space, t *v1beta1.Trial, n int) suggest.Trial {
	out := suggest.Trial{Number: n, State: searchState(stateOf(t))}
	out.Point, _ = pointOf(space, t.Spec.ParameterAssignments)
	if text := t.Annotations[v1beta1.AnnotationMeta]; text != "" {
		// What cannot be read was not written by us: the algorithm does without.
		_ = json.Unmarshal([]byte(text), &out.Meta)
	}
	if text := t.Annotations[v1beta1.AnnotationResource]; text != "" {
		out.Resource, _ = strconv.ParseFloat(text, 64) // the same
	}
	if obj == nil || out.State != suggest.Succeeded && out.State != suggest.Pruned {
		return out
	}
	value, ok := objectiveValue(obj, t.Status.Observation)
	switch {
	case ok:
		out.Values = []float64{value}
	case out.State == suggest.Succeeded:
		// It ran to its end, but what it reported is no finite number.
		out.State = suggest.Unmeasured
	}
	return out
}

func searchState(state v1beta1.TrialConditionType) suggest.State {
	switch state {
	case v1beta1.TrialRunning:
		return suggest.Running
	case v1beta1.TrialSucceeded:
		return suggest.Succeeded
	case v1beta1.TrialEarlyStopped:
		return suggest.Pruned
	case v1beta1.TrialFailed:
		return suggest.Failed
	case v1beta1.TrialMetricsUnavailable:
		return suggest.Unmeasured
	case v1beta1.TrialKilled:
		return suggest.Killed
	default:
		return suggest.Pending
	}
}

// seedOf is the experiment's seed, else a hash of its UID.
func seedOf(exp *v1beta1.Experiment) uint64 {
	if exp.Spec.Seed != nil {
		return uint64(*exp.Spec.Seed)
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(exp.UID)) // never fails
	return h.Sum64()
}

// knownAlgorithm bounds a metric's label: users choose the names.
func knownAlgorithm(name string) string {
	if _, ok := algorithm.Get(name); ok {
		return name
	}
	return "unknown"
}

// Algorithms tells the admission webhook what experiments may name.
type Algorithms struct{}

// Names of the search algorithms, sorted.
func (Algorithms) Names() []string {
	var names []string
	for _, r := range algorithm.All() {
		names = append(names, r.Name)
	}
	return names
}

// StopperNames of the early stopping rules, sorted.
func (Algorithms) StopperNames() []string { return stop.Names() }

// Check constructs the algorithm that spec names and says what is wrong with
// its settings or with the search space.
func (Algorithms) Check(spec *v1beta1.ExperimentSpec) field.ErrorList {
	space, err := spaceOf(spec)
	if err != nil {
		return spaceErrors(spec, err)
	}
	errs := initialErrors(spec, space)
	if _, err := algorithmOf(spec, space); err != nil {
		errs = append(errs, settingErrors(spec, err)...)
	}
	return errs
}

// CheckStopper constructs the early stopping rule that spec names and says what
// is wrong with its settings.
func (Algorithms) CheckStopper(spec *v1beta1.ExperimentSpec) (errs field.ErrorList) {
	_, err := stopperOf(spec)
	if err == nil {
		return nil
	}
	at := field.NewPath("spec", "earlyStopping", "algorithmSettings")
	for _, e := range flatten(err) {
		where := at
		var setting *suggest.SettingError
		if errors.As(e, &setting) {
			for i, s := range spec.EarlyStopping.AlgorithmSettings {
				if s.Name == setting.Name {
					where = at.Index(i)
				}
			}
		}
		errs = append(errs, field.Invalid(where, field.OmitValueType{}, e.Error()))
	}
	return errs
}

func initialErrors(spec *v1beta1.ExperimentSpec, space suggest.Space) (errs field.ErrorList) {
	for i, t := range spec.InitialTrials {
		if _, ok := pointOf(space, t.ParameterAssignments); !ok {
			at := field.NewPath("spec", "initialTrials").Index(i).Child("parameterAssignments")
			errs = append(errs, field.Invalid(at, field.OmitValueType{},
				"is not in the search space: give each active parameter one of its values, and no other names"))
		}
	}
	return errs
}

func spaceErrors(spec *v1beta1.ExperimentSpec, err error) field.ErrorList {
	at := field.NewPath("spec", "parameters")
	var problems suggest.SpaceError
	var list field.ErrorList
	if !errors.As(err, &problems) {
		return constraintErrors(spec, err)
	}
	for _, p := range problems {
		where := at.Index(p.Index)
		switch p.Field {
		case "name":
			where = where.Child("name")
		case "when":
			where = where.Child("when")
		case "kind":
			where = where.Child("parameterType")
		default:
			where = where.Child("feasibleSpace", p.Field)
		}
		list = append(list, field.Invalid(where, field.OmitValueType{}, p.Problem))
	}
	return list
}

func constraintErrors(spec *v1beta1.ExperimentSpec, err error) (list field.ErrorList) {
	at := field.NewPath("spec", "parameterConstraints")
	for _, e := range flatten(err) {
		where := at
		var c *suggest.ConstraintError
		if errors.As(e, &c) {
			where = at.Index(slices.Index(spec.ParameterConstraints, c.Text))
		}
		list = append(list, field.Invalid(where, field.OmitValueType{}, e.Error()))
	}
	return list
}

func settingErrors(spec *v1beta1.ExperimentSpec, err error) field.ErrorList {
	at := field.NewPath("spec", "algorithm", "algorithmSettings")
	var list field.ErrorList
	for _, e := range flatten(err) {
		var setting *suggest.SettingError
		if !errors.As(e, &setting) {
			list = append(list, field.Invalid(field.NewPath("spec", "algorithm"), spec.Algorithm.AlgorithmName, e.Error()))
			continue
		}
		where, value := at, ""
		for i, s := range spec.Algorithm.AlgorithmSettings {
			if s.Name == setting.Name {
				where, value = at.Index(i), s.Value
			}
		}
		list = append(list, field.Invalid(where, value, setting.Error()))
	}
	return list
}
