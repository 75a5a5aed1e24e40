package experiment

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

// What a user asked for is no error.
func TestAStopIsNoWarning(t *testing.T) {
	exp := anExperiment()
	trials := trialsIn(succeeded, running)
	before := planned(exp, trials, findings{}, noon).status
	exp.Status, exp.Annotations = before, map[string]string{v1beta1.AnnotationEnd: v1beta1.EndStop}
	after := planned(exp, trials, findings{}, noon).status
	sent := transitions(exp, &before, &after)
	if len(sent) != 1 || sent[0].Type != corev1.EventTypeNormal || sent[0].Note != messageStopping {
		t.Errorf("%+v", sent)
	}
}
