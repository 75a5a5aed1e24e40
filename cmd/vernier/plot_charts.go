package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/cmd/vernier/plot"
	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/controllers/study"
	"github.com/vernier-ml/vernier/suggest/analysis"
)

// plotted is the metric of the charts, and whether less of it is better.
func (o *plotOptions) plotted(v experimentView) (metric string, minimize bool) {
	metric = cmp.Or(o.metric, v.metricName())
	for _, objective := range v.Experiment.Spec.AllObjectives() {
		if objective.ObjectiveMetricName == metric {
			return metric, objective.Type != v1beta1.ObjectiveTypeMaximize
		}
	}
	return metric, true
}

// measured are the finished trials with a finite value of a metric.
func measured(v experimentView, metric string) (trials []trialView, values []float64, err error) {
	for _, t := range v.Trials {
		if value, ok := finite(t.metric(metric)); ok && t.finished() {
			trials, values = append(trials, t), append(values, value)
		}
	}
	if len(trials) == 0 && len(v.Trials) > 0 {
		return nil, nil, notFoundErrorf("no finished trial of experiment %s has a value of %s", v.Experiment.Name, metric)
	}
	return trials, values, nil
}

// levels applies the rule of charts to trials.
func levels(v experimentView, trials []trialView) (level float64, sides []int) {
	tried := make([]analysis.Tried, len(trials))
	for i, t := range trials {
		resource := paramValue(t.Params, v.Experiment.Spec.Algorithm.ResourceParameter())
		if resource == "" && t.Object != nil {
			resource = t.Object.Annotations[v1beta1.AnnotationResource]
		}
		tried[i].Resource, _ = strconv.ParseFloat(resource, 64) // absent: all of it
		tried[i].Point = fmt.Sprint(t.Params)
	}
	return analysis.Level(tried)
}

// compared leaves the trials that can be compared, and the parameters in which they differ:
// all but the one for the resource. note says what is left out.
func compared(v experimentView, trials []trialView) (kept []trialView, params []v1beta1.ParameterSpec, note string) {
	level, sides := levels(v, trials)
	for i, t := range trials {
		if sides[i] == 0 {
			kept = append(kept, t)
		}
	}
	fixed := v.Experiment.Spec.Algorithm.ResourceParameter()
	params = slices.DeleteFunc(slices.Clone(v.Experiment.Spec.Parameters), func(p v1beta1.ParameterSpec) bool { return p.Name == fixed })
	return kept, params, comparedNote(fixed, level, len(kept), len(trials)-len(kept))
}

func comparedNote(fixed string, level float64, kept, left int) string {
	if left == 0 {
		return ""
	}
	return fmt.Sprintf("of %s with %s=%g; %d others are left out", countOfTrials(kept), cmp.Or(fixed, "resource"), level, left)
}

func historyCharts(_ context.Context, o *plotOptions, _ *session, v experimentView) ([]plot.Chart, error) {
	metric, minimize := o.plotted(v)
	trials, values, err := measured(v, metric)
	if err != nil {
		return nil, err
	}
	every := plot.Series{Name: "trial", Shape: plot.Points}
	short := plot.Series{Name: "shorter trial", Shape: plot.Points, Faint: true}
	best := plot.Series{Name: "best so far", Shape: plot.Line}
	_, sides := levels(v, trials)
	top, have := 0.0, false
	for i, t := range trials {
		number := float64(t.Number)
		to := &every
		if sides[i] < 0 {
			to = &short
		}
		to.X, to.Y = append(to.X, number), append(to.Y, values[i])
		if v.feasible(t) && (!have || values[i] < top == minimize && values[i] != top) {
			if have {
				best.X, best.Y = append(best.X, number), append(best.Y, top)
			}
			top, have = values[i], true
		}
		if have {
			best.X, best.Y = append(best.X, number), append(best.Y, top)
		}
	}
	chart := plot.Chart{
		Title: fmt.Sprintf("%s: %s of %s", v.Experiment.Name, metric, countOfTrials(len(trials))),
		X:     plot.Axis{Label: "trial", Whole: true}, Y: plot.Axis{Label: metric, Near: true}, Series: []plot.Series{every, best},
	}
	if len(short.X) > 0 {
		chart.Series = append(chart.Series, short)
	}
	return []plot.Chart{chart}, nil
}

// bestFirst are the measured trials, the best one first.
func bestFirst(v experimentView, metric string, minimize bool) ([]trialView, error) {
	trials, _, err := measured(v, metric)
	sign := 1.0
	if !minimize {
		sign = -1
	}
	slices.SortStableFunc(trials, func(a, b trialView) int {
		x, _ := finite(a.metric(metric))
		y, _ := finite(b.metric(metric))
		return cmp.Or(rank(v.feasible(a))-rank(v.feasible(b)), cmp.Compare(sign*x, sign*y))
	})
	return trials, err
}

