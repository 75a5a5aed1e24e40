package algorithm

import (
	"math"
	"slices"

	"github.com/vernier-ml/vernier/suggest/numeric/gp"
)

// target is what the search maximises, and where it begins.
type target struct {
	acquisition gp.Acquisition
	theta       gp.Theta
	anchors     [][]float64 // good rows, best first
	low, high   []float64   // of the search; nil: everything
	why         string
}

// losses of the measured trials, scalar. Pruned ones count as no better than
// the median of the others, as they were stopped for a reason.
func (q *question) losses(number int) (rows [][]float64, losses []float64) {
	losses = q.scalarized(number)
	if q.levels.joint() {
		return q.rows(q.history.measured), q.aligned(losses)
	}
	var complete []float64
	for i, o := range q.history.measured {
		rows = append(rows, o.x)
		if !o.pruned {
			complete = append(complete, losses[i])
		}
	}
	if len(complete) > 0 && len(complete) < len(losses) {
		slices.Sort(complete)
		middle := complete[len(complete)/2]
		for i, o := range q.history.measured {
			if o.pruned {
				losses[i] = math.Max(losses[i], middle)
			}
		}
	}
	return rows, losses
}

// scalarized are the losses of the measured trials: with several objectives,
// their augmented Chebyshev scalarisation with the trial's own random weights
// (ParEGO: Knowles 2006).
func (q *question) scalarized(number int) []float64 {
	measured := q.history.measured
	out := make([]float64, len(measured))
	objectives := len(q.study.Objectives)
	if objectives == 1 {
		for i, o := range measured {
			out[i] = o.losses[0]
		}
		return out
	}
	stream := q.stream("weights", number)
	weights, sum := make([]float64, objectives), 0.0
	total := make([]float64, len(measured))
	for k := range weights {
		weights[k] = -math.Log(stream.Float64())
		sum += weights[k]
	}
	for k, w := range weights {
		column := make([]float64, len(measured))
		for i, o := range measured {
			column[i] = o.losses[k]
		}
		low, high := slices.Min(column), slices.Max(column)
		half := high/2 - low/2 // not to overflow
		for i, v := range column {
			if half > 0 {
				column[i] = w / sum * (v/2 - low/2) / half
			} else {
				column[i] = 0
			}
			out[i] = math.Max(out[i], column[i])
			total[i] += column[i]
		}
	}
	for i := range out {
		out[i] += 0.05 * total[i]
	}
	return out
}

// acquisition builds the models and says what to look for. problem is a word
// when that is not possible.
func (q *question) acquisition(number int) (t target, problem string) {
	if q.exact() {
		t, problem = q.frontTarget(number)
	} else {
		t, problem = q.lossTarget(number)
	}
	if problem == "singular" && q.ctx.Err() != nil {
		problem = "deadline"
	}
	if problem == "" && t.acquisition.Utility == nil {
		problem = "constraints" // nothing holds them, and there is too little to model them
	}
	return t, problem
}

// lossTarget models one loss.
func (q *question) lossTarget(number int) (t target, problem string) {
	rows, losses := q.losses(number)
	kept := q.subset(rows, q.penalized(losses))
	var keptRows [][]float64
	var raw []float64
	for _, i := range kept {
		keptRows, raw = append(keptRows, rows[i]), append(raw, losses[i])
	}
	d := lossData{results: len(rows), warm: q.experience(number)}
	d.rows, d.losses, d.weights = distinct(keptRows, raw)
	if slices.Min(d.losses) == slices.Max(d.losses) {
		return t, "constant"
	}
	way := q.arm(number)
	s, warm := d.sample(way.transform), d.warm
	if warm != nil {
		t.acquisition.Offset = warm.offset
	}
	t.theta = q.theta(s, number)
	m, ok := q.model(s, t.theta, q.running)
	if !ok {
		return t, "singular"
	}
	fitted := s.outcomes
	if t.theta.Noise() > 1e-2*t.theta.Signal() {
		fitted = m.Fitted()
	}
	candidates := s.rows
	if q.levels.joint() {
		candidates = q.wholes(s.rows)
		fitted = m.Predict(candidates, false).Mean
	}
	best := q.anchor(&t, candidates, fitted, warm)
	t.low, t.high = q.region(number, t.theta, t.anchors[0], losses)
	t.acquisition.Models = []*gp.Model{m}
	t.acquisition.Utility = q.utility(way, best)
	q.bound(&t, number, kept)
	t.why = map[string]string{
		"EI":   "the expected improvement is largest here",
		"PI":   "an improvement is most probable here",
		"LCB":  "the value may be lowest here",
		"PE":   "least is known here among what may be good",
		"mean": "the value is expected to be lowest here, and this is one of the last trials",
	}[way.function] + " (Gaussian process, losses transformed: " + string(way.transform) + ")"
	return t, ""
}

// penalized puts trials that do not hold the constraints behind all others.
func (q *question) penalized(losses []float64) []float64 {
	if len(q.study.Constraints) == 0 {
		return losses
	}
	out := slices.Clone(losses)
	for i, o := range q.history.measured {
		if o.violation > 0 {
			out[i] = math.MaxFloat64
		}
	}
	return out
}

// violated are the rows of trials that do not hold the constraints.
func (q *question) violated() map[string]bool {
	if len(q.study.Constraints) == 0 {
		return nil
	}
	out := make(map[string]bool)
	for _, o := range q.history.measured {
		if o.violation > 0 {
			out[rowKey(o.x)] = true
			if q.levels.joint() {
				out[rowKey(q.wholes([][]float64{o.x})[0])] = true
			}
		}
	}
	return out
}

// anchor sets the rows that the search begins at, and gives the value to
// improve upon: that of the best row which holds the constraints, +Inf when
// there is none.
func (q *question) anchor(t *target, rows [][]float64, fitted []float64, warm *experience) float64 {
	values := slices.Clone(fitted)
	if warm != nil {
		offsets, _ := warm.offset(rows, false)
		for i, o := range offsets {
			values[i] += o
		}
	}
	violated := q.violated()
	best := math.Inf(1)
	ranks := slices.Clone(values)
	for i, row := range rows {
		if len(violated) > 0 && violated[rowKey(row)] {
			ranks[i] = math.MaxFloat64
			continue
		}
		best = math.Min(best, values[i])
	}
	for _, i := range ascending(ranks)[:min(10, len(ranks))] {
		t.anchors = append(t.anchors, rows[i])
	}
	return best
}

// bound adds the models of what must hold.
func (q *question) bound(t *target, number int, kept []int) {
	limits := q.limits(number, kept)
	if len(limits) == 0 {
		return
	}
	u := gp.Bounded{Utility: t.acquisition.Utility}
	for _, l := range limits {
		t.acquisition.Models = append(t.acquisition.Models, l.model)
		u.Limits, u.Blurs = append(u.Limits, l.bound), append(u.Blurs, l.blur)
	}
	t.acquisition.Utility = u
}

// utility is nil when nothing is known that holds the constraints.
func (q *question) utility(way arm, best float64) gp.Utility {
	if math.IsInf(best, 1) {
		return nil
	}
	switch way.function {
	case "mean":
		return gp.LowerBound{}
	case "LCB":
		return gp.LowerBound{Beta: 1.8}
	case "PI":
		return gp.ProbableImprovement{Best: best - 0.01}
	case "PE":
		return gp.Exploration{Threshold: best}
	}
	return gp.Improvement{Best: best}
}
