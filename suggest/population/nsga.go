package population

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/history"
	"github.com/vernier-ml/vernier/suggest/numeric/box"
	"github.com/vernier-ml/vernier/suggest/numeric/pareto"
	"github.com/vernier-ml/vernier/suggest/numeric/qmc"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
	"github.com/vernier-ml/vernier/suggest/propose"
)

// genetic is a genetic algorithm for one or more objectives: NSGA-II or
// NSGA-III, which differ in who survives. The best population of the results so
// far has children; each few results, the survivors are chosen again. That
// needs no waiting, and is how far steady-state variants got ahead of the
// generations of the original (Durillo, Nebro, Luna and Alba, "On the effect of
// the steady-state selection scheme in multi-objective genetic algorithms", 2009).
// The population is rebuilt from what the trials carry: see generations.
type genetic struct {
	name    string
	space   suggest.Space
	seeding propose.Seeding
	options geneticOptions

	mu       sync.Mutex
	follower *history.Follower
	rules    *geneticRules
	replay   *history.Generations[survivors]
}

var (
	_ suggest.Algorithm = (*genetic)(nil)
	_ suggest.Preparer  = (*genetic)(nil)
)

type geneticOptions struct {
	population int // 0: by the number of objectives
	variation  variation
	survive    survival
}

// survival picks a population from ranked results.
type survival func(ranked []survivor, population int, key rng.Key) []survivor

// survivor is a member of a population.
type survivor struct {
	*history.Row
	rank  int     // of its front, constraints and failures included
	crowd float64 // how much room it has in its front; more is better
}

// survivors are a population, best first.
type survivors struct {
	generation int
	members    []survivor
}

// registration of a variant.
func registration(name, summary string, survive survival) propose.Registration {
	return propose.Registration{
		Name: name, Summary: summary, Adaptive: true, Evolves: true, Exhaustive: true,
		New: suggest.Reading(func(space suggest.Space, r *suggest.SettingsReader) suggest.Algorithm {
			return newGenetic(name, space, r, survive)
		}),
		Settings: []propose.Setting{
			{Name: "crossover_prob", Default: "0.9", Help: "Probability of two parents in place of one, from 0 to 1."},
			{Name: "mutation_prob", Default: "1/parameters", Help: "Probability that a parameter is changed at random, above 0 and at most 1."},
			{Name: "population", Default: "30, and 50 above three objectives", Help: "How many trials survive, a whole number of at least 4."},
			propose.RandomStateSetting(),
		},
	}
}

// NSGA2 is the registration of the algorithm.
func NSGA2() propose.Registration {
	return registration("nsga2", "A genetic algorithm that keeps the trials which no other beats in all objectives, and of these the ones with the most room (NSGA-II). For two or three objectives and many trials; works with one.", surviveByCrowding)
}

// NSGA3 is the registration of the algorithm.
func NSGA3() propose.Registration {
	return registration("nsga3", "A genetic algorithm that keeps the trials which no other beats in all objectives, spread over directions of compromise (NSGA-III). For four objectives or more and many trials.", surviveByDirections)
}

func newGenetic(name string, space suggest.Space, r *suggest.SettingsReader, survive survival) suggest.Algorithm {
	a := &genetic{name: name, space: space, follower: history.NewFollower(space), seeding: propose.ReadSeeding(r)}
	free := 0
	for _, dim := range a.follower.Dims {
		if dim.Kind == box.Continuous || dim.Count > 1 || len(dim.Levels) > 1 {
			free++
		}
	}
	a.options = geneticOptions{
		population: int(r.Int("population", 0, suggest.Range{Min: 4, Max: 10_000})),
		survive:    survive,
		variation: variation{
			dims:      a.follower.Dims,
			crossover: r.Float("crossover_prob", 0.9, suggest.Range{Max: 1}),
			mutation:  r.Float("mutation_prob", 1/float64(max(1, free)), suggest.Range{OpenMin: true, Max: 1}),
			near:      5, // the usual 15 or 20 are for tens of thousands of trials
		},
	}
	return a
}

