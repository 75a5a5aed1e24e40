package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"

	"github.com/vernier-ml/vernier/bench/suggest/play"
	"github.com/vernier-ml/vernier/bench/suggest/problem"
	"github.com/vernier-ml/vernier/bench/suggest/stat"
)

// printTable shows for each game, over its seeds: the median distance to the
// optimum after a quarter, a half and all of the budget, how often the optimum
// was found, and what a suggestion cost.
func printTable(out io.Writer, records []play.Record) error {
	byName := map[string]*problem.Problem{}
	for _, p := range problem.All() {
		byName[p.Name] = p
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "problem\tregime\tmethod\tseeds\tbudget\tat 1/4\tat 1/2\tat end\tsuccess\tCPU ask p50\tp95\twall p95\tfailed\t")
	for _, group := range groups(records) {
		p, first := byName[group[0].Problem], group[0]
		var costs, tails, walls []float64
		var failed int
		var why string
		for _, r := range group {
			if r.Error != "" {
				failed, why = failed+1, r.Error
			}
			costs, tails, walls = append(costs, r.CPU.Median), append(tails, r.CPU.P95), append(walls, r.Wall.P95)
		}
		budget := float64(first.Budget)
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d\t", first.Problem, first.Regime, first.Method, len(group), first.Budget)
		for _, at := range []float64{budget / 4, budget / 2, budget} {
			fmt.Fprintf(w, "%.3g\t", medianRegret(p, group, at))
		}
		fmt.Fprintf(w, "%.0f%%\t%s\t%s\t%s\t%d\t\n", 100*successes(p, group), seconds(stat.Median(costs)), seconds(stat.Median(tails)), seconds(stat.Median(walls)), failed)
		if failed > 0 {
			fmt.Fprintf(out, "%s, %s on %s: %d failed: %.300s\n", first.Method, first.Regime, first.Problem, failed, why)
		}
	}
	return w.Flush()
}

func seconds(s float64) string { return fmt.Sprintf("%.3gms", 1e3*s) }

// groups are the records that differ by seed only, in order of problem, regime
// and method.
func groups(records []play.Record) [][]play.Record {
	records = slices.Clone(records)
	slices.SortStableFunc(records, func(a, b play.Record) int {
		return cmp.Or(cmp.Compare(a.Suite, b.Suite), cmp.Compare(a.Problem, b.Problem), cmp.Compare(a.Regime, b.Regime),
			cmp.Compare(a.Budget, b.Budget), cmp.Compare(a.Method, b.Method), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Seed, b.Seed))
	})
	var out [][]play.Record
	for i := 0; i < len(records); {
		j := i
		for j < len(records) && sameButSeed(records[i].Key, records[j].Key) {
			j++
		}
		out = append(out, records[i:j])
		i = j
	}
	return out
}

func sameButSeed(a, b play.Key) bool {
	a.Seed = b.Seed
	return a == b
}

// medianRegret is the distance to the optimum, or the loss itself where the
// optimum is not known.
func medianRegret(p *problem.Problem, group []play.Record, at float64) float64 {
	list := make([]float64, len(group))
	for i, r := range group {
		list[i] = regret(p, r, at)
	}
	return stat.Median(list)
}

func regret(p *problem.Problem, r play.Record, at float64) float64 {
	if math.IsNaN(p.Optimum) {
		return r.After(at)
	}
	return math.Max(0, r.After(at)-p.Optimum)
}

// successes is the share of games that came close to the optimum: within a
// hundredth of the distance from it to the median of random points.
func successes(p *problem.Problem, group []play.Record) float64 {
	if math.IsNaN(p.Optimum) { // and so there is nothing to be near to
		return math.NaN()
	}
	near := 0.01 * (problem.RandomMedian(p) - p.Optimum)
	n := 0
	for _, r := range group {
		if regret(p, r, math.Inf(1)) <= near {
			n++
		}
	}
	return float64(n) / float64(len(group))
}
