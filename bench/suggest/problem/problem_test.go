package problem

import (
	"math"
	"testing"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

// draw is a random point of the space.
func draw(space suggest.Space, stream *rng.Stream) suggest.Point {
	u := make([]float64, space.Len())
	for i := range u {
		u[i] = stream.Float64()
	}
	return space.Decode(u)
}

func TestOptimaAreReached(t *testing.T) {
	for _, p := range All() {
		if len(p.At) == 0 || p.Truth == nil {
			continue
		}
		t.Run(p.Name, func(t *testing.T) {
			point, ok := p.Space().Parse(p.At)
			if !ok {
				t.Fatalf("%v is not in the space", p.At)
			}
			o := p.Truth(point)
			if o.Failed || !(math.Abs(o.Values[0]-p.Optimum) <= 1e-6*(1+math.Abs(p.Optimum))) {
				t.Errorf("got %+v at the optimum, want %v", o, p.Optimum)
			}
		})
	}
}

func TestNothingIsBelowTheOptimum(t *testing.T) {
	for _, p := range All() {
		if p.Truth == nil || p.Front != nil || math.IsNaN(p.Optimum) {
			continue
		}
		t.Run(p.Name, func(t *testing.T) {
			space, stream := p.Space(), rng.New(1, "test", 0, p.Name)
			at, known := space.Parse(p.At)
			failed := 0
			for i := range 2000 {
				point := draw(space, stream)
				if known && i%2 == 0 { // close to the optimum, where it matters
					u, _ := space.Encode(at)
					for j := range u {
						u[j] = math.Min(1, math.Max(0, u[j]+1e-3*stream.NormFloat64()))
					}
					point = space.Decode(u)
				}
				o := p.Truth(point)
				if o.Failed {
					failed++
				} else if !(o.Values[0] >= p.Optimum-1e-9*(1+math.Abs(p.Optimum))) {
					t.Fatalf("%v at %v is below the optimum %v", o.Values[0], space.Assignments(point), p.Optimum)
				}
			}
			if p.Family[:min(8, len(p.Family))] == "crashing" && (failed < 200 || failed > 900) {
				t.Errorf("%d of 2000 points crash, want 10 to 45 %%", failed)
			}
		})
	}
}

func TestNamesAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range All() {
		if seen[p.Name] {
			t.Errorf("%s is there twice", p.Name)
		}
		seen[p.Name] = true
		if p.Family == "" || p.Suite == "" {
			t.Errorf("%s has no family or no suite", p.Name)
		}
	}
}

// TestEnumeratedMinima weighs each point of the finite problems whose minimum
// is a constant of this package.
func TestEnumeratedMinima(t *testing.T) {
	for _, p := range []*Problem{pairs(), pests()} {
		t.Run(p.Name, func(t *testing.T) {
			space := p.Space()
			size, _ := space.Size()
			best := math.Inf(1)
			var at suggest.Point
			for rank := range size {
				point := make(suggest.Point, space.Len())
				for i := range point {
					n, _ := space.At(i).Count()
					point[i] = space.At(i).At(int64(rank % uint64(n)))
					rank /= uint64(n)
				}
				if v := p.Truth(point).Values[0]; v < best {
					best, at = v, point
				}
			}
			if math.Abs(best-p.Optimum) > 1e-12 {
				t.Errorf("the best of %d points is %.17g at %v, the constant says %v", size, best, space.Assignments(at), p.Optimum)
			}
		})
	}
}
