package cma

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
)

// categories is a product of categorical distributions that learns by the
// natural gradient, with a learning rate that adapts to the signal (Hamano,
// Saito, Nomura, Uchida and Shirakawa, "CatCMA", 2024, section 3; Akimoto,
// Shirakawa, Yoshinari, Uchida, Saito and Nishida, "Adaptive stochastic natural
// gradient method for one-shot neural architecture search", 2019).
type categories struct {
	q     [][]float64 // of each dimension, the probability of each choice
	least []float64   // of each dimension, what no probability falls below

	path     []float64 // accumulates normalised gradients
	signal   float64
	slowness float64 // the inverse of the trust region's size
}

// newCategories starts from the probabilities q. numeric is how many ordered
// dimensions there are besides: together, all change by their margin alone in
// 27 of 100 samples.
func newCategories(q [][]float64, ordered int) *categories {
	c := &categories{slowness: 1}
	free := 0
	for _, p := range q {
		c.q = append(c.q, slices.Clone(p))
		free += len(p) - 1
		c.least = append(c.least, (1-math.Pow(0.73, 1/float64(len(q)+ordered)))/math.Max(1, float64(len(p)-1)))
	}
	c.path = make([]float64, free)
	c.keepMargin()
	return c
}

func (c *categories) clone() *categories {
	d := *c
	d.q = make([][]float64, len(c.q))
	for i := range d.q {
		d.q[i] = slices.Clone(c.q[i])
	}
	d.path = slices.Clone(c.path)
	return &d
}

// draw is the choice of dimension i for a uniform u.
func (c *categories) draw(i int, u float64) int {
	for k, p := range c.q[i] {
		if u -= p; u < 0 {
			return k
		}
	}
	return len(c.q[i]) - 1
}

// update moves the probabilities towards the choices of the better results.
// chosen has for each result the choice of each dimension, -1 where there is
// none.
func (c *categories) update(chosen [][]int, weights []float64) {
	gradient := make([][]float64, len(c.q))
	for i, q := range c.q {
		gradient[i] = make([]float64, len(q))
		for r, choices := range chosen {
			if weights[r] == 0 || choices[i] < 0 {
				continue
			}
			for k := range q {
				gradient[i][k] -= weights[r] * q[k]
			}
			gradient[i][choices[i]] += weights[r]
		}
	}
	root := c.whiten(gradient)
	norm := math.Sqrt(floats.Dot(root, root))
	if norm > 1e-12 {
		c.follow(gradient, root, norm)
	}
	c.keepMargin()
}

// whiten multiplies the gradient by the root of the Fisher information (Akimoto
// et al. 2019, appendix B).
func (c *categories) whiten(gradient [][]float64) []float64 {
	out := make([]float64, 0, len(c.path))
	for i, q := range c.q {
		last := len(q) - 1
		sum := 0.0
		for _, v := range gradient[i][:last] {
			sum += v
		}
		for k, v := range gradient[i][:last] {
			root := math.Sqrt(q[k])
			out = append(out, v/root+root*sum/(q[last]+math.Sqrt(q[last])))
		}
	}
	return out
}

func (c *categories) follow(gradient [][]float64, root []float64, norm float64) {
	delta := 1 / c.slowness
	for i, g := range gradient {
		for k, v := range g {
			c.q[i][k] += delta / norm * v
		}
	}
	beta := math.Min(1, delta/math.Sqrt(float64(len(c.path))))
	for k := range c.path {
		c.path[k] = (1-beta)*c.path[k] + math.Sqrt(beta*(2-beta))*root[k]/norm
	}
	c.signal = (1-beta)*(1-beta)*c.signal + beta*(2-beta)
	c.slowness *= math.Exp(beta * (c.signal - floats.Dot(c.path, c.path)/1.5))
	c.slowness = math.Min(math.Max(c.slowness, 1e-3), 1e10)
}

// keepMargin brings the probabilities to at least least and a sum of 1.
func (c *categories) keepMargin() {
	for i, q := range c.q {
		if len(q) < 2 {
			q[0] = 1
			continue
		}
		sum := 0.0
		for k := range q {
			q[k] = math.Max(q[k], c.least[i])
			sum += q[k]
		}
		above := sum - c.least[i]*float64(len(q))
		if above <= 0 {
			continue
		}
		shrink := (sum - 1) / above
		for k := range q {
			q[k] -= shrink * (q[k] - c.least[i])
		}
	}
}
