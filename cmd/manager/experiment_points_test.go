package main

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector"
)

func TestDeletedTrialLosesItsPoints(t *testing.T) {
	w := newWorld(t, byNumber(0))
	w.start()
	e := w.experiment("exp", budget(1))
	w.create(e)
	w.ends(e, v1beta1.ReasonExperimentMaxTrialsReached)
	tr := w.trialsOf(e)[0]
	if err := w.client.Delete(t.Context(), &tr); err != nil {
		t.Fatal(err)
	}
	w.eventually("the points are deleted", func() string {
		series, err := collector.ReadSeries(t.Context(), w.store, string(tr.UID))
		if err != nil {
			return err.Error()
		}
		if len(series) > 0 {
			return fmt.Sprint(len(series), " series")
		}
		return ""
	})
}

func TestSameNameInTwoNamespaces(t *testing.T) {
	w := newWorld(t, func(string) ending { return ending{points: []float64{1}} })
	other := newNamespace(t, w.client)
	w.simulate(other)
	w.start()
	a := w.experiment("exp")
	b := w.experiment("exp", func(e *v1beta1.Experiment) { e.Namespace = other })
	w.create(a)
	w.create(b)
	for _, e := range []*v1beta1.Experiment{a, b} {
		if got := w.ends(e, v1beta1.ReasonExperimentMaxTrialsReached); got.Status.Trials != 6 {
			t.Errorf("%s: %d trials, want 6", e.Namespace, got.Status.Trials)
		}
		if diff := cmp.Diff(numbered("exp", 6), names(w.trialsOf(e))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", e.Namespace, diff)
		}
	}
}
