package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/vernier-ml/vernier/bench/suggest/play"
	"github.com/vernier-ml/vernier/bench/suggest/problem"
	"github.com/vernier-ml/vernier/bench/suggest/report"
)

// part of a plan: games that are played with the same seeds.
type part struct {
	name, seeds       string
	budget            int // 0: what the regime says
	regimes, problems words
	methods, peers    words
}

// smokePlan takes at most ten minutes on two cores, the installation of the
// peers included.
func smokePlan() []part {
	ours := words{"auto", "tpe", "random"}
	return []part{
		{"numbers", "5", 60, words{play.Sequential}, words{"branin-2", "hartmann-6", "ackley-10", "rosenbrock-5", "bbob-f15-10", "mixed-8", "network-7", "tree-12", "clauses-20"},
			append(words{"bayesianoptimization", "cmaes", "multivariate-tpe"}, ours...), words{"hyperopt-tpe", "optuna-cmaes", "optuna-tpe"}},
		{"parallel", "3", 64, words{play.BatchOf8, play.Async32}, words{"branin-2", "hartmann-6"}, ours, words{"optuna-tpe"}},
		{"large", "1", 300, words{play.Large}, words{"rosenbrock-5"}, words{"auto", "cmaes", "random"}, words{"optuna-cmaes"}},
		{"noise", "5", 60, words{play.Sequential}, words{"noisy20-hartmann-6"}, ours, words{"optuna-tpe"}},
		{"fidelity", "3", 20, words{play.Fidelity8}, words{"curve-crossing-6", "curve-network-7"}, words{"mobster", "asha", "hyperband", "random"}, words{"optuna-tpe+asha", "optuna-tpe+hyperband"}},
		{"fronts", "3", 60, words{play.Fronts}, words{"zdt1-12", "dtlz2-7"}, words{"auto", "nsga2", "random"}, words{"optuna-nsga2", "optuna-tpe"}},
	}
}

// fullPlan is what docs/benchmarks.md shows: what 30 seeds of cheap peers can
// finish in some hours of two cores. Its tasks were chosen before it was played,
// for their cost and so that no two of a regime are of one family.
func fullPlan() []part {
	return slices.Concat(decidingParts(), slowParts(), otherParts(), familyParts())
}

// seeds is how many the parts have that decide.
const seeds = "30"

// What plays all regimes of numbers, ours and the peers' defaults.
func numberMethods() words { return words{"auto", "tpe", "cmaes", "random"} }

func continuousTasks() words {
	return words{"branin-2", "hartmann-6", "ackley-10", "levy-8", "rosenbrock-5", "rastrigin-5", "bbob-f10-10", "bbob-f15-10", "bbob-f16-3", "bbob-f21-3"}
}

func mixedTasks() words {
	return words{"mixed-8", "network-7", "whole-rastrigin-8", "switches-23", "pairs-6", "tree-12", "quantised-hartmann-6", "crashing-hartmann-6"}
}

func frontTasks() words {
	return words{"zdt1-12", "zdt3-12", "dtlz2-7", "wfg4-6", "c2-dtlz2-6", "osy-6"}
}

func curveTasks() words { return words{"curve-crossing-6", "curve-network-7", "curve-diverging-8"} }

// numberParts are the regimes of numbers but for the large one.
func numberParts(seeds string, methods, peers words) []part {
	return []part{
		{"continuous", seeds, 0, words{play.Sequential}, continuousTasks(), methods, peers},
		{"mixed", seeds, 0, words{play.Sequential}, mixedTasks(), methods, peers},
		{"parallel", seeds, 0, words{play.BatchOf8}, words{"hartmann-6", "ackley-10", "mixed-8", "pairs-6"}, methods, peers},
		{"parallel", seeds, 0, words{play.Async32}, words{"levy-8"}, methods, peers},
		{"parallel", seeds, 0, words{play.Async64}, words{"whole-rastrigin-8"}, methods, peers},
	}
}

// decidingParts are the six regimes that count.
func decidingParts() []part {
	return append(numberParts(seeds, numberMethods(), words{"optuna-cmaes", "optuna-tpe"}), []part{
		{"fronts", seeds, 0, words{play.Fronts}, frontTasks(), words{"auto", "nsga2", "multivariate-tpe", "random"}, words{"optuna-nsga2", "optuna-tpe"}},
		{"fidelity", seeds, 0, words{play.Fidelity8}, curveTasks(), words{"mobster", "auto+asha", "asha", "random"}, words{"dehb-default", "optuna-tpe+asha", "synetune-asha"}},
		{"large", seeds, 0, words{play.Large}, words{"ackley-10", "rosenbrock-10", "rastrigin-5"}, numberMethods(), words{"optuna-cmaes"}},
	}...)
}

// slowParts are for peers that cost more than the others together.
func slowParts() []part {
	short := words{"branin-2", "hartmann-6", "styblinski-8", "rastrigin-5", "rosenbrock-5", "levy-8", "ackley-10", "bbob-f15-10"}
	ours := words{"auto", "bayesianoptimization", "random"}
	return append(numberParts("10", nil, words{"hyperopt-tpe"}), []part{
		// Those that need seconds for a suggestion: fewer evaluations, and eight at a
		// time where a batch costs no more than a point.
		{"gp", "10", 0, words{play.Short}, short, ours, words{"bayesopt-default", "nevergrad-ngopt", "optuna-gp", "optuna-tpe", "skopt-gp", "smac-gp"}},
		{"gp-batch", "10", 0, words{play.ShortBatch}, short, ours, words{"ax-default", "hebo-default"}},
		{"gp-slow", "10", 0, words{play.ShortBatch}, words{"hartmann-6", "styblinski-8", "rastrigin-5"}, nil, words{"vizier-default"}},
	}...)
}