// Prepare implements suggest.Preparer.
func (a *genetic) Prepare(ctx context.Context, s suggest.Study) {
	a.mu.Lock()
	defer a.mu.Unlock()
	_ = a.catchUp(ctx, s) // Suggest tells
}

func (a *genetic) catchUp(ctx context.Context, s suggest.Study) error {
	changed, again := a.follower.Follow(s, a.seeding.Seed(s))
	if again || a.replay == nil || a.replay.Outdated(changed) {
		a.rules = newGeneticRules(a.name, a.follower, a.options)
		a.replay = history.NewGenerations(a.follower, a.rules)
	}
	return a.replay.Advance(ctx)
}

// Suggest implements suggest.Algorithm.
func (a *genetic) Suggest(ctx context.Context, s suggest.Study, n int) ([]suggest.Proposal, error) {
	if err := ctx.Err(); errors.Is(err, context.Canceled) || n <= 0 {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	err := a.catchUp(ctx, s)
	late := errors.Is(err, context.DeadlineExceeded)
	if err != nil && !late {
		return nil, err
	}
	return propose.NewTriedAlways(a.space, a.follower.History.Rows).Fill(ctx, a.follower.History.Next, n, rng.NewKey(a.follower.Seed, a.name, "untried"), func(number int) propose.Drawing {
		b := a.breeder(number, late)
		return propose.Drawing{Draw: b.draw, Proposal: b.proposal}
	})
}

// breeder draws the point of one trial.
type breeder struct {
	rules  *geneticRules
	from   history.Proposed[survivors]
	number int
	late   bool
	stream *rng.Stream
	draws  int
}

func (a *genetic) breeder(number int, late bool) *breeder {
	b := &breeder{rules: a.rules, number: number, late: late, stream: a.rules.children.Stream(uint64(number))}
	if !late {
		b.from = a.replay.Ahead
	}
	return b
}

func (b *breeder) draw() suggest.Point {
	b.draws++
	if b.founding() || b.draws > propose.ModelAttempts {
		return b.rules.founder(b.number, b.draws, b.stream)
	}
	mother, father := b.parent(), b.parent()
	return b.rules.follower.Point(b.rules.options.variation.child(mother.X, father.X, b.stream))
}

// founding says whether there are not enough results yet for selection to mean
// something.
func (b *breeder) founding() bool {
	return b.late || len(b.from.State.members) < b.rules.founders
}

// parent wins a tournament of two.
func (b *breeder) parent() *survivor {
	members := b.from.State.members
	one := &members[b.stream.Uint64N(uint64(len(members)))]
	two := &members[b.stream.Uint64N(uint64(len(members)))]
	if two.rank < one.rank || two.rank == one.rank && two.crowd > one.crowd {
		return two
	}
	return one
}

func (b *breeder) proposal(p suggest.Point) suggest.Proposal {
	out := suggest.Proposal{Point: p}
	switch {
	case b.late:
		out.Why, out.Fallback = "drawn from the parameters' distributions, as time was up", "deadline"
		return out
	case b.founding():
		out.Why = "one of the points that the population starts with, spread evenly"
		if b.draws <= len(b.rules.elite) {
			out.Why = "one of the best points of another study"
		}
	case b.draws > propose.ModelAttempts:
		out.Why, out.Fallback = "drawn from the parameters' distributions, as no child was new and allowed", "prior"
	default:
		out.Why = fmt.Sprintf("a child of the %d best trials", len(b.from.State.members))
	}
	out.Meta = suggest.Meta{b.rules.Meta(): b.from.Meta}
	return out
}

// geneticRules are how one population follows from another.
type geneticRules struct {
	name     string
	follower *history.Follower
	options  geneticOptions
	children rng.Key
	survival rng.Key
	founders int             // results before there are children
	elite    []suggest.Point // of other studies, tried first
	sequence *qmc.Sobol      // of the points to start with; nil when there are too many dimensions
}

var _ history.Rules[survivors] = (*geneticRules)(nil)

func newGeneticRules(name string, l *history.Follower, o geneticOptions) *geneticRules {
	if o.population == 0 {
		o.population = 30
		if l.History.Objectives > 3 {
			o.population = 50
		}
	}
	r := &geneticRules{
		name: name, follower: l, options: o,
		children: rng.NewKey(l.Seed, name, "child"),
		survival: rng.NewKey(l.Seed, name, "survival"),
		founders: max(2, o.population/5),
	}
	r.elite = elite(l.History.Warm, r.founders)
	if n := l.Space.Len(); n > 0 && n <= qmc.MaxDimensions { // then there is no error
		r.sequence, _ = qmc.NewScrambledSobol(n, rng.NewKey(l.Seed, name, "start"))
	}
	return r
}

// founder is a point to start with.
func (r *geneticRules) founder(number, draw int, stream *rng.Stream) suggest.Point {
	if draw <= len(r.elite) {
		return slices.Clone(r.elite[draw-1])
	}
	u := make([]float64, r.follower.Space.Len())
	if r.sequence != nil && draw == len(r.elite)+1 {
		r.sequence.At(uint32(number), u)
	} else {
		stream.Fill(u)
	}
	return r.follower.Space.Decode(u)
}

// Meta implements history.Rules.
func (r *geneticRules) Meta() string { return r.name }

// Stale implements history.Rules.
func (r *geneticRules) Stale(*survivors, int) bool { return false }

// Need implements history.Rules.
func (r *geneticRules) Need(s *survivors) int {
	if s == nil || len(s.members) < r.founders {
		return max(1, r.founders/5)
	}
	return max(1, r.options.population/10)
}

// Next implements history.Rules.
func (r *geneticRules) Next(g *history.Generations[survivors], entries []int) *survivors {
	next := &survivors{}
	var all []*history.Row
	if g.State != nil {
		next.generation = g.State.generation + 1
		for _, m := range g.State.members {
			all = append(all, m.Row)
		}
	}
	for _, i := range entries {
		all = append(all, r.follower.History.Rows[i])
	}
	key := r.survival.At(uint64(next.generation))
	next.members = r.options.survive(rankMembers(all), r.options.population, key)
	return next
}

// rankMembers sorts results by front: sound ones by dominance, then those that
// were stopped early by dominance, then those that violate constraints by how
// much, then failed ones (constrained domination, Deb et al. 2002, section VI).
// Equal ones stay in order.
func rankMembers(all []*history.Row) []survivor {
	out := make([]survivor, 0, len(all))
	rank := 0
	for _, c := range []history.Class{history.Measured, history.Pruned} {
		var group []*history.Row
		var losses [][]float64
		for _, r := range all {
			if r.Class == c {
				group, losses = append(group, r), append(losses, r.Losses)
			}
		}
		fronts := pareto.Fronts(losses)
		for k, front := range fronts {
			for _, i := range front {
				out = append(out, survivor{Row: group[i], rank: rank + k})
			}
		}
		rank += len(fronts)
	}
	var rest []*history.Row
	for _, r := range all {
		if r.Class == history.Infeasible || r.Class == history.Failed {
			rest = append(rest, r)
		}
	}
	worse := func(a, b *history.Row) int {
		if a.Class == history.Infeasible && b.Class == history.Infeasible && a.Violation == b.Violation {
			return 0
		}
		return a.Compare(b)
	}
	slices.SortStableFunc(rest, worse)
	for k, r := range rest {
		if k > 0 && worse(rest[k-1], r) != 0 {
			rank++
		}
		out = append(out, survivor{Row: r, rank: rank})
	}
	return out
}

// frontsOf cuts ranked members into fronts.
func frontsOf(ranked []survivor) [][]survivor {
	var out [][]survivor
	for begin := 0; begin < len(ranked); {
		end := begin
		for end < len(ranked) && ranked[end].rank == ranked[begin].rank {
			end++
		}
		out = append(out, ranked[begin:end])
		begin = end
	}
	return out
}

func lossesOfMembers(front []survivor) [][]float64 {
	out := make([][]float64, len(front))
	for i, m := range front {
		out[i] = m.Losses
	}
	return out
}
