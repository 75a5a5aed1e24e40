package algorithm_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/algorithm"
	"github.com/vernier-ml/vernier/suggest/suggesttest"
)

// A prior that is right finds what is good sooner; one that is wrong, with the best
// point at the other end of each range, costs some trials and no more.
func TestAPriorHelpsAndDoesNotBind(t *testing.T) {
	const dims, trials, seeds = 4, 40, 5
	for _, name := range []string{"tpe", "bayesianoptimization"} {
		t.Run(name, func(t *testing.T) {
			r, _ := algorithm.Get(name)
			// play gives the mean of the logarithms of the losses after 15 and after all trials.
			play := func(prior *suggest.Prior) (early, late float64) {
				specs := make([]suggest.ParameterSpec, dims)
				for i := range specs {
					specs[i] = suggest.ParameterSpec{Name: fmt.Sprint("x", i), Kind: suggest.Double, Min: "0", Max: "1", Prior: prior}
				}
				loss := func(p suggest.Point) float64 {
					sum := 0.0
					for _, v := range p {
						sum += (v.Float() - 0.17) * (v.Float() - 0.17)
					}
					return sum
				}
				for seed := range uint64(seeds) {
					best, err := suggesttest.Problem{Parameters: specs, Loss: loss}.Best(t.Context(), r.New, nil, seed, trials, 1)
					if err != nil {
						t.Fatal(err)
					}
					early += math.Log(best[14]) / seeds
					late += math.Log(best[trials-1]) / seeds
				}
				return early, late
			}
			early, late := play(nil)
			rightEarly, rightLate := play(&suggest.Prior{Value: "0.2"})
			_, wrongLate := play(&suggest.Prior{Value: "0.8"})
			t.Logf("without %.2f %.2f, right %.2f %.2f, wrong %.2f", early, late, rightEarly, rightLate, wrongLate)
			if rightEarly > early-1 {
				t.Errorf("after 15 trials the logarithm of the loss is %.2f with the right prior, and %.2f without", rightEarly, early)
			}
			if wrongLate > late+2 {
				t.Errorf("after %d trials the logarithm of the loss is %.2f with a wrong prior, and %.2f without", trials, wrongLate, late)
			}
		})
	}
}
