package parse

// StepNames are the names of a step, the best first: where a source states
// several, the finest counts.
func StepNames() []string { return []string{"global_step", "step", "iteration", "iter", "epoch"} }

// IsStep says whether a name, in any case, is that of a step.
func IsStep(name string) bool { return rankOf([]byte(name)) != noRank }

// Step returns v as a step, if it is one: a whole number from 0 to 2^53.
func Step(v float64) (int64, bool) { return integral(v) }