func curveCharts(ctx context.Context, o *plotOptions, s *session, v experimentView) ([]plot.Chart, error) {
	metric, minimize := o.plotted(v)
	trials, err := bestFirst(v, metric, minimize)
	if err != nil {
		return nil, err
	}
	if len(trials) == 0 { // none has ended: those that run
		trials = v.Trials
	}
	trials = trials[:min(max(o.top, 1), len(trials))]
	var named []string
	if o.store != "" {
		named = []string{o.store}
	}
	address, err := o.own.storeOf(named)
	if err != nil {
		return nil, fmt.Errorf("--store: %w", err)
	}
	chart := plot.Chart{Title: fmt.Sprintf("%s: %s of the best %d", v.Experiment.Name, metric, len(trials)), X: plot.Axis{Label: "step", Whole: true}, Y: plot.Axis{Label: metric}, Each: "trial"}
	err = withStore(ctx, address, func(points collector.Store) error {
		for _, t := range trials {
			if t.Object == nil {
				continue
			}
			sampled, err := collector.Sample(ctx, points, string(t.Object.UID), 200, metric)
			if err != nil {
				return fmt.Errorf("read the curve of trial %s: %w", t.Name, err)
			}
			if len(sampled) == 0 {
				continue
			}
			series := plot.Series{Name: strconv.Itoa(t.Number), Shape: plot.Line}
			last := sampled[len(sampled)-1] // of the newest start of the program
			for i, b := range last.Buckets {
				at := float64(b.Last)
				if last.Stepless {
					at = float64(i + 1)
				}
				series.X, series.Y = append(series.X, at), append(series.Y, b.Value)
			}
			chart.Series = append(chart.Series, series)
		}
		return nil
	})
	return []plot.Chart{chart}, err
}

// coordinate places the value of a parameter on an axis: its number, or that of its
// category.
func coordinate(p v1beta1.ParameterSpec, text string) float64 {
	if p.ParameterType == v1beta1.ParameterTypeCategorical {
		if i := slices.Index(p.FeasibleSpace.List, text); i >= 0 {
			return float64(i)
		}
		return math.NaN()
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return math.NaN() // it is inactive in this trial
	}
	return v
}

func parameterAxis(p v1beta1.ParameterSpec) plot.Axis {
	axis := plot.Axis{Label: p.Name}
	switch d := p.FeasibleSpace.Distribution; {
	case p.ParameterType == v1beta1.ParameterTypeInt:
		axis.Whole, axis.Log = true, d == v1beta1.DistributionLogUniform
	case p.ParameterType == v1beta1.ParameterTypeCategorical:
		for i, word := range p.FeasibleSpace.List {
			axis.Ticks = append(axis.Ticks, plot.Tick{At: float64(i), Label: word})
		}
	case d == v1beta1.DistributionLogUniform || d == v1beta1.DistributionLogNormal:
		axis.Log = true
	}
	return axis
}

func sliceCharts(_ context.Context, o *plotOptions, _ *session, v experimentView) ([]plot.Chart, error) {
	metric, minimize := o.plotted(v)
	trials, err := bestFirst(v, metric, minimize)
	if err != nil {
		return nil, err
	}
	trials, params, note := compared(v, trials)
	if len(params) == 0 {
		return nil, notFoundErrorf("experiment %s has no parameters that its trials differ in", v.Experiment.Name)
	}
	var charts []plot.Chart
	for _, p := range params {
		all := plot.Series{Name: "trial", Shape: plot.Points}
		best := plot.Series{Name: "best", Shape: plot.Stars}
		for i, t := range trials {
			value, _ := finite(t.metric(metric))
			to := &all
			if i == 0 {
				to = &best
			}
			to.X, to.Y = append(to.X, coordinate(p, paramValue(t.Params, p.Name))), append(to.Y, value)
		}
		charts = append(charts, plot.Chart{
			Title: fmt.Sprintf("%s: %s by %s", v.Experiment.Name, metric, p.Name), Note: note,
			X: parameterAxis(p), Y: plot.Axis{Label: metric}, Series: []plot.Series{all, best},
		})
	}
	return charts, nil
}

func parallelCharts(_ context.Context, o *plotOptions, _ *session, v experimentView) ([]plot.Chart, error) {
	metric, minimize := o.plotted(v)
	trials, err := bestFirst(v, metric, minimize)
	if err != nil {
		return nil, err
	}
	trials, params, note := compared(v, trials)
	chart := plot.Chart{
		Title: fmt.Sprintf("%s: parameters and %s, each from least to greatest", v.Experiment.Name, metric), Note: note,
		Y: plot.Axis{Label: "share of the range"}, Each: "trial",
	}
	columns := make([][]float64, len(params)+1)
	for _, t := range trials {
		for i, p := range params {
			columns[i] = append(columns[i], coordinate(p, paramValue(t.Params, p.Name)))
		}
		value, _ := finite(t.metric(metric))
		columns[len(params)] = append(columns[len(params)], value)
	}
	for i, column := range columns {
		tick, axis := plot.Tick{At: float64(i), Label: metric}, plot.Axis{}
		if i < len(params) {
			tick.Label, axis = params[i].Name, parameterAxis(params[i])
		}
		if low, high := toShares(column, axis.Log); low <= high {
			tick.Low, tick.High = valueText(axis, low), valueText(axis, high)
		}
		chart.X.Ticks = append(chart.X.Ticks, tick)
	}
	for k, t := range trials {
		s := plot.Series{Shape: plot.Line, Faint: k >= o.top}
		if !s.Faint {
			s.Name = strconv.Itoa(t.Number)
		}
		for i := range columns {
			s.X, s.Y = append(s.X, float64(i)), append(s.Y, columns[i][k])
		}
		chart.Series = append(chart.Series, s)
	}
	return []plot.Chart{chart}, nil
}

