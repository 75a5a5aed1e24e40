package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"text/tabwriter"
	"time"

	"github.com/vernier-ml/vernier/bench/suggest/play"
	"github.com/vernier-ml/vernier/bench/suggest/problem"
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
	store, err := play.OpenStore(o.out)
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }() // each result was written when it came
	return o.latencies(ctx, store, sizes)
}

// latencies of all methods, as a table.
func (o *options) latencies(ctx context.Context, store *play.Store, sizes []string) error {
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
		if !m.suits(found[0], play.Regimes()[0]) {
			continue
		}
		for _, size := range sizes {
			r, err := o.latency(ctx, store, m, found[0], size)
			if err != nil {
				return err
			}
			if r.Error != "" {
				fmt.Fprintf(w, "%s\t%d\t%.200s\t\t\t\t\n", m.name, r.Budget, r.Error)
				continue
			}
			fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t%s\t\n", m.name, r.Budget, seconds(r.CPU.Median), seconds(r.CPU.P95), seconds(r.Wall.P95), seconds(r.Path[0][1]))
		}
	}
	return w.Flush()
}

// latency of a method after so many trials. It is measured anew unless the store
// has it.
func (o *options) latency(ctx context.Context, store *play.Store, m method, p *problem.Problem, size string) (play.Record, error) {
	var n int
	if _, err := fmt.Sscan(size, &n); err != nil || n < 1 {
		return play.Record{}, fmt.Errorf("trials %q: write a number of at least 1", size)
	}
	key := play.Key{Suite: play.Latency, Problem: p.Name, Regime: play.Latency, Method: m.name, Version: m.version, Budget: n}
	for _, r := range store.Records() {
		if r.Key == key {
			return r, nil
		}
	}
	limited, cancel := context.WithTimeoutCause(ctx, o.limit, fmt.Errorf("over the limit of %s", o.limit.Round(time.Second)))
	defer cancel()
	opener, err := m.open()
	if err != nil {
		r := play.NewRecord(key, nil, nil, err)
		return r, store.Add(r)
	}
	defer func() { _ = opener.Close() }()
	spent, err := play.MeasureLatency(limited, opener, play.Run{Problem: p, Regime: play.Regimes()[0]}, n, asks+1)
	if ctx.Err() != nil {
		return play.Record{}, context.Cause(ctx)
	}
	var path play.Path
	if len(spent) > 1 {
		path, spent = play.Path{{0, spent[0].CPU.Seconds()}}, spent[1:]
	}
	r := play.NewRecord(key, path, spent, err)
	return r, store.Add(r)
}

func seconds(s float64) string { return fmt.Sprintf("%.3gms", 1e3*s) }
