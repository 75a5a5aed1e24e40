package bayes

import (
	"math"

	"github.com/vernier-ml/vernier/suggest/numeric/gp"
)

// transforms of the losses, in the order in which trials take turns. Choosing
// them by how well their models predict was no better than turns.
var transforms = [...]gp.Transform{gp.HalfRank, gp.Linear, gp.LogHalfRank, gp.Power}

// arm is one way of the portfolio: how losses are transformed before they are
// modelled, and the acquisition function.
type arm struct {
	transform gp.Transform
	function  string
	perSecond bool // of the time that trials take
}

// manyRunning is from how many pending trials on each fourth one explores.
const manyRunning = 4

// portfolio says which arm a trial is for: trials take turns, as no single choice
// is good for all functions.
type portfolio struct {
	function string // as the user chose it; gp_hedge leaves it to the portfolio
	budget   int    // of trials; 0: not known
	forest   bool   // models the losses
}

// arm of a trial, while so many others are running.
func (p portfolio) arm(number, running int) arm {
	out := arm{transform: transforms[number%len(transforms)], function: p.function}
	switch out.function {
	case "EIps":
		out.function, out.perSecond = "EI", true
	case "PIps":
		out.function, out.perSecond = "PI", true
	case "gp_hedge":
		if p.forest {
			return byForest(number)
		}
		turn := number % 16
		switch {
		case running < manyRunning && p.last(number):
			out.function = "mean"
		case running >= manyRunning && number/4%4 == number%4: // each transform once in 16
			out.function = "PE"
		case turn == 3 || turn == 6 || turn == 9 || turn == 12: // each transform once, too
			out.function = "LCB"
		default:
			out.function = "EI"
		}
	}
	return out
}

// byForest is the arm where a forest models the losses: it changes with each trial, which
// is variety enough, and it has no use for the scale of bad losses.
func byForest(number int) arm {
	out := arm{transform: gp.HalfRank, function: "EI"}
	if number%2 == 1 {
		out.transform = gp.LogHalfRank
	}
	return out
}

// lastShare is the share of the budget that is spent, at its end, where the
// model's mean is lowest: what is learned then is of no use any more.
const lastShare = 0.06

// last says whether a trial is one of the last. The very first trials are not,
// however small the budget.
func (p portfolio) last(number int) bool {
	budget := float64(p.budget)
	return number >= 20 && float64(number) >= (1-lastShare)*budget && float64(number) < budget
}

// utility of a point when best is to be improved upon; nil when nothing is known
// that holds the constraints.
func (a arm) utility(best float64) gp.Utility {
	if math.IsInf(best, 1) {
		return nil
	}
	switch a.function {
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

// why a point of the arm is proposed by a model.
func (a arm) why(forest bool) string {
	model := "Gaussian process"
	if forest {
		model = "forest"
	}
	return map[string]string{
		"EI":   "the expected improvement is largest here",
		"PI":   "an improvement is most probable here",
		"LCB":  "the value may be lowest here",
		"PE":   "least is known here among what may be good",
		"mean": "the value is expected to be lowest here, and this is one of the last trials",
		"EHVI": "the front is expected to advance most here",
	}[a.function] + " (" + model + ", losses transformed: " + string(a.transform) + ")"
}
