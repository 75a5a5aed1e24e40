package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/parse"
)

type curveOptions struct {
	output string
	points int
	store  string
}

func newCurveCommand(open opener, own ownStore) *cobra.Command {
	var o curveOptions
	cmd := &cobra.Command{
		Use:   "curve EXPERIMENT/TRIAL [METRIC...]",
		Short: "Print the curves of a trial: steps, times and values",
		Long: `Print the stored curves of a trial, of all its metrics when none is named; those that
begin with system/ are what it used of its machine, by seconds. A long
curve is condensed in the store: a row then stands for several points, and has
the last of them, their least and greatest value and their number.

The points are read from the store: that of the embedded instance, or the one
that --store names as the store commands do.`,
		Example: `  vernier curve charlm/best
  vernier curve charlm/12 val_loss --points 20
  vernier curve charlm/12 val_loss --points 0 -o csv > curve.csv
  vernier curve charlm/12 --store env:VERNIER_STORE -o json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageErrorf("%s needs a trial: write %s", cmd.CommandPath(), cmd.UseLine())
			}
			s := streams{out: cmd.OutOrStdout(), err: cmd.ErrOrStderr()}
			return o.run(cmd.Context(), args[0], args[1:], s, open, own)
		},
	}
	outputFlag(cmd, &o.output, "table, json or csv", "table", "json", "csv")
	cmd.Flags().IntVar(&o.points, "points", 100, fmt.Sprintf("most rows of a curve, %d to %d; 0: a row for each point", collector.MinBuckets, collector.MaxBuckets))
	cmd.Flags().StringVar(&o.store, "store", "", "store of the points: sqlite:PATH, postgres://..., mysql://..., env:NAME or file:PATH (default: that of the embedded instance)")
	return cmd
}

func (o curveOptions) run(ctx context.Context, text string, metrics []string, s streams, open opener, own ownStore) error {
	if o.points != 0 {
		if err := collector.CheckBuckets(o.points); err != nil {
			return usageErrorf("--points %d: write %d to %d, or 0 for all points", o.points, collector.MinBuckets, collector.MaxBuckets)
		}
	}
	var named []string
	if o.store != "" {
		named = []string{o.store}
	}
	address, err := own.storeOf(named)
	if err != nil {
		return fmt.Errorf("--store: %w", err)
	}
	session, err := open(ctx, false)
	if err != nil {
		return err
	}
	trial, err := session.findTrial(ctx, text)
	if err != nil {
		return err
	}
	id := collector.TrialID{Namespace: session.namespace, Name: trial.Name, UID: string(trial.Object.UID)}
	return withStore(ctx, address, func(points collector.Store) error {
		return o.print(ctx, points, id, metrics, s)
	})
}

func (o curveOptions) print(ctx context.Context, s collector.Store, trial collector.TrialID, metrics []string, to streams) error {
	there, err := s.Metrics(ctx, trial.UID)
	if err != nil {
		return err
	}
	if len(metrics) == 0 {
		metrics = there
	}
	if err := allThere(trial, metrics, there); err != nil {
		return err
	}
	numbers, err := attemptNumbers(ctx, s, trial)
	if err != nil {
		return err
	}
	if o.points == 0 && o.output == "csv" {
		return scanCSV(ctx, s, trial, metrics, numbers, to.out)
	}
	var curves []curve
	if o.points == 0 {
		series, err := collector.ReadSeries(ctx, s, trial.UID, metrics...)
		if err != nil {
			return err
		}
		curves = wholeCurves(series)
	} else {
		sampled, err := collector.Sample(ctx, s, trial.UID, o.points, metrics...)
		if err != nil {
			return err
		}
		curves = sampledCurves(sampled)
	}
	curves = number(curves, numbers)
	slices.SortStableFunc(curves, func(a, b curve) int {
		return cmp.Compare(slices.Index(metrics, a.Metric), slices.Index(metrics, b.Metric))
	})
	return writeCurves(o.output, curves, to)
}

// allThere says which metrics have no points, and what there is instead.
func allThere(trial collector.TrialID, metrics, there []string) error {
	if len(there) == 0 {
		return notFoundErrorf("no points of trial %s are stored: it has reported none, or they were deleted", trial.Name)
	}
	var parts []string
	for _, m := range metrics {
		if slices.Contains(there, m) {
			continue
		}
		part := "no points of " + m
		if near := parse.Nearest(m, there, 1); len(near) > 0 {
			part += " (did you mean " + near[0] + "?)"
		}
		parts = append(parts, part)
	}
	if len(parts) == 0 {
		return nil
	}
	return notFoundErrorf("trial %s has %s; it has %s", trial.Name, strings.Join(parts, ", "), strings.Join(there, ", "))
}

// attemptNumbers numbers the attempts of a trial, by ID, from 1 in order of their
// start: those too that have none of the metrics that are printed.
func attemptNumbers(ctx context.Context, s collector.Store, trial collector.TrialID) (map[string]int, error) {
	attempts, err := s.Attempts(ctx, trial.UID)
	if err != nil {
		return nil, err
	}
	numbers, n := make(map[string]int, len(attempts)), 0
	for _, a := range attempts {
		if a.Attempt.System() {
			numbers[a.Attempt.ID] = 1 // of all starts of the program together
			continue
		}
		n++
		numbers[a.Attempt.ID] = n
	}
	return numbers, nil
}

// number numbers the attempts of curves, and leaves out those that have begun
// since they were numbered.
func number(curves []curve, numbers map[string]int) []curve {
	for i := range curves {
		curves[i].Attempt = numbers[curves[i].id]
	}
	return slices.DeleteFunc(curves, func(c curve) bool { return c.Attempt == 0 })
}
