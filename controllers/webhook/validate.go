package webhook

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/parse"
	"github.com/vernier-ml/vernier/controllers/study"
)

// MaxNameLength is the longest name of an experiment, as in Katib: names of
// trials, jobs and pods are made from it.
const MaxNameLength = 40

func specPath() *field.Path     { return field.NewPath("spec") }
func templatePath() *field.Path { return specPath().Child("trialTemplate") }

// Validate says what is wrong with an experiment that has its defaults, all at
// once, each with the field and what to do, and what is merely doubtful. What the
// schema refuses has not come this far. old is
// the experiment before an update, or nil. An update that does not touch the
// spec, nor an annotation that is read, is always admitted.
//
// A template in a ConfigMap is not looked at: see ReadTemplate and
// ValidateTemplate.
func (r Rules) Validate(exp, old *v1beta1.Experiment) (warnings []string, errs field.ErrorList) {
	warnings, errs = validateRate(exp, old)
	errs = append(errs, validateResources(exp, old)...)
	if old != nil {
		changed, faults := validateUpdate(exp, old)
		if !changed || len(faults) > 0 {
			return warnings, append(errs, faults...)
		}
		warnings = append(warnings, doubtfulLimits(exp, old)...)
		warnings = append(warnings, uncounted(exp, old)...)
	}
	s := &exp.Spec
	errs = append(errs, validateName(exp.Name)...)
	if total, failed := s.MaxTrialCount, s.MaxFailedTrialCount; total != nil && failed != nil && *failed > *total {
		warnings = append(warnings, fmt.Sprintf("spec.maxFailedTrialCount: %d is above maxTrialCount, which is %d: failures will never end the experiment", *failed, *total))
	}
	errs = append(errs, validateObjective(s.Objective, specPath().Child("objective"))...)
	w, e := validateObjectives(s)
	warnings, errs = append(warnings, w...), append(errs, e...)
	errs = append(errs, validateConstraints(s)...)
	errs = append(errs, validateSpace(s)...)
	errs = append(errs, validateStopping(s)...)
	errs = append(errs, r.validateAlgorithm(s)...)
	errs = append(errs, r.validatePoints(s, old)...)
	if e := study.CheckRepeats(s); e != nil {
		errs = append(errs, e)
	}
	warnings = append(warnings, doubtfulSettings(s)...)
	warnings = append(warnings, study.DoubtfulResources(s)...)
	if old == nil { // a budget that changes later does not change the lengths
		warnings = append(warnings, study.DoubtfulBudget(s)...)
	}
	w, e = validateWarmStart(exp)
	warnings, errs = append(warnings, w...), append(errs, e...)
	warnings = append(warnings, doubtfulCollector(s)...)
	errs = append(errs, validateCollector(s.MetricsCollectorSpec, specPath().Child("metricsCollectorSpec"))...)
	errs = append(errs, validateSelectors(s, specPath().Child("objective"))...)
	w, e = r.validateTrialTemplate(exp)
	if old != nil { // the template cannot change, and earlier versions admitted two placeholders of a parameter
		e = slices.DeleteFunc(e, func(err *field.Error) bool {
			return err.Type == field.ErrorTypeDuplicate && strings.HasSuffix(err.Field, "].reference")
		})
	}
	return append(warnings, w...), append(errs, e...)
}

// validatePoints refuses new initial trials where a service proposes all trials.
func (r Rules) validatePoints(s *v1beta1.ExperimentSpec, old *v1beta1.Experiment) field.ErrorList {
	before := 0
	if old != nil {
		before = len(old.Spec.InitialTrials)
	}
	if r.outside == "" || len(s.InitialTrials) <= before {
		return nil
	}
	return field.ErrorList{field.Forbidden(specPath().Child("initialTrials"),
		fmt.Sprintf("the algorithm %s is a service and proposes all trials itself: remove them, or choose one of Vernier's algorithms", r.outside))}
}

func validateName(name string) field.ErrorList {
	path := field.NewPath("metadata", "name")
	var errs field.ErrorList
	if len(name) > MaxNameLength {
		errs = append(errs, field.Invalid(path, name, fmt.Sprintf("has %d characters: use at most %d, because names of trials and pods are made from it", len(name), MaxNameLength)))
	}
	// A Service needs a name that begins with a letter; DNS-1035 says so.
	if problems := validation.IsDNS1035Label(name); len(problems) > 0 && len(name) <= validation.DNS1035LabelMaxLength {
		errs = append(errs, field.Invalid(path, name, "use lower case letters, digits and '-', beginning with a letter and ending with a letter or digit"))
	}
	return errs
}

// usageIsNoResult is why a metric that the node agent samples is refused.
const usageIsNoResult = "is sampled from the machine and is no result: report a value of your own, under another name"

