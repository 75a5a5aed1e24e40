package trial

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/store"
)

// Another manager hands a trial out, and its worker reports, before this one's cache
// shows the trial.
func TestTheSweepSparesTrialsThatTheCacheDoesNotShow(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	points, err := store.Open(t.Context(), "memory:")
	if err != nil {
		t.Fatal(err)
	}
	trial := &v1beta1.Trial{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "exp-0000", UID: "new"}}
	stale := fake.NewClientBuilder().WithScheme(scheme).Build()
	live := fake.NewClientBuilder().WithScheme(scheme).WithObjects(trial).Build()
	for _, uid := range []string{"new", "deleted"} { // both had that name
		id := collector.TrialID{Namespace: "ml", Name: "exp-0000", Experiment: "exp", UID: uid}
		point := collector.Point{Metric: "loss", Value: 1, Time: time.Now(), Source: "api:loss"}
		if err := points.Append(t.Context(), id, collector.Attempt{ID: "1", Started: time.Now()}, []collector.Point{point}); err != nil {
			t.Fatal(err)
		}
	}
	c := New(Options{Client: stale, Reader: live, Store: points, Now: time.Now})
	if err := c.sweepOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	left, err := points.Inventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(left) != 1 || left[0].UID != "new" {
		t.Errorf("the points of %+v are left, want those of the trial that exists", left)
	}
}
