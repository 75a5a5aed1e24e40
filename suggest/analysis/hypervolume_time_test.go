package analysis

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

// The hypervolume of ten objectives would take hours: its computation stops when ctx ends.
func TestTheHypervolumeEndsWithItsTime(t *testing.T) {
	space, err := suggest.NewSpace([]suggest.ParameterSpec{suggest.Float("x", 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	stream := rng.New(1, "test", 0, "values")
	s := suggest.Study{Space: space, Objectives: make([]suggest.Objective, 10)}
	for i := range 300 {
		values := make([]float64, len(s.Objectives))
		stream.Fill(values)
		s.Trials = append(s.Trials, &suggest.Trial{Number: i, State: suggest.Succeeded, Point: space.Decode(values[:1]), Values: values})
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, _, err = Hypervolume(ctx, s, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}
