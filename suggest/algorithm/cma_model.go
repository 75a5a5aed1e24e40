package algorithm

import (
	"math"
	"slices"

	"github.com/vernier-ml/vernier/suggest/numeric/box"
	"github.com/vernier-ml/vernier/suggest/numeric/cma"
	"github.com/vernier-ml/vernier/suggest/numeric/qmc"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

// cmaState is the search at the beginning of a generation.
type cmaState struct {
	generation int // over all runs
	began      int // generation that the present run began with
	model      *cma.Model
	restarts   cma.Restarts
	cost       int     // results that the present run has used
	scale      float64 // how far the losses of the first generation were apart
}

// cmaRules are how one state follows from another.
type cmaRules struct {
	ledger     *ledger
	options    cmaOptions
	samples    rng.Key
	prior      rng.Key
	restart    rng.Key
	free       int        // dimensions that samples have a say in
	population int        // of the first run
	sequence   *qmc.Sobol // of the first attempts; nil when there are too many dimensions
	stepped    []bool     // of each dimension, whether it has more levels than models see
}

var _ rules[cmaState] = (*cmaRules)(nil)

func newCmaRules(l *ledger, o cmaOptions) *cmaRules {
	r := &cmaRules{
		ledger: l, options: o,
		samples: rng.NewKey(l.seed, "cmaes", "sample"),
		prior:   rng.NewKey(l.seed, "cmaes", "prior"),
		restart: rng.NewKey(l.seed, "cmaes", "restart"),
	}
	for i, dim := range l.dims {
		_, finite := l.space.At(i).Count()
		r.stepped = append(r.stepped, finite && dim.Kind == box.Continuous)
	}
	model := cma.New(o.Options)
	r.free, r.population = model.Free(), model.Population()
	if r.free > 0 && r.free <= qmc.MaxDimensions { // then there is no error
		r.sequence, _ = qmc.NewScrambledSobol(r.free, rng.NewKey(l.seed, "cmaes", "scramble"))
	}
	return r
}

func (r *cmaRules) meta() string { return "cma" }

func (r *cmaRules) need(s *cmaState) int {
	if s == nil {
		return r.population
	}
	return s.model.Population()
}

// stale results are those of an earlier run: they would pull the present one
// back.
func (r *cmaRules) stale(s *cmaState, generation int) bool { return s != nil && generation < s.began }

// evenly is the part of a trial in the low-discrepancy sequence. The trials of
// a generation follow each other in it.
func (r *cmaRules) evenly(number int) []float64 {
	if r.sequence == nil {
		return nil
	}
	u := make([]float64, r.free)
	r.sequence.At(uint32(number), u)
	return u
}

func (r *cmaRules) next(g *generations[cmaState], entries []int) *cmaState {
	results := make([]*result, len(entries))
	for k, i := range entries {
		results[k] = r.ledger.entries[i].result
	}
	if g.state == nil {
		return r.first(results)
	}
	next := *g.state
	next.generation++
	next.cost += len(results)
	next.model = g.state.model.Clone()
	candidates, best := r.rank(g, entries)
	next.model.Update(candidates, best)
	if next.scale == 0 {
		next.scale = extent(results)
	}
	if r.options.strategy != cma.None && next.model.Stop(next.scale) != "" {
		r.begin(&next)
	}
	return &next
}

// extent is how far the losses are apart, halved so that it is finite.
func extent(results []*result) float64 {
	low, high := math.Inf(1), math.Inf(-1)
	for _, result := range results {
		if result.losses != nil {
			low, high = math.Min(low, result.losses[0]/2), math.Max(high, result.losses[0]/2)
		}
	}
	return math.Max(0, high-low)
}

// first is the state before the first generation: in the middle, or where the
// results, and those of other studies, say.
func (r *cmaRules) first(results []*result) *cmaState {
	o := r.options.Options
	if rows := r.elite(results); len(rows) > 0 {
		o.Start = cma.WarmStart(o.Dims, rows)
	}
	model := cma.New(o)
	return &cmaState{
		model:    model,
		restarts: cma.Restarts{Strategy: r.options.strategy, Population: model.Population(), Sigma: o.Sigma},
	}
}

// elite is the best tenth of each source, at least one of each.
func (r *cmaRules) elite(own []*result) (rows [][]float64) {
	groups := append([][]*result{own}, r.ledger.sources()...)
	for _, group := range groups {
		group = slices.DeleteFunc(slices.Clone(group), func(a *result) bool { return a.losses == nil })
		slices.SortStableFunc(group, (*result).better)
		for k := 0; k < len(group) && k < max(1, len(group)/10); k++ {
			rows = append(rows, group[k].x)
		}
	}
	return rows
}

// begin starts the next run somewhere else.
func (r *cmaRules) begin(s *cmaState) {
	stream := r.restart.Stream(uint64(s.generation))
	o := r.options.Options
	o.Population, o.Sigma = s.restarts.Next(s.cost, stream.Float64(), stream.Float64())
	mean := make([]float64, len(o.Dims))
	for i := range mean {
		mean[i] = stream.Float64()
	}
	o.Start = &cma.Start{Mean: mean}
	s.model, s.began, s.cost = cma.New(o), s.generation, 0
}

// rank makes candidates of entries, best first, and gives the smallest loss; NaN
// when none is sound.
func (r *cmaRules) rank(g *generations[cmaState], entries []int) (candidates []cma.Candidate, best float64) {
	entries = slices.Clone(entries)
	at := func(i int) *result { return r.ledger.entries[i].result }
	slices.SortStableFunc(entries, func(i, j int) int { return at(i).better(at(j)) })
	best = math.NaN()
	if first := at(entries[0]); first.class == sound {
		best = first.losses[0]
	}
	for k, i := range entries {
		c := cma.Candidate{Row: at(i).x, Rank: k, Foreign: g.of[i] != g.number}
		if k > 0 && at(entries[k-1]).better(at(i)) == 0 {
			c.Rank = candidates[k-1].Rank
		}
		if g.of[i] != foreign {
			c.Row = r.raw(at(i), g.states[g.of[i]])
		}
		candidates = append(candidates, c)
	}
	return candidates, best
}

// raw is the sample of a generation that a point comes from, which tells more
// than the point: between levels, and outside of the box.
func (r *cmaRules) raw(t *result, of *cmaState) []float64 {
	stream := r.samples.Stream(uint64(t.number))
	row := make([]float64, len(t.x))
	u := r.evenly(t.number)
	for range modelAttempts {
		of.model.Sample(stream, u, row)
		u = nil
		if !r.meant(row, t) {
			continue
		}
		for i, dim := range r.ledger.dims {
			within := dim.Kind == box.Continuous && row[i] >= 0 && row[i] <= 1
			if within || dim.Kind == box.Choice || math.IsNaN(t.x[i]) {
				row[i] = t.x[i] // as it was written, and where it was not active
			}
		}
		return row
	}
	return t.x
}

// meant says whether a sample is moved to the point of a trial.
func (r *cmaRules) meant(row []float64, t *result) bool {
	for i, dim := range r.ledger.dims {
		switch x := t.x[i]; {
		case math.IsNaN(x):
		case dim.Kind == box.Choice:
			if row[i] != x {
				return false
			}
		case dim.Kind == box.Ordered:
			if dim.Nearest(row[i]) != dim.Nearest(x) {
				return false
			}
		case r.stepped[i]:
			if !r.ledger.space.At(i).Decode(row[i]).Equal(t.point[i]) {
				return false
			}
		case math.Abs(into(row[i])-x) > 1e-9: // more than writing it as text and reading it loses
			return false
		}
	}
	return true
}
