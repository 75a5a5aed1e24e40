package collector

import (
	"cmp"
	"context"
	"maps"
	"slices"
)

// Scanner reads the points of a trial one by one; a Store is one.
type Scanner interface {
	// Scan hands over the points of the named metrics (all when none is named):
	// attempt by attempt, the newest one first (of those started at once, the one
	// with the greatest ID), within an attempt in order of Source, and within a
	// source in order of Seq. Memory does not grow with their number. It ends with
	// the first error of yield, or when ctx ends. yield must not call the store.
	Scan(ctx context.Context, trialUID string, metrics []string, yield func(Attempt, Point) error) error
}

// Reduce answers asks from the points of one trial, each with one observation, in
// their order. What counts, and Min, Max and Latest, is as Aggregator says. Chosen
// is
//
// for min, max and latest that measure;
//
// for mean-last-K the arithmetic mean of the finite values among the last K points
// that count, in order of attempt, step and Seq, or of all points where there are
// fewer than K. Where none of them is finite it is Latest. Points whose value is no
// number take up one of the K places;
//
// for best-at-step the value of the metric in the attempt, and at the step, where
// Objective was best: least, or greatest where Maximize says so, of equal ones that
// of the newest attempt and in it the first in order of Source, then Seq. Where the
// metric has several points of that step it is the last one; where it has none, the
// last one before that step in the same attempt. It is unavailable where there is
// none of these either, where no value of Objective is finite, and where the best
// one has no step. For Objective itself it is the best value.
//
// The points are read once, and a second time for best-at-step.
func Reduce(ctx context.Context, s Scanner, trialUID string, asks ...Ask) ([]Observation, error) {
	aggregators := map[string]*Aggregator{}
	of := func(metric string) *Aggregator {
		if aggregators[metric] == nil {
			aggregators[metric] = &Aggregator{}
		}
		return aggregators[metric]
	}
	for _, ask := range asks {
		g := of(ask.Metric)
		g.tail.size = max(g.tail.size, ask.Strategy.MeanLast())
		if ask.Strategy == StrategyBestAtStep {
			of(ask.Objective)
		}
	}
	if len(asks) == 0 {
		return nil, nil
	}
	err := s.Scan(ctx, trialUID, slices.Sorted(maps.Keys(aggregators)), func(a Attempt, p Point) error {
		aggregators[p.Metric].Add(a, p)
		return nil
	})
	if err != nil {
		return nil, err
	}
	observations := make([]Observation, len(asks))
	finders := map[int]*finder{}
	for i, ask := range asks {
		g := aggregators[ask.Metric]
		o := g.Observation(ask.Metric)
		k := ask.Strategy.MeanLast()
		switch {
		case k > 0:
			o.Chosen = o.Latest
			if mean, ok := g.tail.mean(k); ok {
				o.Chosen = measure(Point{Value: mean})
			}
		case ask.Strategy == StrategyBestAtStep:
			best, ok := aggregators[ask.Objective].best(ask.Maximize)
			if ok && ask.Metric == ask.Objective {
				o.Chosen = measure(best.Point)
			} else if ok && best.Step != NoStep {
				finders[i] = &finder{metric: ask.Metric, attempt: best.attempt, step: best.Step}
			}
		default:
			o.Chosen, _ = o.By(ask.Strategy)
		}
		observations[i] = o
	}
	return observations, find(ctx, s, trialUID, finders, observations)
}

// find fills in the values at the best steps.
func find(ctx context.Context, s Scanner, trialUID string, finders map[int]*finder, observations []Observation) error {
	if len(finders) == 0 {
		return nil
	}
	metrics := map[string]bool{}
	for _, f := range finders {
		metrics[f.metric] = true
	}
	err := s.Scan(ctx, trialUID, slices.Sorted(maps.Keys(metrics)), func(a Attempt, p Point) error {
		for _, f := range finders {
			f.add(a, p)
		}
		return nil
	})
	for i, f := range finders {
		if f.found {
			observations[i].Chosen = measure(f.last)
		}
	}
	return err
}

// finder looks for the last point of a metric in one attempt up to a step.
type finder struct {
	metric  string
	attempt string
	step    int64

	steps stepCarrier
	last  Point
	found bool
}

func (f *finder) add(a Attempt, p Point) {
	if a.ID != f.attempt || p.Metric != f.metric {
		return
	}
	p.Step = f.steps.of(&p)
	if p.Step == NoStep || p.Step > f.step || f.found && comparePoints(&p, &f.last) <= 0 {
		return
	}
	f.last, f.found = p, true
}

// Curves are the series of one trial in memory, for tests and for what was read
// whole. Its Scan
// reads the same points for every UID.
type Curves []Series

var _ Scanner = Curves(nil)

// Scan implements Scanner.
func (c Curves) Scan(_ context.Context, _ string, metrics []string, yield func(Attempt, Point) error) error {
	type placed struct {
		Point
		attempt Attempt
	}
	var all []placed
	for _, s := range c {
		if len(metrics) > 0 && !slices.Contains(metrics, s.Metric) {
			continue
		}
		for _, p := range s.Points {
			p.Metric = s.Metric
			all = append(all, placed{p, s.Attempt})
		}
	}
	slices.SortStableFunc(all, func(a, b placed) int {
		return cmp.Or(CompareAttempts(b.attempt, a.attempt), cmp.Compare(a.Source, b.Source), cmp.Compare(a.Seq, b.Seq))
	})
	for _, p := range all {
		if err := yield(p.attempt, p.Point); err != nil {
			return err
		}
	}
	return nil
}

// Observe sums up one metric of series in memory.
func Observe(series []Series, metric string) Observation {
	observations, err := Reduce(context.Background(), Curves(series), "", Ask{Metric: metric})
	if err != nil {
		panic(err) // Curves.Scan returns the errors of its caller only
	}
	return observations[0]
}

// ReadSeries reads the series of the named metrics (all when none is named) into
// memory, ordered by attempt start, then metric.
func ReadSeries(ctx context.Context, s Scanner, trialUID string, metrics ...string) ([]Series, error) {
	type key struct{ attempt, metric string }
	byKey := map[key]*Series{}
	err := s.Scan(ctx, trialUID, metrics, func(a Attempt, p Point) error {
		k := key{a.ID, p.Metric}
		if byKey[k] == nil {
			byKey[k] = &Series{Attempt: a, Metric: p.Metric}
		}
		byKey[k].Points = append(byKey[k].Points, p)
		return nil
	})
	if err != nil {
		return nil, err
	}
	all := make([]Series, 0, len(byKey))
	for _, series := range byKey {
		slices.SortFunc(series.Points, func(a, b Point) int {
			return cmp.Or(cmp.Compare(a.Step, b.Step), cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.Source, b.Source))
		})
		all = append(all, *series)
	}
	slices.SortFunc(all, func(a, b Series) int {
		return cmp.Or(CompareAttempts(a.Attempt, b.Attempt), cmp.Compare(a.Metric, b.Metric))
	})
	return all, nil
}
