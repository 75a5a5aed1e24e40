package cmaes

import (
	"math"
	"slices"

	"github.com/vernier-ml/vernier/suggest/history"
	"github.com/vernier-ml/vernier/suggest/numeric/box"
	"github.com/vernier-ml/vernier/suggest/numeric/cma"
	"github.com/vernier-ml/vernier/suggest/numeric/qmc"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
	"github.com/vernier-ml/vernier/suggest/propose"
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
	follower   *history.Follower
	options    cmaOptions
	samples    rng.Key
	prior      rng.Key
	restart    rng.Key
	free       int        // dimensions that samples have a say in
	population int        // of the first run
	sequence   *qmc.Sobol // of the first attempts; nil when there are too many dimensions
	stepped    []bool     // of each dimension, whether it has more levels than models see
}

var _ history.Rules[cmaState] = (*cmaRules)(nil)

func newCmaRules(l *history.Follower, o cmaOptions) *cmaRules {
	r := &cmaRules{
		follower: l, options: o,
		samples: rng.NewKey(l.Seed, "cmaes", "sample"),
		prior:   rng.NewKey(l.Seed, "cmaes", "prior"),
		restart: rng.NewKey(l.Seed, "cmaes", "restart"),
	}
	for i, dim := range l.Dims {
		_, finite := l.Space.At(i).Count()
		r.stepped = append(r.stepped, finite && dim.Kind == box.Continuous)
	}
	model := cma.New(o.Options)
	r.free, r.population = model.Free(), model.Population()
	if r.free > 0 && r.free <= qmc.MaxDimensions { // then there is no error
		r.sequence, _ = qmc.NewScrambledSobol(r.free, rng.NewKey(l.Seed, "cmaes", "scramble"))
	}
	return r
}

// Meta implements history.Rules.
func (r *cmaRules) Meta() string { return "cma" }

// Need implements history.Rules.
func (r *cmaRules) Need(s *cmaState) int {
	if s == nil {
		return r.population
	}
	return s.model.Population()
}

// Stale results are those of an earlier run: they would pull the present one
// back.
func (r *cmaRules) Stale(s *cmaState, generation int) bool { return s != nil && generation < s.began }

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

// Next implements history.Rules.
func (r *cmaRules) Next(g *history.Generations[cmaState], entries []int) *cmaState {
	results := make([]*history.Row, len(entries))
	for k, i := range entries {
		results[k] = r.follower.History.Rows[i]
	}
	if g.State == nil {
		return r.first(results)
	}
	next := *g.State
	next.generation++
	next.cost += len(results)
	next.model = g.State.model.Clone()
	candidates, best := r.rank(g, entries)
	next.model.Update(candidates, best)
	if next.scale == 0 {
		next.scale = extent(results)
	}
	if r.options.strategy != cma.None && (next.model.Stop(next.scale) != "" || next.restarts.Spent(next.cost)) {
		r.begin(&next)
	}
	return &next
}

const (
	// tooFar is how many times further from the best than the next better one a loss may lie.
	tooFar = 1e9
	// rounding is how far from the best, as a part of it, equal losses may lie.
	rounding = 1e-13
)

// extent is how far the losses are apart, halved so that it is finite. Those that lie too far,
// as when a training has diverged, are left out: compared to them, no progress counts.
func extent(results []*history.Row) (apart float64) {
	var losses []float64
	for _, result := range results {
		if result.Losses != nil {
			losses = append(losses, result.Losses[0]/2)
		}
	}
	slices.Sort(losses)
	for _, loss := range losses {
		if far := loss - losses[0]; apart <= rounding*math.Abs(losses[0]) || far <= tooFar*apart {
			apart = far
		}
	}
	return apart
}

// first is the state before the first generation: in the middle, or where the
// results, and those of other studies, say.
func (r *cmaRules) first(results []*history.Row) *cmaState {
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
func (r *cmaRules) elite(own []*history.Row) (rows [][]float64) {
	groups := append([][]*history.Row{own}, history.Sources(r.follower.History.Warm)...)
	for _, group := range groups {
		group = slices.DeleteFunc(slices.Clone(group), func(a *history.Row) bool { return a.Losses == nil })
		slices.SortStableFunc(group, (*history.Row).Compare)
		for k := 0; k < len(group) && k < max(1, len(group)/10); k++ {
			rows = append(rows, group[k].X)
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
func (r *cmaRules) rank(g *history.Generations[cmaState], entries []int) (candidates []cma.Candidate, best float64) {
	entries = slices.Clone(entries)
	at := func(i int) *history.Row { return r.follower.History.Rows[i] }
	slices.SortStableFunc(entries, func(i, j int) int { return at(i).Compare(at(j)) })
	best = math.NaN()
	if first := at(entries[0]); first.Class == history.Measured {
		best = first.Losses[0]
	}
	for k, i := range entries {
		c := cma.Candidate{Row: at(i).X, Rank: k, Foreign: g.Of[i] != g.Number}
		if k > 0 && at(entries[k-1]).Compare(at(i)) == 0 {
			c.Rank = candidates[k-1].Rank
		}
		if g.Of[i] != history.Foreign {
			c.Row = r.raw(at(i), g.States[g.Of[i]])
		}
		candidates = append(candidates, c)
	}
	return candidates, best
}

// raw is the sample of a generation that a point comes from, which tells more
// than the point: between levels, and outside of the box.
func (r *cmaRules) raw(t *history.Row, of *cmaState) []float64 {
	stream := r.samples.Stream(uint64(t.Number))
	row := make([]float64, len(t.X))
	u := r.evenly(t.Number)
	for range propose.ModelAttempts {
		of.model.Sample(stream, u, row)
		u = nil
		if !r.meant(row, t) {
			continue
		}
		for i, dim := range r.follower.Dims {
			within := dim.Kind == box.Continuous && row[i] >= 0 && row[i] <= 1
			if within || dim.Kind == box.Choice || math.IsNaN(t.X[i]) {
				row[i] = t.X[i] // as it was written, and where it was not active
			}
		}
		return row
	}
	return t.X
}

// meant says whether a sample is moved to the point of a trial.
func (r *cmaRules) meant(row []float64, t *history.Row) bool {
	for i, dim := range r.follower.Dims {
		switch x := t.X[i]; {
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
			if !r.follower.Space.At(i).Decode(row[i]).Equal(t.Point[i]) {
				return false
			}
		case math.Abs(min(max(row[i], 0), 1)-x) > 1e-9: // more than writing it as text and reading it loses
			return false
		}
	}
	return true
}
