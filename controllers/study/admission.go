package study

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/algorithm"
	"github.com/vernier-ml/vernier/suggest/architecture"
	"github.com/vernier-ml/vernier/suggest/fidelity"
	"github.com/vernier-ml/vernier/suggest/propose"
	"github.com/vernier-ml/vernier/suggest/stop"
)

// Algorithms are the names of the search algorithms, sorted.
func Algorithms() []string {
	var names []string
	for _, r := range algorithm.All() {
		names = append(names, r.Name)
	}
	return names
}

// KnownAlgorithm says whether there is an algorithm of that name.
func KnownAlgorithm(name string) bool {
	_, ok := algorithm.Get(name)
	return ok
}

// StoppingRules are the names of the early stopping rules, sorted.
func StoppingRules() []string { return stop.Names() }

// Learns says whether results change what the algorithm proposes. One that is not
// known is not blamed for this.
func Learns(name string) bool {
	known, ok := algorithm.Get(name)
	return !ok || known.Adaptive
}

// FirstObjective says whether the algorithm goes by the first of several
// objectives.
func FirstObjective(a *v1beta1.AlgorithmSpec) bool {
	known, ok := registered(a)
	return ok && known.FirstObjective
}

// registered is the algorithm that is named, as it is with its settings.
func registered(a *v1beta1.AlgorithmSpec) (propose.Registration, bool) {
	return algorithm.GetWith(a.AlgorithmName, settingsOf(a.AlgorithmSettings))
}

// CheckRepeats says what is wrong with a spec that asks for repeats: they are made for
// one objective, and by algorithms that search, with trials that are whole.
func CheckRepeats(spec *v1beta1.ExperimentSpec) *field.Error {
	if spec.Repeats != v1beta1.RepeatAuto || spec.Algorithm == nil {
		return nil
	}
	path := field.NewPath("spec", "repeats")
	known, ok := registered(spec.Algorithm)
	switch {
	case len(spec.AllObjectives()) > 1:
		return field.Invalid(path, spec.Repeats, "repeats are for one objective, and there are several: remove it")
	case ok && (known.MultiFidelity || known.Repeats):
		return field.Invalid(path, spec.Repeats, known.Name+" has trials of its own that repeat points: remove it, or use another algorithm, such as auto")
	case ok && !algorithm.Repeatable(known):
		return field.Invalid(path, spec.Repeats, known.Name+" tries each of its points once: remove it, make the seed a parameter to measure all of them several times, or use another algorithm, such as auto")
	case !ok:
		return field.Invalid(path, spec.Repeats, "the algorithm is not one of Vernier's: remove it")
	}
	return nil
}

// DoubtfulBudget says that auto cannot make trials short with so few of them.
func DoubtfulBudget(spec *v1beta1.ExperimentSpec) (warnings []string) {
	budget, parallel := int(ptr.Deref(spec.MaxTrialCount, 0)), int(ptr.Deref(spec.ParallelTrialCount, 1))
	if a := spec.Algorithm; budget == 0 || a == nil || a.AlgorithmName != "auto" || !fidelity.Shortens(settingsOf(a.AlgorithmSettings)) {
		return nil
	}
	least := ShortFrom(spec)
	if budget >= least {
		return nil
	}
	todo := fmt.Sprintf("make the experiment again with a maxTrialCount of at least %d", least)
	if fewer := parallel - (least - budget); fewer > 0 {
		todo += fmt.Sprintf(", or a parallelTrialCount of %d", fewer)
	}
	return []string{fmt.Sprintf("spec.maxTrialCount: %d trials, %d at a time, are too few for short ones, so all will be whole: %s", budget, parallel, todo)}
}

