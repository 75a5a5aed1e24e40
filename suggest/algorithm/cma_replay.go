package algorithm

import (
	"context"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/vernier-ml/vernier/suggest/numeric/box"
	"github.com/vernier-ml/vernier/suggest/numeric/cma"
	"github.com/vernier-ml/vernier/suggest/numeric/qmc"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

// cmaMeta is where a trial keeps its generation and, after a space, the numbers
// of the trials that led to the generation.
const cmaMeta = "cma"

// cmaState is the search at the beginning of a generation. It is not modified.
type cmaState struct {
	generation int // over all runs
	began      int // generation that the present run began with
	model      *cma.Model
	restarts   cma.Restarts
	cost       int     // results that the present run has used
	scale      float64 // how far the losses of the first generation were apart
}

// cmaReplay follows the generations through the trials of a study.
type cmaReplay struct {
	ledger     *ledger
	options    cmaOptions
	samples    rng.Key
	prior      rng.Key
	restart    rng.Key
	free       int               // dimensions that samples have a say in
	population int               // of the first run
	sequence   *qmc.Sobol        // of the first attempts; nil when there are too many dimensions
	states     map[int]*cmaState // of the generations that have waiting entries
	state      *cmaState
	of         []int  // of each entry that was read, the generation; foreign when it has none
	used       []bool // of each entry that was read
	waiting    []int  // entries that were read and not used, open ones included
	ahead      *cmaState
	parents    []int  // entries that lead from state to ahead
	metaText   string // of the trials that are samples of ahead
}

const foreign = -1

func newCmaReplay(l *ledger, o cmaOptions) *cmaReplay {
	r := &cmaReplay{
		ledger: l, options: o,
		samples: rng.NewKey(l.seed, "cmaes", "sample"),
		prior:   rng.NewKey(l.seed, "cmaes", "prior"),
		restart: rng.NewKey(l.seed, "cmaes", "restart"),
		states:  map[int]*cmaState{},
	}
	model := cma.New(o.Options)
	r.free, r.population = model.Free(), model.Population()
	if r.free > 0 && r.free <= qmc.MaxDimensions { // then there is no error
		r.sequence, _ = qmc.NewScrambledSobol(r.free, rng.NewKey(l.seed, "cmaes", "scramble"))
	}
	return r
}

// evenly is the part of a trial in the low-discrepancy sequence. The trials of
// a generation follow each other in it.
func (r *cmaReplay) evenly(number int) []float64 {
	if r.sequence == nil {
		return nil
	}
	u := make([]float64, r.free)
	r.sequence.At(uint32(number), u)
	return u
}

// advance reads the entries that are new, and ends the generation when enough
// results wait. It can be called again after an error.
func (r *cmaReplay) advance(ctx context.Context) error {
	for len(r.of) < len(r.ledger.entries) {
		if err := ctx.Err(); err != nil {
			return err
		}
		i := len(r.of)
		generation, parents, ok := r.parse(r.ledger.entries[i].result)
		if ok && r.follows(generation, parents) {
			slices.Sort(parents)
			r.state = r.step(parents)
			r.metaText = r.text(generation, parents)
			r.use(parents)
			r.states[generation] = r.state
		}
		if !ok || r.state == nil || generation != r.state.generation {
			generation = foreign
		}
		r.of, r.used = append(r.of, generation), append(r.used, false)
		r.waiting = append(r.waiting, i)
	}
	return r.look()
}

// follows says whether a trial is the first of the next generation.
func (r *cmaReplay) follows(generation int, parents []int) bool {
	if r.state == nil {
		return generation == 0
	}
	return generation == r.state.generation+1 && len(parents) > 0
}

// look makes the state that new trials are samples of.
func (r *cmaReplay) look() error {
	var ready []int
	for _, i := range r.waiting {
		if r.usable(i) {
			ready = append(ready, i)
		}
	}
	population := r.population
	if r.state != nil {
		population = r.state.model.Population()
	}
	switch {
	case len(ready) < population && r.state != nil:
		r.ahead, r.parents = r.state, nil
		return nil
	case len(ready) < population:
		ready = nil
	}
	if r.ahead == nil || r.ahead == r.state || !slices.Equal(ready, r.parents) {
		r.ahead = r.step(ready)
		r.parents = ready
		r.metaText = r.text(r.ahead.generation, ready)
	}
	return nil
}

// present is the state that new trials are samples of, and their Meta.
func (r *cmaReplay) present() (*cmaState, string) { return r.ahead, r.metaText }

// usable says whether the result of an entry waits to be used. Results of an
// earlier run are not.
func (r *cmaReplay) usable(i int) bool {
	if !r.ledger.entries[i].result.ended() || r.used[i] {
		return false
	}
	return r.of[i] == foreign || r.state != nil && r.of[i] >= r.state.began
}

// use marks entries that a generation was made of.
func (r *cmaReplay) use(entries []int) {
	for _, i := range entries {
		r.used[i] = true
	}
	r.waiting = slices.DeleteFunc(r.waiting, func(i int) bool {
		return r.used[i] || r.of[i] != foreign && r.of[i] < r.state.began
	})
	oldest := r.state.generation
	for _, i := range r.waiting {
		if r.of[i] != foreign {
			oldest = r.of[i] // they are in order
			break
		}
	}
	maps.DeleteFunc(r.states, func(generation int, _ *cmaState) bool { return generation < oldest })
}

// step is the state of the next generation, made of the given entries.
func (r *cmaReplay) step(entries []int) *cmaState {
	if r.ahead != nil && r.ahead != r.state && slices.Equal(entries, r.parents) {
		return r.ahead
	}
	results := make([]*result, len(entries))
	for k, i := range entries {
		results[k] = r.ledger.entries[i].result
	}
	if r.state == nil {
		return r.first(results)
	}
	next := *r.state
	next.generation++
	next.cost += len(results)
	next.model = r.state.model.Clone()
	candidates, best := r.rank(entries)
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
func (r *cmaReplay) first(results []*result) *cmaState {
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
func (r *cmaReplay) elite(own []*result) (rows [][]float64) {
	sources := map[string][]*result{}
	var names []string
	for i := range r.ledger.warm {
		t := &r.ledger.warm[i]
		if sources[t.Meta["study"]] == nil {
			names = append(names, t.Meta["study"])
		}
		sources[t.Meta["study"]] = append(sources[t.Meta["study"]], r.ledger.result(t))
	}
	groups := [][]*result{own}
	for _, name := range names {
		groups = append(groups, sources[name])
	}
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
func (r *cmaReplay) begin(s *cmaState) {
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
func (r *cmaReplay) rank(entries []int) (candidates []cma.Candidate, best float64) {
	entries = slices.Clone(entries)
	at := func(i int) *result { return r.ledger.entries[i].result }
	slices.SortStableFunc(entries, func(i, j int) int { return at(i).better(at(j)) })
	best = math.NaN()
	if first := at(entries[0]); first.class == sound {
		best = first.losses[0]
	}
	for k, i := range entries {
		c := cma.Candidate{Row: at(i).x, Rank: k, Foreign: r.of[i] != r.state.generation}
		if k > 0 && at(entries[k-1]).better(at(i)) == 0 {
			c.Rank = candidates[k-1].Rank
		}
		if r.of[i] != foreign {
			c.Row = r.raw(at(i), r.states[r.of[i]])
		}
		candidates = append(candidates, c)
	}
	return candidates, best
}

// raw is the sample of a generation that a point comes from, which tells more
// than the point: between levels, and outside of the box.
func (r *cmaReplay) raw(t *result, of *cmaState) []float64 {
	stream := r.samples.Stream(uint64(t.number))
	row := make([]float64, len(t.x))
	u := r.evenly(t.number)
	for range modelAttempts {
		of.model.Sample(stream, u, row)
		u = nil
		if !r.ledger.point(row).Equal(t.point) {
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

// text is the Meta of a generation's trials.
func (r *cmaReplay) text(generation int, entries []int) string {
	b := strconv.AppendInt(nil, int64(generation), 10)
	for k := 0; k < len(entries); k++ {
		first := k
		for k+1 < len(entries) && entries[k+1] == entries[k]+1 && r.number(entries[k+1]) == r.number(entries[k])+1 {
			k++
		}
		b = append(b, " ,"[min(1, first)])
		b = strconv.AppendInt(b, int64(r.number(entries[first])), 10)
		if k > first {
			b = append(b, '-')
			b = strconv.AppendInt(b, int64(r.number(entries[k])), 10)
		}
	}
	return string(b)
}

func (r *cmaReplay) number(entry int) int { return r.ledger.entries[entry].number }

// parse reads what text wrote. Trials that are not there, are used already or
// have not ended are left out.
func (r *cmaReplay) parse(t *result) (generation int, parents []int, ok bool) {
	text, ok := t.meta[cmaMeta]
	if !ok {
		return 0, nil, false
	}
	head, list, _ := strings.Cut(text, " ")
	generation, err := strconv.Atoi(head)
	if err != nil || generation < 0 {
		return 0, nil, false
	}
	if r.state != nil && generation == r.state.generation {
		return generation, nil, true // the generation is known
	}
	for part := range strings.SplitSeq(list, ",") {
		parents = r.parseRange(parents, part)
	}
	return generation, parents, true
}

func (r *cmaReplay) parseRange(parents []int, text string) []int {
	from, to, isRange := strings.Cut(text, "-")
	low, err := strconv.Atoi(from)
	if err != nil {
		return parents
	}
	high := low
	if isRange {
		if high, err = strconv.Atoi(to); err != nil {
			return parents
		}
	}
	entries := r.ledger.entries[:len(r.of)]
	at, _ := slices.BinarySearchFunc(entries, low, func(e entry, number int) int { return e.number - number })
	for ; at < len(entries) && entries[at].number <= high; at++ {
		if entries[at].result.ended() && !r.used[at] && !slices.Contains(parents, at) {
			parents = append(parents, at)
		}
	}
	return parents
}
