package bayes

import (
	"math"
	"slices"
)

// alignWeight is as how many pairs the slope 1 counts.
const alignWeight = 3

// outlying is how many times as far above the median of the losses as their
// least is below it a loss may be: what is further counts as that far.
const outlying = 30

// aligned brings the losses of all levels to the scale of the highest one, so
// that they can be modelled together: from each level to the next by the line
// that fits best what the same trials came to at both. The order within a level
// does not change. What a trial came to further on, between two levels, is taken as far along
// the line. losses are finite, one for each measured observation.
func (d *data) aligned(losses []float64) []float64 {
	size := 0.0
	for _, y := range losses {
		size = math.Max(size, math.Abs(y))
	}
	if size == 0 {
		return losses
	}
	out, at := make([]float64, len(losses)), make([]int, len(losses))
	byLevel := make([]map[int]float64, len(d.levels)) // by trial number
	for k := range byLevel {
		byLevel[k] = map[int]float64{}
	}
	between := make([]float64, len(losses)) // how far, from 0 at the level to 1 at the next
	for i, o := range d.measured {
		out[i], at[i] = losses[i]/size, d.levelOf(o.X)
		if _, again := byLevel[at[i]][o.Number]; again {
			between[i] = d.between(o.X, at[i])
			continue
		}
		byLevel[at[i]][o.Number] = out[i]
	}
	for k := range len(d.levels) - 1 {
		var below, above []float64
		for i, o := range d.measured {
			if y, both := byLevel[k+1][o.Number]; both && at[i] == k && between[i] == 0 {
				below, above = append(below, byLevel[k][o.Number]), append(above, y)
			}
		}
		shift, slope := line(below, above)
		for i := range out {
			if at[i] <= k {
				out[i] += (1 - between[i]) * (shift + slope*out[i] - out[i])
				between[i] = 0
			}
		}
	}
	return out
}

// levelOf is the level of an observation's row.
func (d *data) levelOf(x []float64) int {
	k := 0
	for k+1 < len(d.levels) && d.levels.coordinate(float64(d.levels[k+1])) <= x[len(x)-1]+1e-9 {
		k++
	}
	return k
}

// between is how far a row is from the level k to the next one, on the scale of levels.
func (d *data) between(x []float64, k int) float64 {
	if k+1 == len(d.levels) {
		return 0
	}
	low, high := d.levels.coordinate(float64(d.levels[k])), d.levels.coordinate(float64(d.levels[k+1]))
	return (x[len(x)-1] - low) / (high - low)
}

// line through pairs: y = shift + slope*x, with a slope that is positive, and
// near to 1 when there are few. Of many, those with the smaller half of x count:
// lines are wanted where points are good. They are chosen by x alone, as chosen
// by y they would be better than what x tells.
func line(x, y []float64) (shift, slope float64) {
	if len(x) == 0 {
		return 0, 1
	}
	order := ascending(x)
	if len(order) > 16 {
		order = order[:max(16, len(order)/2)]
	}
	n := float64(len(order))
	ys := make([]float64, len(order))
	for i, k := range order {
		ys[i] = y[k]
	}
	slices.Sort(ys)
	limit := ys[len(ys)/2] + outlying*(ys[len(ys)/2]-ys[0])
	mx, my := 0.0, 0.0
	for _, k := range order {
		mx += x[k] / n
		my += math.Min(y[k], limit) / n
	}
	sxx, sxy := 0.0, 0.0
	for _, k := range order {
		sxx += (x[k] - mx) * (x[k] - mx)
		sxy += (x[k] - mx) * (math.Min(y[k], limit) - my)
	}
	prior := alignWeight * sxx / n
	slope = 1
	if sxx > 0 {
		slope = math.Min(math.Max((sxy+prior)/(sxx+prior), 0.1), 10)
	}
	return my - slope*mx, slope
}
