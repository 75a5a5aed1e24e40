package collector

import (
	"strconv"
	"strings"
)

// Strategy says which of a metric's values stands for the trial: min, max,
// latest, best-at-step, or mean-last-K with K from 1 to MaxMeanLast.
type Strategy string

// The strategies without a number; the first three are Katib's.
const (
	StrategyMin        Strategy = "min"
	StrategyMax        Strategy = "max"
	StrategyLatest     Strategy = "latest"
	StrategyBestAtStep Strategy = "best-at-step"
)

// MaxMeanLast bounds the K of mean-last-K, and so what a reduction holds.
const MaxMeanLast = 1000

const meanLast = "mean-last-"

// MeanLast returns K of mean-last-K, and zero for any other strategy.
func (s Strategy) MeanLast() int {
	number, ok := strings.CutPrefix(string(s), meanLast)
	if !ok {
		return 0
	}
	k, err := strconv.Atoi(number)
	if err != nil || k < 1 || k > MaxMeanLast || strconv.Itoa(k) != number {
		return 0
	}
	return k
}

// WholeCurve reports whether the strategy needs every point, where the others
// make do with the least, the greatest and the last.
func (s Strategy) WholeCurve() bool { return s == StrategyBestAtStep || s.MeanLast() > 0 }

// Ask is a metric and how to condense it.
type Ask struct {
	Metric string
	// Strategy says what Observation.Chosen is. Empty: nothing is chosen.
	Strategy Strategy
	// Objective is the metric that says which step is best, and Maximize its
	// direction. For StrategyBestAtStep only.
	Objective string
	Maximize  bool
}
