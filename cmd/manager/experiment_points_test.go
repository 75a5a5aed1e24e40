package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

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

// report stores what the job's collector would have sent.
func (w *world) report(ctx context.Context, id collector.TrialID, attemptID string, e ending) {
	attempt := collector.Attempt{ID: attemptID + "/0", Started: time.Now()}
	w.mu.Lock()
	into, trials := w.store, w.trials
	w.mu.Unlock()
	var points []collector.Point
	for i, v := range e.points {
		points = append(points, collector.Point{Metric: "loss", Value: v, Step: int64(i), Source: "stdout", Seq: int64(i)})
	}
	if e.other != "" {
		points = append(points, collector.Point{Metric: e.other, Value: 1, Step: 0, Source: "stdout", Seq: 1000})
	}
	for i, name := range slices.Sorted(maps.Keys(e.beside)) {
		points = append(points, collector.Point{Metric: name, Value: e.beside[name], Step: 0, Source: "stdout", Seq: int64(2000 + i)})
	}
	if len(points) > 0 {
		if err := into.Append(ctx, id, attempt, points); err != nil {
			w.t.Error(err)
		}
	}
	if !e.never {
		if err := into.Finish(ctx, id, attempt, ""); err != nil {
			w.t.Error(err)
		}
	}
	if trials != nil {
		trials.Wake(id)
	}
}