// DoubtfulResources says which resources of the settings no trial can have, as the parameter for
// them does not reach so far, and whether it has no room for short trials. Katib does not look at
// its range.
func DoubtfulResources(spec *v1beta1.ExperimentSpec) (warnings []string) {
	space, _, err := spaceOf(spec)
	if spec.Algorithm == nil || ProposedByService(spec) || err != nil {
		return nil
	}
	settings := spec.Algorithm.AlgorithmSettings
	at := slices.IndexFunc(settings, func(s v1beta1.AlgorithmSetting) bool { return s.Name == "resource_name" })
	if at < 0 {
		return nil
	}
	i, ok := space.Index(settings[at].Value)
	if !ok {
		return nil
	}
	p := space.At(i)
	path := field.NewPath("spec", "algorithm", "algorithmSettings")
	if why := fidelity.WholeOnly(space, settingsOf(settings)); why != "" {
		warnings = append(warnings, fmt.Sprintf("%s: %s", path.Index(at), why))
	}
	for k, s := range settings {
		path := path.Index(k)
		x, err := strconv.ParseFloat(s.Value, 64)
		switch asked := slices.Contains([]string{"r_l", "r_max", "r_min"}, s.Name) && err == nil; {
		case asked && x > p.Max():
			warnings = append(warnings, fmt.Sprintf("%s: %s is %s, but %s is at most %g, so no trial gets more: raise its max", path, s.Name, s.Value, p.Name(), p.Max()))
		case asked && x < p.Min():
			warnings = append(warnings, fmt.Sprintf("%s: %s is %s, but %s is at least %g, so no trial gets less: lower its min", path, s.Name, s.Value, p.Name(), p.Min()))
		}
	}
	return warnings
}

// ShortFrom is the smallest maxTrialCount with which auto makes trials short; 0: none.
func ShortFrom(spec *v1beta1.ExperimentSpec) int {
	space, _, err := spaceOf(spec)
	if err != nil {
		return 0
	}
	return fidelity.ShortFrom(space, settingsOf(spec.Algorithm.AlgorithmSettings), int(ptr.Deref(spec.ParallelTrialCount, 1)))
}

// Check constructs the algorithm that spec names and says what is wrong with
// its settings or with the search space.
func Check(spec *v1beta1.ExperimentSpec) field.ErrorList {
	space, codec, err := spaceOf(spec)
	if err != nil {
		return spaceErrors(spec, err)
	}
	errs := append(initialErrors(spec, codec), warmErrors(spec, space)...)
	_, err = algorithmOf(spec, space)
	return append(errs, settingErrors(field.NewPath("spec", "algorithm"), spec.Algorithm.AlgorithmName, settingsOf(spec.Algorithm.AlgorithmSettings), err)...)
}

// ProposedByService says that a service, which the configuration names, proposes the
// trials, and not an algorithm of this program.
func ProposedByService(spec *v1beta1.ExperimentSpec) bool {
	return spec.Algorithm != nil && spec.Algorithm.AlgorithmName != "" && !KnownAlgorithm(spec.Algorithm.AlgorithmName)
}

// CheckStopping constructs the early stopping rule that spec names and says what
// is wrong with its settings.
func CheckStopping(spec *v1beta1.ExperimentSpec) field.ErrorList {
	_, err := stopperOf(spec)
	if err == nil {
		return nil
	}
	rule := spec.EarlyStopping
	return settingErrors(field.NewPath("spec", "earlyStopping"), rule.AlgorithmName, settingsOf(rule.AlgorithmSettings), err)
}

func initialErrors(spec *v1beta1.ExperimentSpec, codec codec) (errs field.ErrorList) {
	ids := map[string]bool{}
	for i, t := range spec.InitialTrials {
		if t.ID != "" && ids[t.ID] {
			errs = append(errs, field.Duplicate(field.NewPath("spec", "initialTrials").Index(i).Child("id"), t.ID))
		}
		ids[t.ID] = true
		if _, ok := pointOf(codec, t.ParameterAssignments); !ok {
			at := field.NewPath("spec", "initialTrials").Index(i).Child("parameterAssignments")
			errs = append(errs, field.Invalid(at, field.OmitValueType{}, "is not in the search space: "+misfit(spec, codec, t.ParameterAssignments)))
		}
	}
	return errs
}

