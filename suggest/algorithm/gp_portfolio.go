package algorithm

import "github.com/vernier-ml/vernier/suggest/numeric/gp"

// transforms of the losses, in the order in which trials take turns. Choosing
// them by how well their models predict was no better than turns.
var transforms = [...]gp.Transform{gp.HalfRank, gp.Linear, gp.LogHalfRank, gp.Power}

// manyRunning is from how many pending trials on each fourth one explores.
const manyRunning = 4

// arm is one way of the portfolio.
type arm struct {
	transform gp.Transform
	function  string
}

// manyResults is from how many results on the first two transforms take turns
// only: there, models take tens of megabytes, and fits up to a second, each.
const manyResults = 400

// arm of a trial: trials take turns.
func (q *question) arm(number int) arm {
	out := arm{transform: transforms[number%len(transforms)], function: q.settings.function}
	if len(q.history.measured) >= manyResults {
		out.transform = transforms[number%2]
		for _, t := range transforms[2:] {
			delete(q.models, string(t))
		}
	}
	switch out.function {
	case "gp_hedge":
		out.function = "EI"
		if r := number % 16; r == 3 || r == 6 || r == 9 || r == 12 { // each transform once
			out.function = "LCB"
		}
	case "EIps":
		out.function = "EI"
	case "PIps":
		out.function = "PI"
	}
	if q.settings.function == "gp_hedge" && len(q.running) >= manyRunning && number/4%4 == number%4 { // each transform once in 16, too
		out.function = "PE"
	}
	if q.settings.function == "gp_hedge" && len(q.running) < manyRunning && q.last(number) {
		out.function = "mean"
	}
	return out
}

// lastShare is the share of the budget that is spent, at its end, where the
// model's mean is lowest: what is learned then is of no use any more.
const lastShare = 0.06

// last says whether a trial is one of the last. The very first trials are not,
// however small the budget.
func (q *question) last(number int) bool {
	budget := float64(q.study.Budget)
	return number >= 20 && float64(number) >= (1-lastShare)*budget && float64(number) < budget
}

// lossData is what the models of the losses learn from.
type lossData struct {
	rows    [][]float64
	losses  []float64
	weights []float64 // of the noise
	results int
	warm    *experience
}

// sample is the data under a transform.
func (d lossData) sample(t gp.Transform) sample {
	s := sample{role: string(t), rows: d.rows, weights: d.weights, outcomes: t.Apply(d.losses), results: d.results, trend: true, quartic: t == gp.Linear}
	if d.warm != nil {
		d.warm.explain(&s)
		s.role += " after warm"
	}
	return s
}
