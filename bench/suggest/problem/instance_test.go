package problem

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

func TestInstancesKeepTheOptimum(t *testing.T) {
	for _, p := range All() {
		if len(p.At) == 0 || math.IsNaN(p.Optimum) {
			continue
		}
		t.Run(p.Name, func(t *testing.T) {
			for seed := range uint64(3) {
				q := p.Instance(seed)
				point, ok := q.Space().Parse(q.At)
				if !ok {
					t.Fatalf("seed %d: %v is not in the space", seed, q.At)
				}
				o := q.Truth(point)
				if o.Failed || !(math.Abs(o.Values[0]-p.Optimum) <= 1e-6*(1+math.Abs(p.Optimum))) {
					t.Errorf("seed %d: got %+v at the optimum, want %v", seed, o, p.Optimum)
				}
			}
		})
	}
}

func TestNothingIsBelowTheOptimumOfAnInstance(t *testing.T) {
	for _, p := range All() {
		if p.Front != nil || math.IsNaN(p.Optimum) {
			continue
		}
		t.Run(p.Name, func(t *testing.T) {
			q := p.Instance(7)
			space, stream := q.Space(), rng.New(1, "test", 0, p.Name)
			for range 1000 {
				point := draw(space, stream)
				if o := q.Truth(point); !o.Failed && !(o.Values[0] >= p.Optimum-1e-9*(1+math.Abs(p.Optimum))) {
					t.Fatalf("%v at %v is below the optimum %v", o.Values[0], space.Assignments(point), p.Optimum)
				}
			}
		})
	}
}

// TestOptimaOfInstancesAreAnywhere: over seeds, the first coordinate of the optimum is spread,
// and its mean says nothing of where to look.
func TestOptimaOfInstancesAreAnywhere(t *testing.T) {
	for _, name := range []string{"sphere-10", "levy-8", "bbob-f15-10", "noisy20-ackley-10"} {
		found, err := Find(Suites(), []string{name})
		if err != nil {
			t.Fatal(err)
		}
		var at []float64
		for seed := range uint64(200) {
			q := found[0].Instance(seed)
			point, _ := q.Space().Parse(q.At)
			u, _ := q.Space().Encode(point)
			at = append(at, u[0])
		}
		slices.Sort(at)
		if low, middle, high := at[20], at[100], at[180]; low > 0.3 || high < 0.7 || math.Abs(middle-0.5) > 0.12 {
			t.Errorf("%s: a tenth of the optima is below %.2f, half below %.2f, nine tenths below %.2f", name, low, middle, high)
		}
	}
}

func TestInstancesAreFunctionsOfTheSeed(t *testing.T) {
	for _, p := range All() {
		space := p.Space()
		point := draw(space, rng.New(5, "test", 0, p.Name))
		first, again := p.Instance(1), p.Instance(1)
		if diff := cmp.Diff(first.Truth(point), again.Truth(point)); diff != "" {
			t.Errorf("%s: the same seed gives another function:\n%s", p.Name, diff)
		}
		if diff := cmp.Diff(p.Parameters, first.Parameters); diff != "" {
			t.Errorf("%s: the instance has another space:\n%s", p.Name, diff)
		}
	}
	for _, p := range Real(false) {
		if p.Instance(3) != p {
			t.Errorf("%s is a real task, and was changed", p.Name)
		}
	}
}

// TestInstancesDiffer: what can be disguised is, also where the optimum cannot be moved.
func TestInstancesDiffer(t *testing.T) {
	for _, name := range []string{"branin-2", "network-7", "tree-12", "zdt1-12", "curve-crossing-6"} {
		found, err := Find(Suites(), []string{name})
		if err != nil {
			t.Fatal(err)
		}
		p := found[0]
		stream, differ := rng.New(3, "test", 0, name), 0
		for range 20 {
			point := draw(p.Space(), stream)
			if cmp.Diff(p.Instance(1).Truth(point), p.Instance(2).Truth(point)) != "" {
				differ++
			}
		}
		if differ < 15 {
			t.Errorf("%s: at %d of 20 points seeds differ", name, differ)
		}
	}
}
