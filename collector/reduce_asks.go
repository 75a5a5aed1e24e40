package collector

import (
	"cmp"
	"math"
	"slices"
	"strconv"
)

// Reduce answers asks from the points of one trial, each with one observation, in
// their order. What counts, and Min, Max and Latest, is as Observe says. Chosen is
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
func Reduce(series []Series, asks ...Ask) []Observation {
	newest := slices.Clone(series)
	slices.SortStableFunc(newest, func(a, b Series) int {
		return cmp.Or(b.Attempt.Started.Compare(a.Attempt.Started), cmp.Compare(b.Attempt.ID, a.Attempt.ID))
	})
	observations, err := Condense(asks, func(metrics []string, yield func(Attempt, Point)) error {
		seen := map[[2]string]int{}
		for _, s := range newest {
			if !slices.Contains(metrics, s.Metric) {
				continue
			}
			points := slices.Clone(s.Points)
			key := [2]string{s.Attempt.ID, s.Metric}
			if again := seen[key]; again > 0 { // a series does not hand its last step to the next one
				for i := range points {
					points[i].Source += "\x00" + strconv.Itoa(again)
				}
			}
			seen[key]++
			slices.SortFunc(points, func(a, b Point) int {
				return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Seq, b.Seq))
			})
			for _, p := range points {
				p.Metric = s.Metric
				yield(s.Attempt, p)
			}
		}
		return nil
	})
	if err != nil {
		panic(err) // the function above returns none
	}
	return observations
}

// Condense is Reduce over points that are read one by one. scan yields the points
// of the named metrics in the order that Condenser.Add needs (points of different
// metrics may be mixed); it is called twice when a strategy is best-at-step, and
// should then yield the same points. Its error is returned.
func Condense(asks []Ask, scan func(metrics []string, yield func(Attempt, Point)) error) ([]Observation, error) {
	r := newReduction(asks)
	if len(r.metrics) == 0 {
		return nil, nil
	}
	err := scan(r.metrics, func(a Attempt, p Point) {
		for _, c := range r.byMetric[p.Metric] {
			c.Add(a, p)
		}
	})
	if err != nil {
		return nil, err
	}
	finders := r.finders()
	if len(finders) > 0 {
		var metrics []string
		for _, f := range finders {
			metrics = append(metrics, f.metric)
		}
		slices.Sort(metrics)
		err := scan(slices.Compact(metrics), func(a Attempt, p Point) {
			for _, f := range finders {
				f.add(a, p)
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return r.observations(), nil
}

// reduction is asks on their way to observations.
type reduction struct {
	asks       []Ask
	condensers []*Condenser // one for each ask
	objectives []*Condenser // likewise; nil for strategies other than best-at-step
	found      []*finder    // likewise
	byMetric   map[string][]*Condenser
	metrics    []string // names without repetition, sorted
}

func newReduction(asks []Ask) *reduction {
	r := &reduction{asks: asks, byMetric: map[string][]*Condenser{}, found: make([]*finder, len(asks))}
	objectives := map[string]*Condenser{}
	add := func(metric string) *Condenser {
		c := NewCondenser(metric)
		r.byMetric[metric] = append(r.byMetric[metric], c)
		r.metrics = append(r.metrics, metric)
		return c
	}
	for _, ask := range asks {
		c := add(ask.Metric)
		if k := ask.Strategy.MeanLast(); k > 0 {
			c.tail = &tail{size: k}
		}
		var objective *Condenser
		if ask.Strategy == StrategyBestAtStep {
			if objectives[ask.Objective] == nil {
				objectives[ask.Objective] = add(ask.Objective)
			}
			objective = objectives[ask.Objective]
		}
		r.condensers = append(r.condensers, c)
		r.objectives = append(r.objectives, objective)
	}
	slices.Sort(r.metrics)
	r.metrics = slices.Compact(r.metrics)
	return r
}

// best returns the best point of the objective of ask i; ok is false when it is
// not finite.
func (r *reduction) best(i int) (best placed, ok bool) {
	c := r.objectives[i]
	best = c.least
	if r.asks[i].Maximize {
		best = c.greatest
	}
	return best, c.numbers && kind(best.Value) == 0
}

// finders make what looks for the values at the best steps.
func (r *reduction) finders() []*finder {
	var all []*finder
	for i, ask := range r.asks {
		if ask.Strategy != StrategyBestAtStep || ask.Metric == ask.Objective {
			continue
		}
		if best, ok := r.best(i); ok && best.step != NoStep {
			r.found[i] = &finder{metric: ask.Metric, attempt: best.attempt, step: best.step}
			all = append(all, r.found[i])
		}
	}
	return all
}

func (r *reduction) observations() []Observation {
	all := make([]Observation, len(r.asks))
	for i, ask := range r.asks {
		c := r.condensers[i]
		o := c.Observation()
		switch {
		case c.tail != nil && c.points > 0:
			o.Chosen = o.Latest
			if mean, ok := c.tail.mean(); ok {
				o.Chosen = measure(Point{Value: mean})
			}
		case r.found[i] != nil && r.found[i].any:
			o.Chosen = measure(r.found[i].last.Point)
		case ask.Strategy == StrategyBestAtStep && ask.Metric == ask.Objective:
			if best, ok := r.best(i); ok {
				o.Chosen = measure(best.Point)
			}
		default:
			o.Chosen, _ = o.By(ask.Strategy)
		}
		all[i] = o
	}
	return all
}

// finder looks for the last point of a metric in one attempt up to a step.
type finder struct {
	metric  string
	attempt string
	step    int64

	steps carrier
	last  placed
	any   bool
}

func (f *finder) add(a Attempt, p Point) {
	if a.ID != f.attempt || p.Metric != f.metric {
		return
	}
	at := placed{Point: p, step: f.steps.of(p)}
	if at.step == NoStep || at.step > f.step || f.any && at.compare(&f.last) <= 0 {
		return
	}
	f.last, f.any = at, true
}

// tail keeps the last points, at most size of them, as a heap with the first of
// them on top.
type tail struct {
	size  int
	least []placed
}

func (t *tail) add(p *placed) {
	if len(t.least) < t.size {
		t.least = append(t.least, *p)
		for i := len(t.least) - 1; i > 0; {
			parent := (i - 1) / 2
			if t.least[i].compare(&t.least[parent]) >= 0 {
				return
			}
			t.least[i], t.least[parent] = t.least[parent], t.least[i]
			i = parent
		}
		return
	}
	if p.compare(&t.least[0]) <= 0 {
		return
	}
	t.least[0] = *p
	for i := 0; ; {
		first := i
		for _, child := range [...]int{2*i + 1, 2*i + 2} {
			if child < len(t.least) && t.least[child].compare(&t.least[first]) < 0 {
				first = child
			}
		}
		if first == i {
			return
		}
		t.least[i], t.least[first] = t.least[first], t.least[i]
		i = first
	}
}

// mean is that of the finite values. It adds in the order of the points, so that
// equal points give equal bits, and in parts, so that it does not overflow.
func (t *tail) mean() (mean float64, ok bool) {
	points := slices.Clone(t.least)
	slices.SortFunc(points, func(a, b placed) int { return a.compare(&b) })
	var values []float64
	for _, p := range points {
		if kind(p.Value) == 0 {
			values = append(values, p.Value)
		}
	}
	if len(values) == 0 {
		return 0, false
	}
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	if !math.IsInf(sum, 0) {
		return sum / float64(len(values)), true
	}
	for _, v := range values {
		mean += v / float64(len(values))
	}
	return mean, true
}
