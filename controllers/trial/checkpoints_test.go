package trial

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector"
)

// A trial that was restored from a backup has another UID, and goes on with what it wrote.
func TestCheckpointsBelongToTheTrialAsItWasFirstCreated(t *testing.T) {
	for name, c := range map[string]struct {
		uid    types.UID
		origin string
		want   string
	}{
		"as created":             {"u1", "", "u1"},
		"restored from a backup": {"u2", "u1", "u1"},
	} {
		t.Run(name, func(t *testing.T) {
			trial := aTrial()
			trial.UID, trial.Spec.Checkpoints = c.uid, &v1beta1.TrialCheckpoints{}
			if c.origin != "" {
				trial.Annotations = map[string]string{v1beta1.AnnotationOrigin: c.origin}
			}
			r := Reporting{Token: func(collector.TrialID) (string, error) { return "token", nil }}
			got, err := r.collector(t.Context(), trial)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got.Checkpoints.UID); diff != "" {
				t.Error(diff)
			}
		})
	}
}
