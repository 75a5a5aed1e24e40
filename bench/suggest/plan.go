package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/vernier-ml/vernier/bench/suggest/peer"
	"github.com/vernier-ml/vernier/bench/suggest/play"
	"github.com/vernier-ml/vernier/bench/suggest/problem"
	"github.com/vernier-ml/vernier/bench/suggest/report"
)

// part of a plan: games that are played with the same seeds.
type part struct {
	suites, problems, regimes, peers words
	seeds                            string
	budget                           int
}

// smokePlan takes at most ten minutes on two cores, the installation of the
// peers included.
func smokePlan() []part {
	light := words{"hyperopt-tpe", "optuna-cmaes", "optuna-tpe"}
	return []part{
		{words{problem.Continuous}, words{"branin-2", "hartmann-6", "ackley-10", "rosenbrock-5", "bbob-f15-10"}, words{play.Sequential}, light, "5", 60},
		{words{problem.Mixed}, words{"mixed-8", "network-7", "tree-12", "clauses-20"}, words{play.Sequential}, light, "5", 60},
		{words{problem.Continuous}, words{"branin-2", "hartmann-6"}, words{play.BatchOf8, play.Async32}, words{"optuna-tpe"}, "3", 64},
		{words{problem.Continuous}, words{"rosenbrock-5"}, words{play.Large}, words{"optuna-cmaes"}, "1", 300},
		{words{problem.Noisy}, words{"noisy20-hartmann-6"}, words{play.Sequential}, words{"optuna-tpe"}, "5", 60},
		{words{problem.Fidelity}, words{"curve-crossing-6", "curve-network-7"}, words{play.Fidelity8}, words{"optuna-tpe+asha", "optuna-tpe+hyperband"}, "3", 20},
		{words{problem.MultiObjective}, words{"zdt1-12", "dtlz2-7"}, words{play.Fronts}, words{"optuna-nsga2", "optuna-tpe"}, "3", 60},
		{words{problem.Learning}, words{"knn-iris-nll", "svm-wine-nll", "tree-breast-acc"}, words{play.Sequential}, words{"optuna-tpe"}, "2", 30},
	}
}

// fullPlan is the whole protocol, with all peers. It takes days, and goes on
// where it was stopped.
func fullPlan() []part {
	var names words
	for _, p := range peer.All() {
		names = append(names, p.Name)
	}
	const seeds = "30"
	core := words{"branin-2", "hartmann-6", "ackley-10", "levy-8", "rosenbrock-5", "styblinski-8", "bbob-f8-10", "bbob-f15-10", "mixed-8", "network-7", "pairs-6", "tree-12"}
	return []part{
		{words{problem.Continuous}, nil, words{play.Sequential}, names, seeds, 0},
		{words{problem.Mixed}, nil, words{play.Sequential}, names, seeds, 0},
		{words{problem.Continuous, problem.Mixed}, core, words{play.BatchOf8, play.Async8, play.Async32, play.Async64}, names, seeds, 0},
		{words{problem.Continuous}, words{"ackley-10", "levy-20", "rosenbrock-10", "rastrigin-5", "bbob-f1-20", "bbob-f8-10", "bbob-f10-20", "bbob-f15-10", "bbob-f20-10", "bbob-f21-10"}, words{play.Large}, names, seeds, 0},
		{words{problem.Noisy}, nil, words{play.Sequential}, names, seeds, 0},
		{words{problem.Fidelity}, nil, words{play.Fidelity1, play.Fidelity8, play.Fidelity32}, names, seeds, 0},
		{words{problem.MultiObjective}, nil, words{play.Fronts}, names, seeds, 0},
		{words{problem.Learning}, nil, words{play.Sequential, play.BatchOf8}, names, "10", 0},
	}
}

func smokeCommand(ctx context.Context, args []string) error {
	folder := filepath.Join("bin", "bench-suggest-results")
	return planned(ctx, args, "smoke", smokePlan(), report.Options{Page: filepath.Join(folder, "smoke.md"), Folder: filepath.Join(folder, "benchmarks")})
}

func fullCommand(ctx context.Context, args []string) error {
	return planned(ctx, args, "full", fullPlan(), report.Options{Page: filepath.Join("docs", "benchmarks.md"), Folder: filepath.Join("docs", "benchmarks"), Pages: filepath.Join("docs", "algorithms")})
}

// planned plays all parts of a plan, measures latencies, and writes the report.
func planned(ctx context.Context, args []string, name string, plan []part, r report.Options) error {
	var o options
	set := flag.NewFlagSet(name, flag.ContinueOnError)
	o.flags(set)
	o.limit = 2 * time.Hour
	set.StringVar(&r.Page, "page", r.Page, "page to write the report into")
	set.StringVar(&r.Folder, "report-folder", r.Folder, "folder for plots and the table of all tasks")
	set.StringVar(&r.Reference, "reference", "auto", "our method that the others are compared with")
	if err := parse(set, args); err != nil {
		return err
	}
	if len(o.methods) == 0 {
		o.methods = words{"ours"}
	}
	if o.out == "" {
		return errors.New("name the file for the results: -out results.jsonl")
	}
	if err := os.MkdirAll(filepath.Dir(o.out), 0o755); err != nil {
		return err
	}
	store, err := play.OpenStore(o.out)
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }() // each result was written when it came
	started := time.Now()
	wanted := o.peers
	for i, p := range plan {
		fmt.Fprintf(os.Stderr, "part %d of %d after %s: %v %v\n", i+1, len(plan), time.Since(started).Round(time.Second), p.suites, p.regimes)
		q := o
		q.suites, q.problems, q.regimes, q.seeds, q.budget, q.peers = p.suites, p.problems, p.regimes, p.seeds, p.budget, p.peers
		if len(wanted) > 0 {
			q.peers = wanted
		}
		if err := q.playAll(ctx, store, map[play.Key]bool{}); err != nil {
			return err
		}
	}
	fmt.Fprintf(os.Stderr, "the time for a suggestion, after %s\n", time.Since(started).Round(time.Second))
	q := o
	q.limit = o.latencyLimit(name)
	if q.peers = wanted; len(wanted) == 0 {
		q.peers = words{"hyperopt-tpe", "optuna-cmaes", "optuna-tpe"}
		if name == "full" {
			q.peers = append(q.peers, "optuna-gp", "skopt-gp")
		}
	}
	if err := q.latencies(ctx, store, []string{"100", "1000", "10000"}); err != nil {
		return err
	}
	r.Preamble = preamble(store.Records())
	if err := report.Write(store.Records(), r); err != nil {
		return err
	}
	fmt.Printf("%s: %d results in %s, the report is in %s, after %s\n", name, len(store.Records()), o.out, r.Page, time.Since(started).Round(time.Second))
	return nil
}

// latencyLimit keeps a peer that takes seconds for each suggestion from holding
// up the smoke.
func (o *options) latencyLimit(name string) time.Duration {
	if name == "smoke" {
		return time.Minute
	}
	return 20 * time.Minute
}
