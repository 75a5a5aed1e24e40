package main

import (
	"fmt"
	"io"
	"math"
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
		fmt.Fprintf(out, "\nNo best trial: %s.\n", whyNoBest(v))
		return
	case v.several():
		front := v.front()
		fmt.Fprintf(out, "\n%s that none beats in all of %s:\n", countOfTrials(len(front)), strings.Join(v.objectiveNames(), ", "))
		_ = trialTable(v, front, time.Now()).write(out, false) // what cannot be printed is not worth an error here
		fmt.Fprintf(out, "Of these %s has the best %s.\n", best.Name, v.metricName())
	default:
		fmt.Fprintf(out, "\nBest trial: %s\n", best.Name)
		for i, m := range best.Metrics {
			line := fmt.Sprintf("  %-28s %s   %s", m.Name+direction(v.Experiment, m.Name), m.Value, m.origin(v.stepOf(i)))
			fmt.Fprintln(out, strings.TrimRight(line, " "))
		}
		fmt.Fprintln(out, "Parameters:")
		for _, p := range best.Params {
			fmt.Fprintf(out, "  %-28s %s\n", p.Name, shownParam(p.Value))
		}
		if r := v.Experiment.Status.RecommendedTrial; r != nil {
			fmt.Fprintf(out, "Expected to be best on average: %s, %s %s (vernier best %s --recommended)\n", r.TrialName, v.metricName(), expectation(r), v.Experiment.Name)
		}
	}
	fmt.Fprintf(out, "%s.\n", strings.TrimSuffix(countsLine(v), ", 0 running")+divergedText(v))
}

// stepOf is the step of the best trial's ith metric, of which only that of the
// objective, the first, is looked up.
func (v experimentView) stepOf(i int) *int64 {
	if i > 0 {
		return nil
	}
	return v.BestStep
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

// whyNoBest is why no trial counts: no value, or a bound that none met, with how
// near they came.
func whyNoBest(v experimentView) string {
	measured := 0
	for _, t := range v.Trials {
		if _, ok := t.score(); ok && t.finished() {
			measured++
		}
	}
	if measured == 0 || len(v.Experiment.Spec.Constraints) == 0 {
		return "no trial succeeded with a value of " + strings.Join(v.objectiveNames(), " and ") + divergedText(v)
	}
	bounds := make([]string, len(v.Experiment.Spec.Constraints))
	for i, c := range v.Experiment.Spec.Constraints {
		bounds[i] = boundText(c) + nearest(v, c)
	}
	return fmt.Sprintf("none of %s with a value of %s met %s", countOfTrials(measured), v.metricName(), strings.Join(bounds, " and "))
}

// boundText is "memory <= 16".
func boundText(c v1beta1.MetricConstraint) string {
	switch {
	case c.Min != nil && c.Max != nil:
		return fmt.Sprintf("%g <= %s <= %g", *c.Min, c.MetricName, *c.Max)
	case c.Min != nil:
		return fmt.Sprintf("%s >= %g", c.MetricName, *c.Min)
	case c.Max != nil:
		return fmt.Sprintf("%s <= %g", c.MetricName, *c.Max)
	}
	return c.MetricName
}

// nearest says how near the trials came to a bound that not all of them met.
func nearest(v experimentView, c v1beta1.MetricConstraint) string {
	best, name := math.Inf(1), ""
	for _, t := range v.Trials {
		value, ok := finite(t.metric(c.MetricName))
		if !ok {
			continue
		}
		if far := c.Outside(value); far < best {
			best, name = far, fmt.Sprintf("%s with %s", t.Name, shortNumber(t.metric(c.MetricName)))
		}
	}
	switch {
	case name == "":
		return " (which no trial reported: is the name right?)"
	case best <= 0:
		return " (some trials did)"
	}
	return " (the nearest was " + name + ")"
}
