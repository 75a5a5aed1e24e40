// Command suggest measures the suggestion algorithms on problems whose answers
// are known, beside other tuners, in one run.
//
//	suggest run -suite s1 -method tpe,bayesianoptimization -seeds 20 -budget 100
//	suggest run -out results.jsonl -peers optuna-tpe,optuna-gp
//	suggest list
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/vernier-ml/vernier/bench/suggest/peer"
	"github.com/vernier-ml/vernier/bench/suggest/play"
	"github.com/vernier-ml/vernier/bench/suggest/problem"
	"github.com/vernier-ml/vernier/bench/suggest/report"
	"github.com/vernier-ml/vernier/suggest/algorithm"
)

// command is one of the words that may follow the program's name.
type command struct {
	name, help string
	run        func(ctx context.Context, args []string) error
}

func commands() []command {
	return []command{
		{"run", "play games and print a table; with -out, append the results to a file and skip what is there", runCommand},
		{"smoke", "play a small part of everything, and write a report under bin", smokeCommand},
		{"real", "play the development half of the real tasks, and print ranks; with -verdict the other half, and write its page", realCommand},
		{"full", "play what the documentation shows, seed by seed, and write the report into it; it goes on where it was stopped", fullCommand},
		{"latency", "measure the CPU time for a suggestion after 100, 1,000 and 10,000 trials", latencyCommand},
		{"report", "write scores, tables and plots of results into the documentation", reportCommand},
		{"list", "show problems, regimes, methods and peers", listCommand},
	}
}

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	err := dispatch(ctx, os.Args[1:])
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, "suggest:", err)
		os.Exit(1)
	}
}

func dispatch(ctx context.Context, args []string) error {
	var help strings.Builder
	for _, c := range commands() {
		if len(args) > 0 && args[0] == c.name {
			return c.run(ctx, args[1:])
		}
		fmt.Fprintf(&help, "  %-8s %s\n", c.name, c.help)
	}
	return fmt.Errorf("name a command:\n%s", help.String())
}

// words is a flag that holds a list, separated by commas.
type words []string

// String implements flag.Value.
func (w *words) String() string { return strings.Join(*w, ",") }

// Set implements flag.Value.
func (w *words) Set(text string) error {
	*w = append(*w, strings.Split(text, ",")...)
	return nil
}

// parse reads flags and nothing else.
func parse(set *flag.FlagSet, args []string) error {
	if err := set.Parse(args); err != nil {
		return err
	}
	if set.NArg() > 0 {
		return fmt.Errorf("%s: %q is no flag", set.Name(), set.Arg(0))
	}
	return nil
}

func reportCommand(_ context.Context, args []string) error {
	var files words
	var o report.Options
	set := flag.NewFlagSet("report", flag.ContinueOnError)
	set.Var(&files, "in", "files of results")
	set.StringVar(&o.Page, "page", filepath.Join("docs", "benchmarks.md"), "page to write into")
	set.StringVar(&o.Folder, "folder", filepath.Join("docs", "benchmarks"), "folder for plots and the table of all tasks")
	set.StringVar(&o.Pages, "pages", filepath.Join("docs", "algorithms"), "folder with a page for each algorithm, to write into; empty: none")
	if err := parse(set, args); err != nil {
		return err
	}
	if len(files) == 0 {
		return errors.New("name the results: -in results.jsonl")
	}
	records, err := play.ReadRecords(files)
	if err != nil {
		return err
	}
	return report.Write(records, o)
}

func listCommand(_ context.Context, args []string) error {
	if err := parse(flag.NewFlagSet("list", flag.ContinueOnError), args); err != nil {
		return err
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "PROBLEM\tSUITE\tFAMILY\tPARAMETERS\tOPTIMUM")
	for _, p := range slices.Concat(problem.All(), problem.Real(false), problem.Real(true)) {
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%.6g\n", p.Name, p.Suite, p.Family, len(p.Parameters), p.Optimum)
	}
	fmt.Fprintln(w, "\nREGIME\tSUITES\tPARALLEL")
	for _, r := range play.Regimes() {
		fmt.Fprintf(w, "%s\t%s\t%d\n", r.Name, strings.Join(r.Suites, ","), r.Parallel)
	}
	fmt.Fprintln(w, "\nPEER\tVERSION")
	for _, p := range peer.All() {
		fmt.Fprintf(w, "%s\t%s\n", p.Name, p.Version())
	}
	fmt.Fprintln(w, "\nMETHODS:", strings.Join(algorithm.Names(), " "))
	return w.Flush()
}
