package parzen

import (
	"math"

	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

// Pick draws a component with the probability of its weight: the place of an
// observation, or -1 for the prior.
func (m *Mixture) Pick(stream *rng.Stream) int {
	u := stream.Float64() - m.prior
	if u < 0 || len(m.weights) == 0 {
		return -1
	}
	last := -1
	for i, w := range m.weights {
		if w == 0 {
			continue
		}
		if u -= w; u < 0 {
			return i
		}
		last = i
	}
	return last // what rounding left
}

// Draw samples the dimension dim from the given component; -1 is the prior.
func (m *Mixture) Draw(component, dim int, stream *rng.Stream) float64 {
	u := stream.Float64()
	known := component >= 0 && !math.IsNaN(m.rows[component][dim])
	for j := range m.choices {
		if m.choices[j].at == dim {
			return m.choices[j].draw(u, known, m.at(component, dim))
		}
	}
	for j := range m.levels {
		if o := &m.levels[j]; o.at == dim {
			return o.draw(u, m.cell(component, j))
		}
	}
	if component < 0 {
		return quantile(0.5, 1/math.Sqrt2, u)
	}
	for _, k := range m.real {
		if k.at == dim && known {
			return quantile(k.means[component], k.inverses[component], u)
		}
	}
	return u
}

func (m *Mixture) at(component, dim int) float64 {
	if component < 0 {
		return math.NaN()
	}
	return m.rows[component][dim]
}

// cell of a component on the j-th Ordered dimension; nil when it does not know
// the dimension.
func (m *Mixture) cell(component, j int) *cell {
	if component < 0 {
		return m.levels[j].prior
	}
	return m.cells[component*len(m.levels)+j]
}

// draw is the choice at the quantile u.
func (c *choice) draw(u float64, known bool, own float64) float64 {
	if !known {
		return math.Min(math.Floor(u*float64(c.count)), float64(c.count-1))
	}
	other := math.Exp(c.other)
	for i := range c.count {
		mass := other
		if float64(i) == own {
			mass = math.Exp(c.same)
		}
		if u -= mass; u < 0 {
			return float64(i)
		}
	}
	return own
}

// draw is the level at the quantile u of a kernel, or of the uniform
// distribution when there is none.
func (o *ordered) draw(u float64, kernel *cell) float64 {
	if kernel != nil {
		u = quantile(kernel.mean, kernel.inverse, u)
	}
	return o.dim.Levels[o.dim.Nearest(u)]
}

// quantile of the normal that is cut off at 0 and 1; inverse is
// 1/(bandwidth*sqrt(2)). The mean lies in the unit interval, so neither tail
// matters.
func quantile(mean, inverse, u float64) float64 {
	low, high := math.Erf(-mean*inverse), math.Erf((1-mean)*inverse)
	x := mean + math.Erfinv(low+u*(high-low))/inverse
	return min(max(x, 0), 1)
}
