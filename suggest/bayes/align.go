package bayes

import (
	"math"
	"slices"
)

// alignWeight is as how many pairs the slope 1 counts.
const alignWeight = 3

// nearLevel is how far on the way to the next level a row may be to stand for its own.
const nearLevel = 0.25

// outlying is how many times as far above the median of the losses as their
// least is below it a loss may be: what is further counts as that far.
const outlying = 30

// aligned brings the losses of all levels to the scale of the highest one, so
// that they can be modelled together: from each level to the next by the line
// that fits best what the same trials came to at both. A row that is between two levels
// moves by the part of the way that is still ahead of it. The order of rows at the same
// resource does not change. losses are finite, one for each measured observation.
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
	for i, o := range d.measured {
		out[i], at[i] = losses[i]/size, d.levelOf(o.X)
		if _, again := byLevel[at[i]][o.Number]; !again {
			byLevel[at[i]][o.Number] = out[i]
		}
	}
	between := d.between(at)
	for k := range len(d.levels) - 1 {
		var below, above []float64
		for i, o := range d.measured {
			if y, both := byLevel[k+1][o.Number]; both && at[i] == k && between[i] < nearLevel {
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

// between is how far each row is on its way to the next level, from 0 to 1, given its level.
// Reports may come late: a level is where half of the trials have reported first.
func (d *data) between(at []int) []float64 {
	firsts := make([][]float64, len(d.levels))
	seen := map[[2]int]bool{} // by level and trial
	for i, o := range d.measured {
		if key := [2]int{at[i], o.Number}; !seen[key] {
			seen[key] = true
			firsts[at[i]] = append(firsts[at[i]], o.X[len(o.X)-1])
		}
	}
	places := make([]float64, len(d.levels))
	for k, level := range d.levels {
		places[k] = d.levels.coordinate(float64(level))
		if n := len(firsts[k]); n > 0 {
			slices.Sort(firsts[k])
			places[k] = firsts[k][(n-1)/2]
		}
	}
	out := make([]float64, len(at))
	for i, o := range d.measured {
		if k := at[i]; k+1 < len(places) && places[k+1] > places[k] {
			out[i] = math.Min(math.Max((o.X[len(o.X)-1]-places[k])/(places[k+1]-places[k]), 0), 1)
		}
	}
	return out
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