// otherParts are for what is the default of no tuner.
func otherParts() []part {
	others := words{"sobol", "halton", "regularized-evolution"}
	return append(numberParts(seeds, nil, words{"goptuna-cmaes", "goptuna-tpe"}), []part{
		{"others", seeds, 0, words{play.Sequential}, slices.Concat(continuousTasks(), mixedTasks()), others, nil},
		{"others", seeds, 0, words{play.Fidelity8}, curveTasks(), words{"hyperband", "successive-halving", "pasha", "bohb", "dehb"}, nil},
		{"others", seeds, 0, words{play.Fronts}, frontTasks(), words{"nsga3"}, nil},
		{"architectures", seeds, 0, words{play.Sequential}, words{"picks-5", "clauses-20", "pests-8"}, words{"enas", "regularized-evolution", "tpe", "random"}, nil},
	}...)
}

// familyParts are what is left, so that no family goes without a comparison with
// random search.
func familyParts() []part {
	return []part{
		{"families", "10", 0, words{play.Sequential}, words{
			"griewank-6", "michalewicz-10", "styblinski-8", "sphere-10", "bbob-f1-3", "bbob-f2-3", "bbob-f6-3", "bbob-f8-3", "bbob-f12-3", "bbob-f17-3", "bbob-f20-3", "bbob-f22-3",
			"ordinal-5", "stepped-rosenbrock-4", "picks-5", "clauses-20", "pests-8", "branin-25", "quantised-ackley-5", "crashing-branin-2",
			"noisy20-hartmann-6", "noisy20-styblinski-8", "noisy20-ackley-10", "uneven-levy-8", "noisy20-rosenbrock-5", "noisy20-branin-2",
		}, numberMethods(), nil},
		{"families", "10", 0, words{play.Fidelity8}, words{"curve-branin-2", "curve-hartmann-6"}, words{"mobster", "random"}, nil},
		{"families", "10", 0, words{play.Fronts}, words{"zdt2-12", "zdt6-10", "dtlz7-6", "bnh-2"}, words{"auto", "nsga2", "multivariate-tpe", "random"}, nil},
	}
}

func smokeCommand(ctx context.Context, args []string) error {
	folder := filepath.Join("bin", "bench-suggest-results")
	return planned(ctx, args, smokePlan(),
		report.Options{Page: filepath.Join(folder, "smoke.md"), Folder: filepath.Join(folder, "benchmarks")})
}

func fullCommand(ctx context.Context, args []string) error {
	return planned(ctx, args, fullPlan(),
		report.Options{Page: filepath.Join("docs", "benchmarks.md"), Folder: filepath.Join("docs", "benchmarks"), Pages: filepath.Join("docs", "algorithms")})
}

// planned plays the parts of a plan, and writes the report.
// Methods, peers and seeds that flags name take the place of the plan's.
func planned(ctx context.Context, args []string, plan []part, r report.Options) error {
	var o options
	set := flag.NewFlagSet("plan", flag.ContinueOnError)
	o.flags(set)
	o.seeds, o.limit = "", 2*time.Hour
	set.StringVar(&r.Page, "page", r.Page, "page to write the report into")
	set.StringVar(&r.Folder, "report-folder", r.Folder, "folder for plots and the table of all tasks")
	set.StringVar(&r.Pages, "pages", r.Pages, "folder with a page for each algorithm, to write into; empty: none")
	if err := parse(set, args); err != nil {
		return err
	}
	if o.out == "" {
		return errors.New("name the file for the results: -out results.jsonl")
	}
	jobs, err := o.games(plan)
	if err != nil {
		return err
	}
	if err := o.playInto(ctx, jobs); err != nil {
		return err
	}
	records, err := play.ReadRecords([]string{o.out})
	if err != nil {
		return err
	}
	if err := report.Write(records, r); err != nil {
		return err
	}
	fmt.Printf("%d results in %s, the report is in %s\n", len(records), o.out, r.Page)
	return nil
}

// games of a plan, each once.
func (o *options) games(plan []part) ([]job, error) {
	var out []job
	seen := map[play.Key]bool{}
	for _, p := range plan {
		q := *o
		q.suites, q.problems, q.regimes, q.seeds = problem.Suites(), p.problems, p.regimes, cmp.Or(o.seeds, p.seeds)
		q.budget = cmp.Or(o.budget, p.budget)
		if len(q.methods) == 0 && len(q.peers) == 0 {
			q.methods, q.peers = p.methods, p.peers
		}
		jobs, err := q.plan()
		if err != nil {
			return nil, fmt.Errorf("part %s: %w", p.name, err)
		}
		for _, j := range jobs {
			if !seen[j.key] {
				seen[j.key] = true
				out = append(out, j)
			}
		}
	}
	bySeed(out)
	return out, nil
}

// bySeed sorts games seed by seed, so that all tasks have equally many seeds
// whenever it is stopped, and within a seed method by method, so that a peer's
// process is started once a seed.
func bySeed(games []job) {
	slices.SortStableFunc(games, func(a, b job) int {
		return cmp.Or(cmp.Compare(a.key.Seed, b.key.Seed), cmp.Compare(a.key.Method, b.key.Method))
	})
}
