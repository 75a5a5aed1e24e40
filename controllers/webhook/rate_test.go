package webhook_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/controllers/webhook"
)

func TestTheRateIsValidated(t *testing.T) {
	const at = "metadata.annotations[vernier.ml/collector-rate]: "
	const fault = "the points a second of each metric that are kept must be a whole number from 1 to 1000000, or off for all"
	rate := func(text string) edit {
		return func(e *v1beta1.Experiment) { e.Annotations = map[string]string{v1beta1.AnnotationCollectorRate: text} }
	}
	annotated := func(name, text string) edit {
		return func(e *v1beta1.Experiment) {
			e.Annotations = map[string]string{v1beta1.AnnotationCollector + name: text}
		}
	}
	both := func(edits ...edit) edit {
		return func(e *v1beta1.Experiment) {
			for _, change := range edits {
				change(e)
			}
		}
	}
	whole := func(e *v1beta1.Experiment) {
		e.Spec.Objective.MetricStrategies = []v1beta1.MetricStrategy{{Name: e.Spec.Objective.ObjectiveMetricName, Value: "mean-last-5"}}
	}
	tests := map[string]struct {
		before, after edit // before is nil for a new experiment
		warnings      []string
		errs          []string
	}{
		"a number":                              {after: rate("10")},
		"the greatest number":                   {after: rate("1000000")},
		"no cap":                                {after: rate("off")},
		"nothing":                               {after: rate(""), errs: []string{at + `Invalid value: "": ` + fault}},
		"zero":                                  {after: rate("0"), errs: []string{at + `Invalid value: "0": ` + fault}},
		"less than nothing":                     {after: rate("-1"), errs: []string{at + `Invalid value: "-1": ` + fault}},
		"too much":                              {after: rate("1000001"), errs: []string{at + `Invalid value: "1000001": ` + fault}},
		"beyond an integer":                     {after: rate("99999999999999999999"), errs: []string{at + `Invalid value: "99999999999999999999": ` + fault}},
		"half a point":                          {after: rate("0.5"), errs: []string{at + `Invalid value: "0.5": ` + fault}},
		"a word":                                {after: rate("Off"), errs: []string{at + `Invalid value: "Off": ` + fault}},
		"a strategy that needs all":             {after: both(rate("10"), whole), warnings: []string{at + "it has no effect, because the strategy mean-last-5 of the metric loss needs every point"}},
		"no cap, and a strategy that needs all": {after: both(rate("off"), whole)},
		"what the collector gets":               {after: annotated("cpu-limit", "2")},
		"a limit that is not a quantity":        {after: annotated("cpu-limit", "x"), errs: []string{`metadata.annotations: Invalid value: vernier.ml/collector-cpu-limit: "x" must be a quantity above 0, for instance 200m or 256Mi`}},
		"one that was so before":                {before: annotated("cpu-limit", "x"), after: func(*v1beta1.Experiment) {}},
		"an update to one":                      {before: rate("5"), after: annotated("cpu-limit", "x"), errs: []string{`metadata.annotations: Invalid value: vernier.ml/collector-cpu-limit: "x" must be a quantity above 0, for instance 200m or 256Mi`}},
		"an update of nothing else":             {before: func(*v1beta1.Experiment) {}, after: rate("x"), errs: []string{at + `Invalid value: "x": ` + fault}},
		"an update to another number":           {before: rate("x"), after: rate("5")},
		"an update of something else":           {before: rate("x"), after: func(e *v1beta1.Experiment) { e.Labels = map[string]string{"a": "b"} }},
		"an update that takes it away":          {before: rate("x"), after: func(e *v1beta1.Experiment) { e.Annotations = nil }},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			exp := example(t, "random")
			webhook.Default(exp)
			var old *v1beta1.Experiment
			if tc.before != nil {
				tc.before(exp)
				old = exp.DeepCopy()
			}
			tc.after(exp)
			warnings, errs := rules.Validate(exp, old)
			if diff := cmp.Diff(tc.errs, texts(errs)); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(strings.Join(tc.warnings, "\n"), strings.Join(warnings, "\n")); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}
