package cma

import "math"

// Strategy says how a search that has converged begins anew.
type Strategy string

// The strategies.
const (
	// None goes on with what it has.
	None Strategy = "none"
	// IPOP doubles the population each time (Auger and Hansen, "A restart CMA
	// evolution strategy with increasing population size", 2005).
	IPOP Strategy = "ipop"
	// BIPOP has besides a regime of small populations and steps, and gives both
	// the same budget (Hansen, "Benchmarking a BI-population CMA-ES on the
	// BBOB-2009 function testbed", 2009).
	BIPOP Strategy = "bipop"
)

// Restarts counts the runs of a search and what they cost.
type Restarts struct {
	// Strategy in use.
	Strategy Strategy
	// Population and Sigma of the first run.
	Population int
	Sigma      float64

	large int // runs with a population that grows, the first one included
	last  int // the cost of the last of these
	costs [2]int
	small bool // the present run's regime
}

// Spent says whether a run that has cost so many results ends for that: one of the
// small regime has half of what the last large run cost.
func (r *Restarts) Spent(cost int) bool { return r.small && 2*cost >= r.last }

// Next is the population and the step size of the next run, after one that cost
// the given number of results. u and v are uniform between 0 and 1.
func (r *Restarts) Next(cost int, u, v float64) (population int, sigma float64) {
	if !r.small {
		r.last = cost
	}
	if r.large == 0 {
		r.large = 1
		cost = 0 // the first run belongs to neither regime
	}
	if r.small {
		r.costs[1] += cost
	} else {
		r.costs[0] += cost
	}
	growth := math.Ldexp(1, min(r.large, 20))
	if r.Strategy == BIPOP && r.large > 1 && r.costs[1] < r.costs[0] {
		r.small = true
		n := float64(r.Population) * math.Pow(growth/4, u*u) // growth/2 is that of the last large run
		return max(2, int(n)), r.Sigma * math.Pow(10, -2*v)
	}
	r.small = false
	r.large++
	return min(r.Population*int(growth), 100_000), r.Sigma
}
