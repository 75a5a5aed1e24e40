package problem

import (
	"fmt"
	"math"
	"sync"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

// noisyProblems are the suite S3: functions of S1 with normal noise of a fifth of
// the interquartile range of random points, and with noise that is larger where the
// function is.
func noisyProblems() []*Problem {
	var out []*Problem
	names := []string{"branin-2", "hartmann-6", "ackley-10", "levy-8", "rosenbrock-5", "styblinski-8"}
	for _, p := range continuousProblems() {
		for _, name := range names {
			if p.Name != name {
				continue
			}
			out = append(out, noisy(p, 20))
			if name == "levy-8" {
				out = append(out, heteroscedastic(p))
			}
		}
	}
	return out
}

func noisy(p *Problem, percent int) *Problem {
	q := *p
	q.Name, q.Family, q.Suite = fmt.Sprintf("noisy%d-%s", percent, p.Name), "noisy-"+p.Family, Noisy
	sigma := sync.OnceValue(func() float64 { return float64(percent) / 100 * randomIQR(p) })
	q.Noise = func(suggest.Point, float64) float64 { return sigma() }
	if p.drawn != nil {
		q.drawn = func(stream *rng.Stream) *Problem { return noisy(p.drawn(stream), percent) }
	}
	return &q
}

// heteroscedastic noise grows from a fiftieth of the interquartile range at the
// optimum to two fifths of it far away.
func heteroscedastic(p *Problem) *Problem {
	q := *p
	q.Name, q.Family, q.Suite = "uneven-"+p.Name, "noisy-"+p.Family, Noisy
	scale := sync.OnceValue(func() float64 { return randomIQR(p) })
	q.Noise = func(_ suggest.Point, truth float64) float64 {
		return scale() * (0.02 + 0.38*math.Tanh((truth-p.Optimum)/scale()))
	}
	if p.drawn != nil {
		q.drawn = func(stream *rng.Stream) *Problem { return heteroscedastic(p.drawn(stream)) }
	}
	return &q
}

// randomIQR is the interquartile range of the loss of random points.
func randomIQR(p *Problem) float64 {
	list := randomLosses(p)
	return list[3*len(list)/4] - list[len(list)/4]
}
