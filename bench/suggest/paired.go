package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/vernier-ml/vernier/bench/suggest/play"
	"github.com/vernier-ml/vernier/bench/suggest/problem"
)

// chapter is a part of the paired run, such as one of the six regimes that count: a part of the whole
// protocol that 30 seeds of cheap peers can finish in some hours of two cores.
// Its tasks were chosen before it was played, for their cost and so that no two
// of a regime are of one family.
type chapter struct {
	name    string
	methods words
	parts   []part
}

// pairedSeeds is how many seeds the chapters have that decide.
const pairedSeeds = "30"

// pairedPlan is played with the budgets of the protocol, so that the full run
// goes on from its results.
func pairedPlan() []chapter {
	return slices.Concat(decidingChapters(), slowChapters(), otherChapters(), familyChapters())
}

// The methods of ours, and the peers' defaults, that play all regimes of numbers.
func pairedMethods() words { return words{"auto", "tpe", "cmaes", "random"} }
func pairedRivals() words  { return words{"optuna-cmaes", "optuna-tpe"} }

func continuousPart() part {
	return part{
		words{problem.Continuous},
		words{"branin-2", "hartmann-6", "ackley-10", "levy-8", "rosenbrock-5", "rastrigin-5", "bbob-f10-10", "bbob-f15-10", "bbob-f16-3", "bbob-f21-3"},
		words{play.Sequential}, pairedRivals(), pairedSeeds, 0,
	}
}

func mixedPart() part {
	return part{
		words{problem.Mixed},
		words{"mixed-8", "network-7", "whole-rastrigin-8", "switches-23", "pairs-6", "tree-12", "quantised-hartmann-6", "crashing-hartmann-6"},
		words{play.Sequential}, pairedRivals(), pairedSeeds, 0,
	}
}

func parallelParts() []part {
	rivals := pairedRivals()
	return []part{
		{words{problem.Continuous, problem.Mixed}, words{"hartmann-6", "ackley-10", "mixed-8", "pairs-6"}, words{play.BatchOf8}, rivals, pairedSeeds, 0},
		{words{problem.Continuous}, words{"levy-8"}, words{play.Async32}, rivals, pairedSeeds, 0},
		{words{problem.Mixed}, words{"whole-rastrigin-8"}, words{play.Async64}, rivals, pairedSeeds, 0},
	}
}

// sequentialAndParallel are the parts that further peers play too.
func sequentialAndParallel() []part {
	return append([]part{continuousPart(), mixedPart()}, parallelParts()...)
}

// decidingChapters are the six regimes that count.
func decidingChapters() []chapter {
	numbers := pairedMethods()
	return []chapter{
		{"continuous", numbers, []part{continuousPart()}},
		{"mixed", numbers, []part{mixedPart()}},
		{"parallel", numbers, parallelParts()},
		{"fronts", words{"auto", "nsga2", "multivariate-tpe", "random"}, []part{{
			words{problem.MultiObjective}, words{"zdt1-12", "zdt3-12", "dtlz2-7", "wfg4-6", "c2-dtlz2-6", "osy-6"},
			words{play.Fronts}, words{"optuna-nsga2", "optuna-tpe"}, pairedSeeds, 0,
		}}},
		{"fidelity", words{"mobster", "auto+asha", "asha", "random"}, []part{{
			words{problem.Fidelity}, words{"curve-crossing-6", "curve-network-7", "curve-diverging-8"},
			words{play.Fidelity8}, words{"dehb-default", "optuna-tpe+asha", "synetune-asha"}, pairedSeeds, 0,
		}}},
		{"large", numbers, []part{{
			words{problem.Continuous}, words{"ackley-10", "rosenbrock-10", "rastrigin-5"},
			words{play.Large}, words{"optuna-cmaes"}, pairedSeeds, 0,
		}}},
	}
}

// slowChapters are for peers that cost more than the others together.
func slowChapters() []chapter {
	return []chapter{
		// It costs more than all that play the chapters that decide.
		{"hyperopt", nil, with(sequentialAndParallel(), "10", "hyperopt-tpe")},
		// Those that need seconds for a suggestion: fewer evaluations, and eight
		// at a time where a batch costs no more than a point.
		{"gp", words{"auto", "bayesianoptimization", "random"}, []part{{
			words{problem.Continuous}, shortTasks(), words{play.Short},
			words{"bayesopt-default", "nevergrad-ngopt", "optuna-gp", "optuna-tpe", "skopt-gp", "smac-gp"}, "10", 0,
		}}},
		{"gp-batch", words{"auto", "bayesianoptimization", "random"}, []part{{
			words{problem.Continuous}, shortTasks(), words{play.ShortBatch}, words{"ax-default", "hebo-default"}, "10", 0,
		}}},
		{"gp-slow", nil, []part{{
			words{problem.Continuous}, words{"hartmann-6", "styblinski-8", "rastrigin-5"},
			words{play.ShortBatch}, words{"vizier-default"}, "10", 0,
		}}},
	}
}

// shortTasks are of different families, and those that most peers play.
func shortTasks() words {
	return words{"branin-2", "hartmann-6", "styblinski-8", "rastrigin-5", "rosenbrock-5", "levy-8", "ackley-10", "bbob-f15-10"}
}

