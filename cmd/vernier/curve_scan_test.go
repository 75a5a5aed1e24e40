package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/vernier-ml/vernier/collector"
)

// full is a disk with little room.
type full struct{ room int }

var errFull = errors.New("no space left on device")

func (f *full) Write(b []byte) (int, error) {
	if len(b) > f.room {
		return 0, errFull
	}
	f.room -= len(b)
	return len(b), nil
}

// Points leave while they are read, and what stops them is said as it is.
func TestEachPointLeavesAsItIsRead(t *testing.T) {
	s, trial := curves(t)
	points := make([]collector.Point, 2000)
	for i := range points {
		points[i] = collector.Point{Metric: "loss", Step: int64(i), Seq: int64(100 + i), Value: 1, Source: "loss"}
	}
	if err := s.Append(t.Context(), trial, collector.Attempt{ID: "pod/1", Started: noon}, points); err != nil {
		t.Fatal(err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	tests := map[string]struct {
		ctx  context.Context
		out  io.Writer
		want error
	}{
		"the disk is full at once":       {t.Context(), &full{}, errFull},
		"the disk is full in the middle": {t.Context(), &full{room: 10_000}, errFull},
		"interrupted":                    {cancelled, io.Discard, context.Canceled},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			err := scanCSV(tc.ctx, s, trial, []string{"loss"}, map[string]int{"pod/0": 1, "pod/1": 2}, tc.out)
			if !errors.Is(err, tc.want) || errors.Is(tc.want, errFull) && strings.Contains(err.Error(), "trial") {
				t.Errorf("error %v, want %v", err, tc.want)
			}
		})
	}
}

func TestAttemptsThatBeganMeanwhileAreLeftOut(t *testing.T) {
	s, trial := curves(t)
	tests := map[string]struct {
		numbers map[string]int
		want    string // columns metric, attempt and step
	}{
		"all numbered":     {map[string]int{"pod/0": 1, "pod/1": 2}, "loss,2,0 acc,1, loss,1,0 loss,1,1 loss,1,2"},
		"the newest later": {map[string]int{"pod/0": 1}, "acc,1, loss,1,0 loss,1,1 loss,1,2"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			if err := scanCSV(t.Context(), s, trial, []string{"acc", "loss"}, tc.numbers, &out); err != nil {
				t.Fatal(err)
			}
			var got []string
			for row := range strings.Lines(out.String()) {
				got = append(got, strings.Join(strings.Split(row, ",")[:3], ","))
			}
			if diff := cmp.Diff("metric,attempt,step "+tc.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("rows (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheStepOfAValue(t *testing.T) {
	s, trial := curves(t)
	points := []collector.Point{
		{Metric: "score", Step: 1, Seq: 100, Value: 0.5, Source: "score"}, {Metric: "score", Step: 2, Seq: 101, Value: 0.25, Source: "score"},
		{Metric: "score", Step: 3, Seq: 102, Value: 0.25, Source: "score"}, {Metric: "score", Step: collector.NoStep, Seq: 103, Value: 0.125, Source: "score"},
	}
	if err := s.Append(t.Context(), trial, collector.Attempt{ID: "pod/1", Started: noon}, points); err != nil {
		t.Fatal(err)
	}
	for value, want := range map[float64]*int64{0.5: ptr.To[int64](1), 0.25: ptr.To[int64](2), 0.125: nil, 9: nil} {
		if diff := cmp.Diff(want, stepOfValue(t.Context(), s, trial.UID, "score", value)); diff != "" {
			t.Errorf("of %g (-want +got):\n%s", value, diff)
		}
	}
}