func validateObjective(o *v1beta1.ObjectiveSpec, path *field.Path) field.ErrorList {
	if o == nil {
		return field.ErrorList{field.Required(path, "say what to optimize: type (minimize or maximize) and objectiveMetricName")}
	}
	var errs field.ErrorList
	if o.Type == "" {
		errs = append(errs, field.Required(path.Child("type"), "say minimize or maximize"))
	}
	if o.ObjectiveMetricName == "" {
		errs = append(errs, field.Required(path.Child("objectiveMetricName"), "name the metric to optimize"))
	}
	if collector.IsSystemMetric(o.ObjectiveMetricName) {
		errs = append(errs, field.Invalid(path.Child("objectiveMetricName"), o.ObjectiveMetricName, usageIsNoResult))
	}
	known := []string{o.ObjectiveMetricName}
	for i, name := range o.AdditionalMetricNames {
		at := path.Child("additionalMetricNames").Index(i)
		switch {
		case name == "":
			errs = append(errs, field.Required(at, "name a metric, or remove the entry"))
		case collector.IsSystemMetric(name):
			errs = append(errs, field.Invalid(at, name, usageIsNoResult))
		case slices.Contains(known, name):
			errs = append(errs, duplicate(at, name, "is the objective, or stands here before: remove one"))
		}
		known = append(known, name)
	}
	return append(errs, validateStrategies(o, known, path.Child("metricStrategies"))...)
}

func validateStrategies(o *v1beta1.ObjectiveSpec, known []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]bool{}
	for i, s := range o.MetricStrategies {
		at := path.Index(i)
		switch {
		case seen[s.Name]:
			errs = append(errs, duplicate(at.Child("name"), s.Name, "has a strategy already: remove one"))
		case !slices.Contains(known, s.Name) || s.Name == "":
			errs = append(errs, field.Invalid(at.Child("name"), s.Name, "is not a metric of the experiment: use the objective or one of additionalMetricNames"))
		}
		seen[s.Name] = true
	}
	return errs
}

// validateSpace checks that there is one search space. What the parameters are
// is checked by building the space: see study.Check.
func validateSpace(s *v1beta1.ExperimentSpec) field.ErrorList {
	if len(s.Parameters) == 0 && s.NasConfig == nil {
		return field.ErrorList{field.Required(specPath().Child("parameters"), "give at least one parameter to search")}
	}
	return nil
}

func validateStopping(s *v1beta1.ExperimentSpec) field.ErrorList {
	path := specPath().Child("earlyStopping", "algorithmName")
	switch e := s.EarlyStopping; {
	case e == nil:
		return nil
	case e.AlgorithmName == "":
		return field.ErrorList{field.Required(path, "name the rule, or remove earlyStopping")}
	case !slices.Contains(study.StoppingRules(), e.AlgorithmName):
		return field.ErrorList{unknown(path, e.AlgorithmName, "early stopping rule", study.StoppingRules())}
	}
	return study.CheckStopping(s)
}

// validateAlgorithm checks that the search space and the algorithm can be
// built.
func (r Rules) validateAlgorithm(s *v1beta1.ExperimentSpec) field.ErrorList {
	path := specPath().Child("algorithm")
	if s.Algorithm == nil || s.Algorithm.AlgorithmName == "" {
		return field.ErrorList{field.Required(path.Child("algorithmName"), "name one of: "+strings.Join(study.Algorithms(), ", "))}
	}
	var errs field.ErrorList
	for i, setting := range s.Algorithm.AlgorithmSettings {
		if setting.Name == "" {
			errs = append(errs, field.Required(path.Child("algorithmSettings").Index(i).Child("name"), "name the setting, or remove the entry"))
		}
	}
	if len(errs) > 0 {
		return errs
	}
	built := study.Check(s)
	if slices.Contains(study.Algorithms(), s.Algorithm.AlgorithmName) {
		return built
	}
	// There is nothing to build, but the space is worth a look.
	built = slices.DeleteFunc(built, func(e *field.Error) bool { return !strings.HasPrefix(e.Field, specPath().Child("parameters").String()) })
	if r.outside == s.Algorithm.AlgorithmName {
		return built // its service looks at the settings
	}
	return append(field.ErrorList{unknown(path.Child("algorithmName"), s.Algorithm.AlgorithmName, "algorithm", study.Algorithms())}, built...)
}

// doubtfulSettings warns of settings that mean something else in Katib.
func doubtfulSettings(s *v1beta1.ExperimentSpec) (warnings []string) {
	if s.Algorithm == nil || s.Algorithm.AlgorithmName != "cmaes" {
		return nil
	}
	for i, setting := range s.Algorithm.AlgorithmSettings {
		if setting.Name == "sigma" {
			warnings = append(warnings, fmt.Sprintf("%s: sigma is a part of each parameter's range here, and not in the parameters' units as in Katib",
				specPath().Child("algorithm", "algorithmSettings").Index(i)))
		}
	}
	return warnings
}

// unknown says that there is no such thing and what there is.
func unknown(path *field.Path, name, what string, known []string) *field.Error {
	e := field.NotSupported(path, name, known)
	if len(known) == 0 {
		e.Detail = "this version has no " + what + ": remove it"
		return e
	}
	e.Detail = fmt.Sprintf("there is no such %s; use one of: %s", what, strings.Join(known, ", "))
	if near := parse.Nearest(name, known, 1); len(near) > 0 {
		e.Detail = fmt.Sprintf("there is no such %s: did you mean %s? There are: %s", what, near[0], strings.Join(known, ", "))
	}
	return e
}
