package cma

import (
	"math"

	"github.com/vernier-ml/vernier/suggest/numeric/box"
	"github.com/vernier-ml/vernier/suggest/numeric/normal"
)

// keepMargin sees to it that the probability of another level than the mean's
// does not fall below alpha, in dimension i with the given levels (Hamano,
// Saito, Nomura and Shirakawa, "CMA-ES with margin", 2022, section 4.2).
func (g *gaussian) keepMargin(i int, dim box.Dim, alpha float64) {
	levels := dim.Levels
	if len(levels) < 2 {
		return
	}
	between := func(k int) float64 { return levels[k]/2 + levels[k+1]/2 }
	deviation := g.sigma * math.Sqrt(g.variance(i))
	at := dim.Nearest(g.mean[i])
	if at == 0 || at == len(levels)-1 {
		threshold := between(0)
		if at > 0 {
			threshold = between(at - 1)
		}
		// Wide enough for the mean to lie on the level itself (Hamano, Nomura,
		// Saito, Uchida and Shirakawa, "CatCMA with margin", 2025, section 4.3).
		g.margin[i] = math.Max(g.margin[i], math.Abs(levels[at]-threshold)/(reach(alpha)*deviation))
		furthest := reach(alpha) * deviation * g.margin[i]
		g.mean[i] = math.Min(math.Max(g.mean[i], threshold-furthest), threshold+furthest)
		return
	}
	below, above := between(at-1), between(at)
	low := math.Max(alpha/2, normal.Below((below-g.mean[i])/(deviation*g.margin[i])))
	high := math.Max(alpha/2, normal.Below((g.mean[i]-above)/(deviation*g.margin[i])))
	middle := math.Max(0, 1-normal.Below((below-g.mean[i])/(deviation*g.margin[i]))-normal.Below((g.mean[i]-above)/(deviation*g.margin[i])))
	if rest := low + high + middle - 1.5*alpha; rest > 0 {
		excess := (1 - low - high - middle) / rest
		low, high = low+excess*(low-alpha/2), high+excess*(high-alpha/2)
	}
	left, right := reach(low), reach(high)
	g.margin[i] = (above - below) / ((left + right) * deviation)
	g.mean[i] = (below*right + above*left) / (left + right)
}

// reach is how many standard deviations a threshold is away that is crossed
// with probability p.
func reach(p float64) float64 {
	return -normal.Quantile(math.Min(math.Max(p, 1e-300), 0.5-1e-8))
}
