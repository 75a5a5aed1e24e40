package experiment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/algorithm"
	"github.com/vernier-ml/vernier/suggest/stop"
)

// The files translate*.go are the only ones that know both the API and the words of
// search.

// errPreparing says that the algorithm still learns from the last results; there
// will be another reconcile when it has.
var errPreparing = errors.New("the algorithm learns from the last results")

// errExhausted says that nothing is left to try, ever.
var errExhausted = suggest.ErrExhausted

// propose asks the experiment's algorithm for at most n points.
func (c *Controller) propose(ctx context.Context, exp *v1beta1.Experiment, trials []*v1beta1.Trial, n int) ([]proposal, error) {
	m, kept, err := c.keptSearcher(exp)
	if err != nil {
		return nil, &fatalError{err.Error()}
	}
	study := m.study(exp, trials)
	if m.stopper != nil && exp.Spec.Objective != nil { // what stopped trials had reached is worth knowing
		of, done := c.pasts.use(exp)
		err = c.remember(ctx, exp, of, trials)
		addCurves(study, trials, of.curves)
		done()
		if err != nil {
			return nil, err
		}
	}
	if study.Warm, err = c.warm(ctx, exp, m, len(trials) == 0); err != nil {
		return nil, err
	}
	if p, ok := m.algorithm.(suggest.Preparer); ok && kept {
		learn := func(ctx context.Context) { p.Prepare(ctx, study) }
		if !m.preparing.ready(ctx, c.Now(), knowledgeOf(trials), learn, c.waker(exp)) {
			c.models.hold(exp.UID, c.Now().Add(2*prepareMost))
			return nil, errPreparing
		}
		c.models.hold(exp.UID, time.Time{})
	}
	ctx, cancel := context.WithTimeout(ctx, suggestTimeout)
	defer cancel()
	start := c.Now()
	points, err := m.algorithm.Suggest(ctx, study, n)
	name := exp.Spec.Algorithm.AlgorithmName
	c.Metrics.suggested(name, len(points), err, c.Now().Sub(start))
	if err != nil {
		return nil, fmt.Errorf("algorithm %q: %w", name, err)
	}
	out := make([]proposal, len(points))
	for i, p := range points {
		out[i].meta, out[i].resource, out[i].why = p.Meta, p.Resource, p.Why
		if p.Fallback != "" {
			c.Metrics.fellBack(name, p.Fallback)
		}
		for _, a := range m.words.Assignments(p.Point) {
			out[i].assignments = append(out[i].assignments, v1beta1.ParameterAssignment{Name: a.Name, Value: a.Value})
		}
	}
	return out, nil
}

// point is one of a curve that is kept.
type point = suggest.Sample

// searcher is what searches for one experiment.
type searcher struct {
	space     suggest.Space
	words     wording
	algorithm suggest.Algorithm
	stopper   suggest.Stopper // nil: no early stopping
	preparing preparing
}

func newSearcher(spec *v1beta1.ExperimentSpec) (*searcher, error) {
	space, words, err := spaceOf(spec)
	if err != nil {
		return nil, fmt.Errorf("spec.parameters: %w", err)
	}
	m := &searcher{space: space, words: words}
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
	m, _, err := c.keptSearcher(exp)
	return m, err
}

// keptSearcher also says whether the next question meets the same one.
func (c *Controller) keptSearcher(exp *v1beta1.Experiment) (*searcher, bool, error) {
	return c.models.get(exp, c.Now(), func() (*searcher, error) { return newSearcher(&exp.Spec) })
}

// hopeless are the running trials that the early stopping rule stops, and why.
func (m *searcher) hopeless(exp *v1beta1.Experiment, trials []*v1beta1.Trial, curves ...map[types.UID][]suggest.Sample) []verdict {
	s := m.study(exp, trials)
	byNumber := addCurves(s, trials, curves...)
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

// addCurves gives the trials of a study their curves, and returns whose they are.
func addCurves(s suggest.Study, trials []*v1beta1.Trial, curves ...map[types.UID][]suggest.Sample) map[int]*v1beta1.Trial {
	byNumber := map[int]*v1beta1.Trial{}
	for _, t := range trials {
		if n, ok := t.Number(); ok {
			byNumber[n] = t
		}
	}
	for i := range s.Trials {
		for _, some := range curves {
			if curve, ok := some[byNumber[s.Trials[i].Number].UID]; ok {
				s.Trials[i].Curve = curve
			}
		}
	}
	return byNumber
}

// remember reads the curves of trials that have ended, each once.
func (c *Controller) remember(ctx context.Context, exp *v1beta1.Experiment, of *past[point], trials []*v1beta1.Trial) error {
	for _, t := range trials {
		if _, known := of.curves[t.UID]; known || !ended(stateOf(t)) {
			continue
		}
		read, err := c.read(ctx, exp, t)
		if err != nil {
			return err
		}
		c.pasts.keep(of, t.UID, samples(read))
	}
	return nil
}

// live reads the curves of trials that run.
func (c *Controller) live(ctx context.Context, exp *v1beta1.Experiment, trials []*v1beta1.Trial) (map[types.UID][]suggest.Sample, error) {
	out := map[types.UID][]suggest.Sample{}
	for _, t := range trials {
		if stateOf(t) != v1beta1.TrialRunning {
			continue
		}
		read, err := c.read(ctx, exp, t)
		if err != nil {
			return nil, err
		}
		out[t.UID] = samples(read)
	}
	return out, nil
}

func samples(curve []sample) []suggest.Sample {
	out := make([]suggest.Sample, len(curve))
	for i, p := range curve {
		out[i] = suggest.Sample{Step: p.step, Value: p.value}
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

// knownAlgorithm bounds a metric's label: users choose the names.
func knownAlgorithm(name string) string {
	if _, ok := algorithm.Get(name); ok {
		return name
	}
	return "unknown"
}
