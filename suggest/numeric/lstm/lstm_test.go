package lstm

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

// network has weights that are all away from 0.
func network(config Config) *Network {
	stream := rng.NewKey(3, "lstm").Stream(0)
	n := New(config, stream.Float64)
	for i := range n.Weights {
		n.Weights[i] += 0.3 * stream.NormFloat64()
	}
	return n
}

func TestGradientIsThatOfTheLoss(t *testing.T) {
	for name, config := range map[string]Config{
		"plain":       {Counts: []int{3, 2, 4, 2}, Hidden: 5},
		"bounded":     {Counts: []int{3, 2, 4, 2}, Hidden: 5, Temperature: 5, TanhConst: 2.25},
		"temperature": {Counts: []int{2}, Hidden: 3, Temperature: 0.5},
		"one choice":  {Counts: []int{1, 2}, Hidden: 2, TanhConst: 1},
	} {
		t.Run(name, func(t *testing.T) {
			n := network(config)
			loss := Loss{Entropy: 0.3, Skip: 0.7, Target: make([]float64, len(config.Counts))}
			for i, count := range config.Counts {
				if count == 2 {
					loss.Target[i] = 0.4
				}
			}
			var samples []Sample
			for k := range 4 {
				s := Sample{Advantage: float64(k) - 1.3}
				for step, count := range config.Counts {
					c := (k + step) % count
					if k == 2 && step == 1 {
						c = -1
					}
					s.Choices = append(s.Choices, c)
				}
				samples = append(samples, s)
			}
			got := make([]float64, len(n.Weights))
			n.Gradient(loss, samples, got)
			want := make([]float64, len(n.Weights))
			for i := range want {
				const by = 1e-5
				was := n.Weights[i]
				n.Weights[i] = was + by
				above := n.Gradient(loss, samples, make([]float64, len(want)))
				n.Weights[i] = was - by
				below := n.Gradient(loss, samples, make([]float64, len(want)))
				n.Weights[i] = was
				want[i] = (above - below) / (2 * by)
			}
			if diff := cmp.Diff(want, got, cmpopts.EquateApprox(1e-6, 1e-7)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWalkAgreesWithTheBatch(t *testing.T) {
	n := network(Config{Counts: []int{3, 2, 4}, Hidden: 6, Temperature: 2, TanhConst: 2.5})
	for _, choices := range [][]int{{0, 1, 3}, {2, -1, 0}, {-1, 0, 1}} {
		want := -n.Gradient(Loss{}, []Sample{{Choices: choices, Advantage: 1}}, make([]float64, len(n.Weights)))
		if got := n.LogProbability(choices); math.Abs(got-want) > 1e-12 {
			t.Errorf("%v: %v step by step, %v at once", choices, got, want)
		}
	}
}

func TestProbabilitiesSumToOne(t *testing.T) {
	n := network(Config{Counts: []int{3, 2, 4}, Hidden: 6, TanhConst: 2.5})
	sum := 0.0
	for a := range 3 {
		for b := range 2 {
			for c := range 4 {
				sum += math.Exp(n.LogProbability([]int{a, b, c}))
			}
		}
	}
	if math.Abs(sum-1) > 1e-12 {
		t.Errorf("the probabilities of all sequences sum to %v", sum)
	}
}

func TestTheBoundKeepsAllChoicesPossible(t *testing.T) {
	n := network(Config{Counts: []int{2, 2}, Hidden: 4, Temperature: 5, TanhConst: 2.25})
	for i := range n.Weights {
		n.Weights[i] *= 1e6
	}
	least := 1 / (1 + math.Exp(2*2.25)) // of two choices
	for _, p := range n.Walk().Probabilities() {
		if p < least-1e-12 {
			t.Errorf("a probability is %v, less than %v", p, least)
		}
	}
}

func TestNewNetworksPreferNothing(t *testing.T) {
	n := New(Config{Counts: []int{4, 3}, Hidden: 8}, rng.NewKey(1, "lstm").Stream(0).Float64)
	if got, want := n.LogProbability([]int{2, 1}), -math.Log(12); math.Abs(got-want) > 1e-12 {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestItLearnsAPatternOverSteps(t *testing.T) {
	// The second choice must repeat the first, the third be another.
	n := New(Config{Counts: []int{3, 3, 3}, Hidden: 12}, rng.NewKey(1, "lstm").Stream(0).Float64)
	adam := Adam{Rate: 0.02}
	for range 200 {
		gradient := make([]float64, len(n.Weights))
		var samples []Sample
		for a := range 3 {
			samples = append(samples, Sample{Choices: []int{a, a, (a + 1) % 3}, Advantage: 1})
		}
		n.Gradient(Loss{}, samples, gradient)
		adam.Step(n.Weights, gradient)
	}
	for a := range 3 {
		if got := math.Exp(n.LogProbability([]int{a, a, (a + 1) % 3})); got < 0.3 || got > 0.36 {
			t.Errorf("the probability of pattern %d is %v, want a third", a, got)
		}
	}
}

// The values follow from the paper's algorithm by hand: with bias correction the
// first steps have the length of the rate while the gradient is constant.
func TestAdam(t *testing.T) {
	a := Adam{Rate: 0.1}
	w := []float64{1, -1, 0}
	for range 2 {
		a.Step(w, []float64{5, -1e-3, 0})
	}
	if diff := cmp.Diff([]float64{0.8, -0.8, 0}, w, cmpopts.EquateApprox(0, 1e-4)); diff != "" {
		t.Error(diff)
	}
	clipped := Adam{Rate: 0.1, Clip: 1}
	v := []float64{1}
	clipped.Step(v, []float64{1e100})
	if math.IsNaN(v[0]) || v[0] >= 1 {
		t.Errorf("after a clipped step: %v", v[0])
	}
}
