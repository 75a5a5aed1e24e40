package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/vernier-ml/vernier/bench/suggest/play"
	"github.com/vernier-ml/vernier/bench/suggest/problem"
	"github.com/vernier-ml/vernier/bench/suggest/stat"
)

// asks is how many suggestions are timed, after the first one, which is kept
// apart.
const asks = 40

func latencyCommand(ctx context.Context, args []string) error {
	var o options
	var sizes words
	set := flag.NewFlagSet("latency", flag.ContinueOnError)
	o.flags(set)
	set.Var(&sizes, "trials", "how many trials there were before; 100,1000,10000 by default")
	set.BoolVar(&o.prepared, "prepared", false, "count no learning that ours can do before the question")
	if err := parse(set, args); err != nil {
		return err
	}
	if len(sizes) == 0 {
		sizes = words{"100", "1000", "10000"}
	}
	o.jobs = 1 // alone on a core
	found, err := problem.Find([]string{problem.Continuous}, []string{"sphere-10"})
	if err != nil {
		return err
	}
	methods, err := o.players()
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "method\ttrials\tCPU p50\tCPU p95\twall p95\tfirst\t")
	for _, m := range methods {
		for _, size := range sizes {
			n, err := strconv.Atoi(size)
			if err != nil || n < 1 {
				return fmt.Errorf("trials %q: write a number of at least 1", size)
			}
			spent, err := o.latency(ctx, m, found[0], n)
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err != nil {
				fmt.Fprintf(w, "%s\t%d\t%.200s\t\t\t\t\n", m.name, n, err.Error())
				continue
			}
			var cpu, wall []float64
			for _, c := range spent[1:] {
				cpu, wall = append(cpu, c.CPU.Seconds()), append(wall, c.Wall.Seconds())
			}
			fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t%s\t\n", m.name, n,
				millis(stat.Median(cpu)), millis(stat.Quantile(cpu, 0.95)), millis(stat.Quantile(wall, 0.95)), millis(spent[0].CPU.Seconds()))
		}
	}
	return w.Flush()
}

// latency is what suggestions of a method cost after n trials, the first apart.
func (o *options) latency(ctx context.Context, m method, p *problem.Problem, n int) ([]play.Cost, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, o.limit, fmt.Errorf("over the limit of %s", o.limit.Round(time.Second)))
	defer cancel()
	opener, err := m.open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = opener.Close() }()
	return play.MeasureLatency(ctx, opener, play.Run{Problem: p, Regime: play.Regimes()[0]}, n, asks+1)
}

func millis(s float64) string { return fmt.Sprintf("%.3gms", 1e3*s) }
