package api

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

func TestAnInterruptedExperimentSaysSo(t *testing.T) {
	for name, c := range map[string]struct {
		annotation, reason string
		limit              int32
		want               []string // interrupted, message
	}{
		"a user interrupted it":      {"0 of 24", v1beta1.ReasonExperimentMaxTrialsReached, 0, []string{"0 of 24", "0 of 24 trials ran"}},
		"it had no limit":            {"4", v1beta1.ReasonExperimentMaxTrialsReached, 4, []string{"4", "4 trials ran"}},
		"its limit was raised since": {"4 of 24", v1beta1.ReasonExperimentMaxTrialsReached, 24, []string{"", "Experiment has succeeded"}},
		"its goal came first":        {"4 of 24", v1beta1.ReasonExperimentGoalReached, 4, []string{"", "Experiment has succeeded"}},
		"it ended by itself":         {"", v1beta1.ReasonExperimentMaxTrialsReached, 24, []string{"", "Experiment has succeeded"}},
	} {
		t.Run(name, func(t *testing.T) {
			e := searched()
			e.Annotations = map[string]string{v1beta1.AnnotationInterrupted: c.annotation}
			e.Spec.MaxTrialCount = ptr.To(c.limit)
			e.MarkSucceeded(c.reason, "Experiment has succeeded", metav1.NewTime(noon))
			got, err := experimentOut(e)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, []string{got.GetInterrupted(), got.GetMessage()}); diff != "" {
				t.Error(diff)
			}
		})
	}
}