// otherChapters are for what is not the default of anybody.
func otherChapters() []chapter {
	return []chapter{
		{"goptuna", nil, with(sequentialAndParallel(), pairedSeeds, "goptuna-cmaes", "goptuna-tpe")},
		{"others", words{"sobol", "halton", "regularized-evolution"}, with([]part{continuousPart(), mixedPart()}, pairedSeeds)},
		{"others-fidelity", words{"hyperband", "successive-halving", "pasha", "bohb", "dehb"}, []part{{
			words{problem.Fidelity}, words{"curve-crossing-6", "curve-network-7", "curve-diverging-8"},
			words{play.Fidelity8}, nil, pairedSeeds, 0,
		}}},
		{"others-fronts", words{"nsga3"}, []part{{
			words{problem.MultiObjective}, words{"zdt1-12", "zdt3-12", "dtlz2-7", "wfg4-6", "c2-dtlz2-6", "osy-6"},
			words{play.Fronts}, nil, pairedSeeds, 0,
		}}},
		{"architectures", words{"enas", "regularized-evolution", "tpe", "random"}, []part{{
			words{problem.Mixed}, words{"picks-5", "clauses-20", "pests-8"}, words{play.Sequential}, nil, pairedSeeds, 0,
		}}},
	}
}

// familyChapters are what is left, so that no family goes without a comparison
// with random search.
func familyChapters() []chapter {
	return []chapter{
		{"families", pairedMethods(), []part{
			{words{problem.Continuous}, words{"griewank-6", "michalewicz-10", "styblinski-8", "sphere-10", "bbob-f1-3", "bbob-f2-3", "bbob-f6-3", "bbob-f8-3", "bbob-f12-3", "bbob-f17-3", "bbob-f20-3", "bbob-f22-3"}, words{play.Sequential}, nil, "10", 0},
			{words{problem.Mixed}, words{"ordinal-5", "stepped-rosenbrock-4", "picks-5", "clauses-20", "pests-8", "branin-25", "quantised-ackley-5", "crashing-branin-2"}, words{play.Sequential}, nil, "10", 0},
			{words{problem.Noisy}, words{"noisy20-hartmann-6", "noisy20-styblinski-8", "noisy20-ackley-10", "uneven-levy-8", "noisy20-rosenbrock-5", "noisy20-branin-2"}, words{play.Sequential}, nil, "10", 0},
		}},
		{"families-fidelity", words{"mobster", "random"}, []part{{
			words{problem.Fidelity}, words{"curve-branin-2", "curve-hartmann-6"}, words{play.Fidelity8}, nil, "10", 0,
		}}},
		{"families-fronts", words{"auto", "nsga2", "multivariate-tpe", "random"}, []part{{
			words{problem.MultiObjective}, words{"zdt2-12", "zdt6-10", "dtlz7-6", "bnh-2"}, words{play.Fronts}, nil, "10", 0,
		}}},
	}
}

// with are the parts, for other peers and another number of seeds.
func with(parts []part, seeds string, peers ...string) []part {
	out := slices.Clone(parts)
	for i := range out {
		out[i].peers, out[i].seeds = peers, seeds
	}
	return out
}

// pairedCommand plays the chapters seed by seed, so that all tasks have equally
// many seeds whenever it is stopped.
func pairedCommand(ctx context.Context, args []string) error {
	var o options
	var wanted words
	set := flag.NewFlagSet("paired", flag.ContinueOnError)
	o.flags(set)
	o.seeds = ""
	set.Var(&wanted, "chapter", "chapters: "+names(pairedPlan())+"; all by default")
	if err := parse(set, args); err != nil {
		return err
	}
	if o.out == "" {
		return errors.New("name the file for the results: -out results.jsonl")
	}
	jobs, err := o.chapters(pairedPlan(), wanted)
	if err != nil {
		return err
	}
	store, err := play.OpenStore(o.out)
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }() // each result was written when it came
	left := slices.DeleteFunc(jobs, func(j job) bool { return store.Has(j.key) })
	fmt.Fprintf(os.Stderr, "%d games are left\n", len(left))
	return o.play(ctx, store, left)
}

// names of chapters, for people.
func names(all []chapter) string {
	out := make([]string, len(all))
	for i, c := range all {
		out[i] = c.name
	}
	return strings.Join(out, ", ")
}

// chapters are the games of those that are wanted: seed by seed, and within a
// seed method by method, so that a peer's process is started once a seed.
func (o *options) chapters(all []chapter, wanted words) ([]job, error) {
	for _, name := range wanted {
		if !slices.ContainsFunc(all, func(c chapter) bool { return c.name == name }) {
			return nil, fmt.Errorf("there is no chapter %q; use some of %s", name, names(all))
		}
	}
	var out []job
	for _, c := range all {
		if len(wanted) > 0 && !slices.Contains(wanted, c.name) {
			continue
		}
		for _, p := range c.parts {
			q := *o
			q.suites, q.problems, q.regimes, q.budget = p.suites, p.problems, p.regimes, p.budget
			if len(q.methods) == 0 && len(q.peers) == 0 {
				q.methods, q.peers = c.methods, p.peers
			}
			if q.seeds == "" {
				q.seeds = p.seeds
			}
			jobs, err := q.plan()
			if err != nil {
				return nil, fmt.Errorf("chapter %s: %w", c.name, err)
			}
			out = append(out, jobs...)
		}
	}
	slices.SortStableFunc(out, func(a, b job) int {
		return cmp.Or(cmp.Compare(a.key.Seed, b.key.Seed), cmp.Compare(a.key.Method, b.key.Method))
	})
	return out, nil
}
