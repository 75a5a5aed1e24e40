package webhook

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/controllers/study"
)

// validateObjectives checks several objectives, beside which there is an
// objective that agrees with the first.
func validateObjectives(s *v1beta1.ExperimentSpec) (warnings []string, errs field.ErrorList) {
	path, single := specPath().Child("objectives"), specPath().Child("objective")
	var seen []string
	for i, o := range s.Objectives {
		if collector.IsSystemMetric(o.ObjectiveMetricName) {
			errs = append(errs, field.Invalid(path.Index(i).Child("objectiveMetricName"), o.ObjectiveMetricName, usageIsNoResult))
		}
		if slices.Contains(seen, o.ObjectiveMetricName) {
			errs = append(errs, duplicate(path.Index(i).Child("objectiveMetricName"), o.ObjectiveMetricName, "is an objective already: remove one"))
		}
		seen = append(seen, o.ObjectiveMetricName)
	}
	if len(s.Objectives) == 0 || s.Objective == nil {
		return nil, errs
	}
	if a := s.Algorithm; len(s.Objectives) > 1 && a != nil && study.FirstObjective(a) {
		warnings = append(warnings, fmt.Sprintf("%s: %s goes by the first one; auto, nsga2 and others look for good trials in all", path, a.AlgorithmName))
	}
	first := s.Objectives[0]
	if s.Objective.ObjectiveMetricName != first.ObjectiveMetricName {
		errs = append(errs, field.Invalid(single.Child("objectiveMetricName"), s.Objective.ObjectiveMetricName,
			fmt.Sprintf("must be the first of objectives, which is %q; or leave objective out", first.ObjectiveMetricName)))
	}
	if s.Objective.Type != first.Type {
		errs = append(errs, field.Invalid(single.Child("type"), s.Objective.Type, fmt.Sprintf("must be that of the first of objectives, which is %q; or leave objective out", first.Type)))
	}
	if s.Objective.Goal != nil {
		errs = append(errs, field.Forbidden(single.Child("goal"), "give goals in objectives"))
	}
	if len(s.Objectives) > 1 && s.EarlyStopping != nil {
		errs = append(errs, field.Forbidden(specPath().Child("earlyStopping"),
			"a rule looks at one objective, and would stop trials that are good in the others: remove it, or keep one objective and bound the other metrics in constraints"))
	}
	return warnings, errs
}

func validateConstraints(s *v1beta1.ExperimentSpec) (errs field.ErrorList) {
	var seen []string
	for i, c := range s.Constraints {
		if slices.Contains(seen, c.MetricName) {
			errs = append(errs, duplicate(specPath().Child("constraints").Index(i).Child("metricName"), c.MetricName, "has bounds already: give min and max in one entry"))
		}
		seen = append(seen, c.MetricName)
	}
	return errs
}

// validateWarmStart checks the names of experiments to learn from. That they exist
// is seen when the first trial is made: they may be applied with this one.
func validateWarmStart(exp *v1beta1.Experiment) (warnings []string, errs field.ErrorList) {
	path := specPath().Child("warmStartFrom")
	var seen []string
	for i, w := range exp.Spec.WarmStartFrom {
		at := path.Index(i).Child("experiment")
		switch {
		case w.Experiment == exp.Name:
			errs = append(errs, field.Invalid(at, w.Experiment, "is this experiment: name an earlier one"))
		case slices.Contains(seen, w.Experiment):
			errs = append(errs, duplicate(at, w.Experiment, "is named already: remove one"))
		case len(validation.IsDNS1123Subdomain(w.Experiment)) > 0:
			errs = append(errs, field.Invalid(at, w.Experiment, "is no name of an experiment: write that of one in the same namespace, without the namespace"))
		}
		seen = append(seen, w.Experiment)
	}
	if a := exp.Spec.Algorithm; len(exp.Spec.WarmStartFrom) > 0 && a != nil && !study.Learns(a.AlgorithmName) {
		warnings = append(warnings, fmt.Sprintf("%s: %s does not learn from results, so this changes nothing", path, a.AlgorithmName))
	}
	return warnings, errs
}
