package bayes

import (
	"math"
	"slices"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/history"
	"github.com/vernier-ml/vernier/suggest/numeric/box"
	"github.com/vernier-ml/vernier/suggest/numeric/gp"
)

// data is what the models of one call learn from. Where a rule stops trials,
// rows have one more element than the space has parameters, the resource on the
// unit scale, and there is an observation for each level that a curve reached.
type data struct {
	study  suggest.Study
	space  suggest.Space
	coder  *history.Encoding
	layout *gp.Layout
	levels levels
	// spend gives a point with all of the resource; nil: it is not in the point.
	spend func(suggest.Point) suggest.Point

	rows                   []*history.Row // of all trials
	measured, failed, warm []*history.Row
	results                int         // trials that were measured
	running                [][]float64 // rows of unfinished trials, and of what was proposed in this call
}

// newData reads a study; l are the levels at which models look at curves, nil:
// by the study.
func newData(reader *history.Reader, s suggest.Study, l levels, spend func(suggest.Point) suggest.Point) *data {
	h := reader.Read(s)
	d := &data{
		study: s, rows: h.Rows, space: reader.Space, coder: reader.Encoding, spend: spend,
		measured: h.Measured, failed: h.Failed, warm: h.Warm, results: len(h.Measured),
	}
	if l == nil {
		l = levelsOf(s)
	}
	dims := slices.Clone(d.coder.Dims)
	if l.joint() && len(s.Objectives) == 1 {
		d.levels = l
		dims = append(dims, box.Dim{Kind: box.Continuous})
		d.unfold(h.Running)
	}
	d.layout = gp.NewLayout(dims)
	for _, o := range h.Running {
		d.running = append(d.running, d.row(o.Point))
	}
	return d
}

// row is that of a whole trial.
func (d *data) row(p suggest.Point) []float64 {
	x := d.coder.Row(p)
	if d.levels.joint() {
		x = append(x, 1)
	}
	return x
}

// point nearest to a row, of a whole trial: a parameter that receives the
// resource has all of it.
func (d *data) point(row []float64) suggest.Point { return d.whole(d.coder.Point(row[:d.space.Len()])) }

func (d *data) whole(p suggest.Point) suggest.Point {
	if d.spend == nil {
		return p
	}
	return d.spend(p)
}

// rowsOf observations.
func rowsOf(observations []*history.Row) [][]float64 {
	out := make([][]float64, len(observations))
	for i, o := range observations {
		out[i] = o.X
	}
	return out
}

// losses of the measured trials, scalar. Pruned ones count as no better than
// the median of the others, as they were stopped for a reason.
func (d *data) losses(weights []float64) []float64 {
	losses := d.scalarized(weights)
	if d.levels.joint() {
		return d.aligned(losses)
	}
	var complete []float64
	for i, o := range d.measured {
		if o.State != suggest.Pruned {
			complete = append(complete, losses[i])
		}
	}
	if len(complete) > 0 && len(complete) < len(losses) {
		slices.Sort(complete)
		middle := complete[len(complete)/2]
		for i, o := range d.measured {
			if o.State == suggest.Pruned {
				losses[i] = math.Max(losses[i], middle)
			}
		}
	}
	return losses
}

// scalarized are the losses of the measured trials: with several objectives,
// their augmented Chebyshev scalarisation with the given weights (ParEGO:
// Knowles 2006).
func (d *data) scalarized(weights []float64) []float64 {
	out, total := make([]float64, len(d.measured)), make([]float64, len(d.measured))
	for k, w := range weights {
		column := d.objective(k)
		if len(weights) == 1 {
			return column
		}
		low, high := slices.Min(column), slices.Max(column)
		half := high/2 - low/2 // not to overflow
		for i, v := range column {
			if half > 0 {
				v = w * (v/2 - low/2) / half
				out[i] = math.Max(out[i], v)
				total[i] += v
			}
		}
	}
	for i := range out {
		out[i] += 0.05 * total[i]
	}
	return out
}

// objective is the losses of the measured trials in one objective.
func (d *data) objective(k int) []float64 {
	out := make([]float64, len(d.measured))
	for i, o := range d.measured {
		out[i] = o.Losses[k]
	}
	return out
}

// violated are the rows of trials that do not hold the constraints; nil when
// there are none.
func (d *data) violated() map[string]bool {
	if len(d.study.Constraints) == 0 {
		return nil
	}
	out := make(map[string]bool)
	for _, o := range d.measured {
		if o.Violation > 0 {
			out[history.RowKey(o.X)] = true
			if d.levels.joint() {
				out[history.RowKey(whole(o.X))] = true
			}
		}
	}
	return out
}

const (
	// modelled is how many results a model sees at most, apart from the newest.
	modelled = 500
	// rowsOfCurves is the same for results at the levels of curves.
	rowsOfCurves = 400
)

// subset picks the measured trials that models see, by their losses: trials that
// do not hold the constraints are behind all others.
func (d *data) subset(losses []float64) []int {
	if len(d.study.Constraints) > 0 {
		losses = slices.Clone(losses)
		for i, o := range d.measured {
			if o.Violation > 0 {
				losses[i] = math.MaxFloat64
			}
		}
	}
	most := modelled
	if d.levels.joint() {
		most = rowsOfCurves
	}
	return subset(rowsOf(d.measured), losses, most)
}
