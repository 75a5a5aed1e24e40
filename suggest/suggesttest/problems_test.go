package suggesttest

import (
	"math"
	"testing"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/algorithm"
)

func TestMinimaAreWhereTheyAreSaidToBe(t *testing.T) {
	for _, p := range Problems() {
		t.Run(p.Name, func(t *testing.T) {
			space, err := suggest.NewSpace(p.Parameters)
			if err != nil {
				t.Fatal(err)
			}
			var assignments []suggest.Assignment
			for i, value := range p.At {
				assignments = append(assignments, suggest.Assignment{Name: space.At(i).Name(), Value: value})
			}
			at, ok := space.Parse(assignments)
			if !ok {
				t.Fatalf("%v is not in the space", p.At)
			}
			least := p.Loss(at)
			if math.Abs(least-p.Minimum) > 1e-7 {
				t.Errorf("the loss is %v, want %v", least, p.Minimum)
			}
			u, _ := space.Encode(at)
			for i := range u {
				for _, d := range []float64{-0.02, 0.02} {
					near := append([]float64(nil), u...)
					near[i] += d
					if loss := p.Loss(space.Decode(near)); loss < p.Minimum-1e-9 {
						t.Errorf("moving %s by %v gives %v, below the minimum", space.At(i).Name(), d, loss)
					}
				}
			}
		})
	}
}

func TestNoPointIsBelowTheMinimum(t *testing.T) {
	random, _ := algorithm.Get("random")
	for _, p := range Problems() {
		t.Run(p.Name, func(t *testing.T) {
			best, err := p.Best(t.Context(), random.New, nil, 1, 2000, 100)
			if err != nil || len(best) != 2000 {
				t.Fatalf("%d trials, %v", len(best), err)
			}
			if last := best[len(best)-1]; last < 0 || last >= best[0] {
				t.Errorf("from %v to %v: want better, and not below 0", best[0], last)
			}
		})
	}
}
