package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/vernier-ml/vernier/bench/suggest/peer"
	"github.com/vernier-ml/vernier/bench/suggest/play"
	"github.com/vernier-ml/vernier/bench/suggest/problem"
	"github.com/vernier-ml/vernier/suggest/algorithm"
)

func listCommand(_ context.Context, args []string) error {
	if err := parse(flag.NewFlagSet("list", flag.ContinueOnError), args); err != nil {
		return err
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "PROBLEM\tSUITE\tFAMILY\tPARAMETERS\tOPTIMUM")
	for _, p := range problem.All() {
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
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Println("\nMETHODS:", strings.Join(algorithm.Names(), " "))
	return err
}
