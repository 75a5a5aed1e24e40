package population

import (
	"math"
	"strconv"
	"testing"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
	"github.com/vernier-ml/vernier/suggest/suggesttest"
)

// decay is training in which a high rate is noisy near the optimum and a low one
// is slow: the loss falls to a floor that is proportional to the rate.
func decay(t *suggest.Trial, parent []float64) []float64 {
	loss := 1.0
	if parent != nil {
		loss = parent[0]
	}
	lr := t.Point[0].Float()
	for range 10 {
		loss = math.Max(loss*(1-lr), 0) + 0.1*lr*lr
	}
	return []float64{loss}
}

// randomSearch trains each member at one random point for all generations.
func randomSearch(s suggest.Study, train func(*suggest.Trial, []float64) []float64, loss func(*suggest.Trial, []float64) float64, members, generations int) float64 {
	least := math.Inf(1)
	stream := rng.New(s.Seed, "test", 0, "random search")
	for range members {
		u := make([]float64, s.Space.Len())
		for i := range u {
			u[i] = stream.Float64()
		}
		t := &suggest.Trial{Point: s.Space.Decode(u)}
		var state []float64
		for range generations {
			state = train(t, state)
			least = min(least, loss(t, state))
		}
	}
	return least
}

func TestPopulationsBeatRandomSearchOnSchedules(t *testing.T) {
	const seeds, members, generations = 30, 10, 20
	problems := map[string]struct {
		train func(*suggest.Trial, []float64) []float64
		loss  func(*suggest.Trial, []float64) float64
	}{
		"the best rate falls": {schedule, func(_ *suggest.Trial, state []float64) float64 { return -state[0] }},
		"rates have a floor":  {decay, func(_ *suggest.Trial, state []float64) float64 { return math.Log10(state[0]) }},
	}
	for name, problem := range problems {
		for algorithm, build := range map[string]suggest.New{"pb2": PB2().New, "pbt": PBT().New} {
			t.Run(name+" "+algorithm, func(t *testing.T) {
				var gains []float64
				for seed := range uint64(seeds) {
					s := newPopulationStudy(t, seed, learningRate)
					a := buildPopulation(t, build, s, nPopulation, strconv.Itoa(members))
					r := trainer{algorithm: a, study: s, parallel: members, train: problem.train, loss: problem.loss}
					r.run(t, members*generations)
					gains = append(gains, randomSearch(s, problem.train, problem.loss, members, generations)-r.best())
				}
				suggesttest.HoldsBetter(t, gains)
			})
		}
	}
}
