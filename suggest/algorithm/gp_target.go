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
	results     int
	why         string
}

// arm is one way of a portfolio.
type arm struct {
	transform gp.Transform
	function  string
}

// arm of a trial: trials take turns.
func (q *question) arm(number int) arm {
	out := arm{transform: [2]gp.Transform{gp.HalfRank, gp.Linear}[number%2], function: q.settings.function}
	switch out.function {
	case "gp_hedge":
		out.function = "EI"
		if number%8 == 3 || number%8 == 6 {
			out.function = "LCB"
		}
	case "EIps":
		out.function = "EI"
	case "PIps":
		out.function = "PI"
	}
	if q.settings.function == "gp_hedge" && len(q.running) >= 2 && number%4 == 1 {
		out.function = "PE"
	}
	return out
}

// losses of the measured trials, scalar. Pruned ones count as no better than
// the median of the others, as they were stopped for a reason.
func (q *question) losses(number int) (rows [][]float64, losses []float64) {
	losses = q.scalarized(number)
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
	rows, losses := q.losses(number)
	s := sample{results: len(rows)}
	var raw []float64
	s.rows, raw, s.weights = distinct(rows, losses)
	if slices.Min(raw) == slices.Max(raw) {
		return t, "constant"
	}
	way := q.arm(number)
	s.role, s.outcomes = string(way.transform), way.transform.Apply(raw)
	t.theta = q.theta(s, number)
	m, ok := q.model(s, t.theta)
	if !ok {
		return t, "singular"
	}
	fitted := s.outcomes
	if m.Theta().Noise() > 1e-2*m.Theta().Signal() {
		fitted = m.Fitted(s.outcomes)
	}
	order := make([]int, len(fitted))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		switch {
		case fitted[i] < fitted[j]:
			return -1
		case fitted[i] > fitted[j]:
			return 1
		}
		return i - j
	})
	for _, i := range order[:min(10, len(order))] {
		t.anchors = append(t.anchors, s.rows[i])
	}
	t.results = len(s.rows)
	utility := q.utility(way, m, fitted[order[0]])
	for _, row := range q.running {
		m.AppendPending(row)
	}
	t.acquisition.Models = []*gp.Model{m}
	t.acquisition.Utility = utility
	t.why = map[string]string{
		"EI":  "the expected improvement is largest here",
		"PI":  "an improvement is most probable here",
		"LCB": "the value may be lowest here",
		"PE":  "least is known here among what may be good",
	}[way.function] + " (Gaussian process, losses transformed: " + string(way.transform) + ")"
	return t, ""
}

func (q *question) utility(way arm, m *gp.Model, best float64) gp.Utility {
	switch way.function {
	case "LCB":
		return gp.LowerBound{Beta: 1.8}
	case "PI":
		return gp.ProbableImprovement{Best: best - 0.01}
	case "PE":
		return gp.Exploration{Threshold: best}
	}
	return gp.Improvement{Best: best}
}