// toShares moves values to 0 to 1, and returns the least and the greatest.
func toShares(values []float64, log bool) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if !math.IsNaN(v) {
			low, high = min(low, v), max(high, v)
		}
	}
	place := func(v float64) float64 { return v }
	if log {
		place = math.Log
	}
	for i, v := range values {
		if values[i] = 0.5; high > low {
			values[i] = (place(v) - place(low)) / (place(high) - place(low))
		}
	}
	return low, high
}

// valueText is a value of an axis: a number, or a category.
func valueText(a plot.Axis, v float64) string {
	if i := int(v); len(a.Ticks) > 0 && i < len(a.Ticks) {
		return a.Ticks[i].Label
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

func importanceCharts(ctx context.Context, o *plotOptions, _ *session, v experimentView) ([]plot.Chart, error) {
	objectives := v.Experiment.Spec.AllObjectives()
	metric, _ := o.plotted(v)
	at := slices.IndexFunc(objectives, func(m v1beta1.ObjectiveMetric) bool { return m.ObjectiveMetricName == metric })
	if at < 0 {
		return nil, usageErrorf("importance is known of objectives only: %s is none of %v", metric, v.objectiveNames())
	}
	experiment := v.Experiment.DeepCopy()
	v1beta1.SetDefaults(experiment)
	known, err := study.New(experiment)
	if err != nil {
		return nil, fmt.Errorf("read the experiment: %w", err)
	}
	var trials []*v1beta1.Trial
	for _, t := range v.Trials {
		trials = append(trials, t.Object)
	}
	known.Update(trials)
	analyzed, fixed := known.Analyzed(), experiment.Spec.Algorithm.ResourceParameter()
	level, kept, left := analysis.Count(analyzed, analysis.Broadest)
	chart := plot.Chart{Title: fmt.Sprintf("%s: importance for %s", v.Experiment.Name, metric), Note: comparedNote(fixed, level, kept, left)}
	found, err := analysis.FunctionalANOVA(ctx, analyzed, at)
	switch {
	case errors.Is(err, analysis.ErrTooFew):
		chart.Title += fmt.Sprintf(" (%v)", err)
		return []plot.Chart{chart}, nil
	case err != nil:
		return nil, err
	}
	for _, p := range found.Parameters {
		if p.Parameter != fixed {
			chart.Bars = append(chart.Bars, plot.Bar{Label: p.Parameter, Share: p.Share})
		}
	}
	slices.SortStableFunc(chart.Bars, func(a, b plot.Bar) int { return cmp.Compare(b.Share, a.Share) })
	chart.Bars = append(chart.Bars, plot.Bar{Label: "several together", Share: found.Interactions})
	return []plot.Chart{chart}, nil
}

func paretoCharts(_ context.Context, o *plotOptions, _ *session, v experimentView) ([]plot.Chart, error) {
	first, second := v.metricName(), o.metric
	if names := v.objectiveNames(); second == "" && len(names) > 1 {
		second = names[1]
	}
	if second == "" || second == first {
		return nil, usageErrorf("experiment %s has one objective: name the metric to draw it against with --metric", v.Experiment.Name)
	}
	trials, values, err := measured(v, first)
	if err != nil {
		return nil, err
	}
	all := plot.Series{Name: "trial", Shape: plot.Points, Faint: true}
	front := plot.Series{Name: "not beaten", Shape: plot.Stars}
	for i, t := range trials {
		other, ok := finite(t.metric(second))
		if !ok {
			continue
		}
		to := &all
		if slices.Contains(v.marked(), t.Name) {
			to = &front
		}
		to.X, to.Y = append(to.X, values[i]), append(to.Y, other)
	}
	if len(all.X)+len(front.X) == 0 && len(trials) > 0 {
		return nil, notFoundErrorf("no trial of experiment %s has a value of %s: objectives, constraints and additionalMetricNames are kept", v.Experiment.Name, second)
	}
	if !v.several() {
		front.Name = "best"
	}
	return []plot.Chart{{
		Title: fmt.Sprintf("%s: %s and %s", v.Experiment.Name, first, second),
		X:     plot.Axis{Label: first}, Y: plot.Axis{Label: second}, Series: []plot.Series{all, front},
	}}, nil
}