func warmErrors(spec *v1beta1.ExperimentSpec, space suggest.Space) (errs field.ErrorList) {
	for i, w := range spec.WarmStartFrom {
		for j, a := range w.ParameterAssignments {
			at := field.NewPath("spec", "warmStartFrom").Index(i).Child("parameterAssignments").Index(j)
			k, known := space.Index(a.Name)
			if !known {
				errs = append(errs, field.Invalid(at.Child("name"), a.Name, "is no parameter of this experiment; correct or remove it"))
			} else if _, ok := space.At(k).Parse(a.Value); !ok {
				errs = append(errs, field.Invalid(at.Child("value"), a.Value, "must be "+space.At(k).Allowed()))
			}
		}
	}
	return errs
}

// misfit says what of an initial trial, which the space does not contain, does
// not fit, and what to do.
func misfit(spec *v1beta1.ExperimentSpec, codec codec, assignments []v1beta1.ParameterAssignment) string {
	space, plain := codec.(suggest.Space)
	if !plain {
		return "give each parameter of the architecture one of its values, and no other names"
	}
	given := map[string]string{}
	for _, a := range assignments {
		if _, known := space.Index(a.Name); !known {
			return fmt.Sprintf("%q is no parameter; correct or remove it", a.Name)
		}
		if _, twice := given[a.Name]; twice {
			return fmt.Sprintf("%q has two values; remove one", a.Name)
		}
		given[a.Name] = a.Value
	}
	p, _ := pointOf(codec, assignments)
	active := space.Active(p)
	for i, v := range p {
		parameter := space.At(i)
		value, found := given[parameter.Name()]
		switch {
		case active[i] && !found:
			return fmt.Sprintf("%q has no value; it must be %s", parameter.Name(), parameter.Allowed())
		case active[i] && !v.InSpace():
			return fmt.Sprintf("%q is %q; it must be %s", parameter.Name(), value, parameter.Allowed())
		}
	}
	return brokenConstraint(spec, p) + " does not hold; change the values, or leave the trial out"
}

// brokenConstraint names the first constraint that does not hold at p.
func brokenConstraint(spec *v1beta1.ExperimentSpec, p suggest.Point) string {
	for i, text := range spec.ParameterConstraints {
		space, err := suggest.NewSpace(parametersOf(spec.Parameters))
		if err == nil {
			space, err = space.WithConstraints([]string{text})
		}
		if err == nil && !space.Contains(p) {
			return fmt.Sprintf("parameterConstraints[%d] (%s)", i, text)
		}
	}
	return "a constraint"
}

func spaceErrors(spec *v1beta1.ExperimentSpec, err error) field.ErrorList {
	at := field.NewPath("spec", "parameters")
	var problems suggest.SpaceError
	var list field.ErrorList
	if !errors.As(err, &problems) {
		return otherErrors(spec, err)
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

func otherErrors(spec *v1beta1.ExperimentSpec, err error) (list field.ErrorList) {
	at := field.NewPath("spec", "parameterConstraints")
	for _, e := range flatten(err) {
		where := at
		var constraint *suggest.ConstraintError
		var config *architecture.ConfigError
		switch {
		case errors.As(e, &constraint):
			where = at.Index(slices.Index(spec.ParameterConstraints, constraint.Text))
		case errors.As(e, &config):
			where = field.NewPath("spec", "nasConfig")
		case spec.NasConfig != nil:
			where = field.NewPath("spec", "algorithm", "algorithmSettings")
		}
		list = append(list, field.Invalid(where, field.OmitValueType{}, e.Error()))
	}
	return list
}

// settingErrors says what is wrong with the settings of a method, each at its place,
// or with the method itself.
func settingErrors(method *field.Path, name string, settings suggest.Settings, err error) (list field.ErrorList) {
	for _, e := range flatten(err) {
		var setting *suggest.SettingError
		if !errors.As(e, &setting) {
			list = append(list, field.Invalid(method, name, e.Error()))
			continue
		}
		at, value := method.Child("algorithmSettings"), ""
		for i, s := range settings {
			if s.Name == setting.Name {
				at, value = method.Child("algorithmSettings").Index(i), s.Value
			}
		}
		list = append(list, field.Invalid(at, value, setting.Error()))
	}
	return list
}

func flatten(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var out []error
	for _, e := range joined.Unwrap() {
		out = append(out, flatten(e)...)
	}
	return out
}
