package api

import (
	"fmt"
	"math"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	vernierv1 "github.com/vernier-ml/vernier/api/proto/vernier/v1"
	"github.com/vernier-ml/vernier/collector"
)

// measured stores the values of a metric of the trial with that number, one a step from
// 0 and one a second
// from a second after noon.
func measured(t *testing.T, s *service, number string, metric string, values ...float64) {
	t.Helper()
	points := make([]collector.Point, len(values))
	for i, v := range values {
		points[i] = collector.Point{Metric: metric, Value: v, Step: int64(i), Seq: int64(i), Source: metric, Time: noon.Add(time.Duration(i+1) * time.Second)}
	}
	id := collector.TrialID{Namespace: "ml", Name: "exp-000" + number, Experiment: "exp", UID: "t" + number}
	if err := s.Store.Append(t.Context(), id, collector.Attempt{ID: "1", Started: noon}, points); err != nil {
		t.Fatal(err)
	}
	s.Changes.Points(id)
}

func TestSeries(t *testing.T) {
	exp := searched()
	s := serve(t, interceptor.Funcs{}, exp, tried(exp, 0, "0.25", "sgd", 3), tried(exp, 1, "0.125", "adam", math.NaN()), tried(exp, 2, "0.5", "adam", math.NaN()))
	measured(t, s, "0", "loss", 9, 7, 8, 1, 5, 6)
	measured(t, s, "0", "time", 1)
	measured(t, s, "1", "loss", 4, math.Inf(1))
	for name, c := range map[string]struct {
		ask  *vernierv1.GetSeriesRequest
		want []*vernierv1.Series
	}{
		"each point, of the objective": {
			&vernierv1.GetSeriesRequest{Trials: []int32{1, 0, 2, 7}},
			[]*vernierv1.Series{
				{Trial: 0, Metric: "loss", X: []float64{0, 1, 2, 3, 4, 5}, Value: []float64{9, 7, 8, 1, 5, 6}, Points: 6},
				{Trial: 1, Metric: "loss", X: []float64{0, 1}, Value: []float64{4, math.Inf(1)}, Points: 2},
			},
		},
		"few points keep the extremes": {
			&vernierv1.GetSeriesRequest{Trials: []int32{0}, MaxPoints: 2},
			[]*vernierv1.Series{{Trial: 0, Metric: "loss", X: []float64{3, 5}, Value: []float64{1, 6}, Min: []float64{1, 5}, Max: []float64{9, 6}, Points: 6}},
		},
		"a window of steps": {
			&vernierv1.GetSeriesRequest{Trials: []int32{0}, From: ptr.To(1.5), To: ptr.To(4.)},
			[]*vernierv1.Series{{Trial: 0, Metric: "loss", X: []float64{2, 3, 4}, Value: []float64{8, 1, 5}, Points: 6}},
		},
		"by time since the start of the trial": {
			&vernierv1.GetSeriesRequest{Trials: []int32{0}, Metrics: []string{"time", "loss"}, Axis: vernierv1.GetSeriesRequest_TIME, To: ptr.To(1.)},
			[]*vernierv1.Series{
				{Trial: 0, Metric: "time", X: []float64{0}, Value: []float64{1}, Points: 1},
				{Trial: 0, Metric: "loss", X: []float64{0, 1}, Value: []float64{9, 7}, Points: 6},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.ask.Parent = parent
			for range 2 { // the second time those of trials that have ended are remembered
				got, err := s.GetSeries(t.Context(), c.ask)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(&vernierv1.GetSeriesResponse{Series: c.want}, got, protocmp.Transform()); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
	for name, ask := range map[string]*vernierv1.GetSeriesRequest{
		"too many trials":   {Trials: make([]int32, mostTrials+1)},
		"too many metrics":  {Metrics: make([]string, mostMetrics+1)},
		"one point":         {MaxPoints: 1},
		"a window of NaN":   {From: ptr.To(math.NaN())},
		"a window backward": {From: ptr.To(2.), To: ptr.To(1.)},
	} {
		ask.Parent = parent
		if _, err := s.GetSeries(t.Context(), ask); connect.CodeOf(err) != connect.CodeInvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCurvesThatAreRememberedAreBounded(t *testing.T) {
	var k keptCurves
	big := []*vernierv1.Series{{X: make([]float64, maxKeptPoints/2)}}
	for _, key := range []byte("abbc") {
		k.put(curvesKey{key}, big)
	}
	if _, ok := k.get(curvesKey{'c'}); !ok || len(k.curves) != 1 || len(k.order) != 1 || k.points > maxKeptPoints {
		t.Errorf("%d curves of %d points are kept", len(k.curves), k.points)
	}
}

// A caller can ask for any number of metrics that do not exist.
func TestCurvesWithoutPointsAreNotRemembered(t *testing.T) {
	exp := searched()
	s := serve(t, interceptor.Funcs{}, exp, tried(exp, 0, "0.25", "sgd", 3))
	for i := range 10 {
		ask := &vernierv1.GetSeriesRequest{Parent: parent, Trials: []int32{0}, Metrics: []string{fmt.Sprint("nothing", i)}}
		if got, err := s.GetSeries(t.Context(), ask); err != nil || len(got.GetSeries()) > 0 {
			t.Fatalf("%v, %v", got, err)
		}
	}
	if n := len(s.kept.curves) + len(s.kept.order); n > 0 {
		t.Errorf("%d are kept", n)
	}
}

func TestCurvesOfMetricsWithSpacesAreNotConfused(t *testing.T) {
	exp := searched()
	s := serve(t, interceptor.Funcs{}, exp, tried(exp, 0, "0.25", "sgd", 3))
	for _, metric := range []string{"a", "b", "a b"} {
		measured(t, s, "0", metric, 1)
	}
	for _, metrics := range [][]string{{"a b"}, {"a", "b"}} {
		got, err := s.GetSeries(t.Context(), &vernierv1.GetSeriesRequest{Parent: parent, Trials: []int32{0}, Metrics: metrics})
		if err != nil || len(got.GetSeries()) != len(metrics) {
			t.Errorf("%q: %v, %v", metrics, got, err)
		}
	}
}
