package api

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	vernierv1 "github.com/vernier-ml/vernier/api/proto/vernier/v1"
)

// A store that was slow once hides no curve of a trial that has ended. What is left out
// is said where it changes, also where there is nothing to read.
func TestCurvesThatTookTooLongAreReadAgain(t *testing.T) {
	curve := &vernierv1.Series{Trial: 0, Metric: "loss", X: []float64{0, 1}, Value: []float64{4, 3}, Points: 2}
	for name, c := range map[string]struct {
		points []float64
		want   []*vernierv1.GetSeriesResponse
	}{
		"a curve":   {[]float64{4, 3}, []*vernierv1.GetSeriesResponse{{LeftOut: []int32{0}}, {Series: []*vernierv1.Series{curve}}}},
		"no points": {nil, []*vernierv1.GetSeriesResponse{{LeftOut: []int32{0}}, {}}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, curvesOfASlowStore(t, c.points), protocmp.Transform()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// curvesOfASlowStore are what a subscription is sent where the store is too slow twice.
func curvesOfASlowStore(t *testing.T, points []float64) (got []*vernierv1.GetSeriesResponse) {
	t.Helper()
	exp := searched()
	s := serve(t, interceptor.Funcs{}, exp, tried(exp, 0, "0.25", "sgd", 3))
	if len(points) > 0 {
		measured(t, s, "0", "loss", points...)
	}
	all, err := s.subscribed(t.Context(), &vernierv1.WatchRequest{Subscriptions: []*vernierv1.Subscription{{
		Id: 1, Topic: &vernierv1.Subscription_Series{Series: &vernierv1.GetSeriesRequest{Parent: parent, Trials: []int32{0}}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	send := func(m *vernierv1.WatchResponse) error {
		got = append(got, m.GetSeries())
		return nil
	}
	for i, patience := range []time.Duration{0, 0, seriesPatience, seriesPatience} {
		s.seriesPatience = patience
		if _, _, err := s.follow(t.Context(), all[0], noon.Add(time.Duration(i)*lookForPoints), send); err != nil {
			t.Fatal(err)
		}
	}
	return got
}
