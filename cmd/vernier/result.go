package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

// printResult prints what an experiment has found: its best trial, or of several
// objectives the trials that none beats.
func printResult(out io.Writer, v experimentView) {
	best, ok := v.best()
	switch {
	case !ok || !v.hasResult():
		fmt.Fprintf(out, "\nNo best trial: no trial succeeded with a value of %s%s.\n", strings.Join(v.objectiveNames(), " and "), within(v))
		return
	case v.several():
		front := v.front()
		fmt.Fprintf(out, "\n%s that none beats in all of %s:\n", countOfTrials(len(front)), strings.Join(v.objectiveNames(), ", "))
		_ = trialTable(v, front, time.Now()).write(out, false) // what cannot be printed is not worth an error here
		fmt.Fprintf(out, "Of these %s has the best %s.\n", best.Name, v.metricName())
	default:
		fmt.Fprintf(out, "\nBest trial: %s\n", best.Name)
		for _, m := range best.Metrics {
			fmt.Fprintf(out, "  %-28s %s\n", m.Name+direction(v.Experiment, m.Name), m.Value)
		}
		fmt.Fprintln(out, "Parameters:")
		for _, p := range best.Params {
			fmt.Fprintf(out, "  %-28s %s\n", p.Name, p.Value)
		}
	}
	fmt.Fprintf(out, "%s.\n", strings.TrimSuffix(countsLine(v), ", 0 running"))
}

func countOfTrials(n int) string {
	if n == 1 {
		return "1 trial"
	}
	return fmt.Sprintf("%d trials", n)
}

// direction is " (minimized)" for an objective.
func direction(e *v1beta1.Experiment, metric string) string {
	objectives := e.Spec.AllObjectives()
	i := slices.IndexFunc(objectives, func(o v1beta1.ObjectiveMetric) bool { return o.ObjectiveMetricName == metric })
	if i < 0 {
		return ""
	}
	return " (" + string(objectives[i].Type) + "d)"
}

// within says what else a trial had to meet.
func within(v experimentView) string {
	if len(v.Experiment.Spec.Constraints) == 0 {
		return ""
	}
	var bounds []string
	for _, c := range v.Experiment.Spec.Constraints {
		if c.Min != nil {
			bounds = append(bounds, fmt.Sprintf("%s >= %g", c.MetricName, *c.Min))
		}
		if c.Max != nil {
			bounds = append(bounds, fmt.Sprintf("%s <= %g", c.MetricName, *c.Max))
		}
	}
	return " and " + strings.Join(bounds, " and ")
}
