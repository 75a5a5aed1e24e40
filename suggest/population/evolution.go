package population

import (
	"cmp"
	"context"
	"errors"
	"math"
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

// evolution is regularized evolution (Real, Aggarwal, Huang and Le,
// "Regularized evolution for image classifier architecture search", 2019): a new
// point is the best of a random sample of the population with one parameter
// changed, and the population is the latest trials, so that each dies of age,
// however good it was. A lucky measurement is thus not passed on for ever. With
// several objectives the best of a sample is one that no other beats, and of
// these the one with the most room.
//
// It needs no state: the population is in the study.
type evolution struct {
	space   suggest.Space
	seeding propose.Seeding
	options evolutionOptions

	mu       sync.Mutex
	follower *history.Follower
	seed     uint64
	sequence *qmc.Sobol // of the points to start with; nil when there are too many dimensions
}

type evolutionOptions struct {
	population, sample, founders int
	variation                    variation
}

var _ suggest.Algorithm = (*evolution)(nil)

// RegularizedEvolution is the registration of the algorithm.
func RegularizedEvolution() propose.Registration {
	return propose.Registration{
		Name:    "regularized-evolution",
		Summary: "Changes one parameter of the best among some of the latest trials (regularized evolution). For architectures and other spaces of many choices, also noisy ones; for one or more objectives.",
		New:     suggest.Reading(newEvolution),
		Settings: []propose.Setting{
			{Name: "founders", Default: "20, or the population where that is less", Help: "How many trials with a result there are before any is changed, a whole number of at least 1 and at most the population."},
			{Name: "population", Default: "50", Help: "How many of the latest trials may have children, a whole number of at least 2."},
			propose.RandomStateSetting(),
			{Name: "sample_size", Default: "10", Help: "How many trials of the population are compared to find a parent, a whole number of at least 1. More is greedier."},
		},
		Adaptive:   true,
		Evolves:    true,
		Exhaustive: true,
	}
}

func newEvolution(space suggest.Space, r *suggest.SettingsReader) suggest.Algorithm {
	a := &evolution{space: space, follower: history.NewFollower(space), seeding: propose.ReadSeeding(r)}
	a.options.population = int(r.Int("population", 50, suggest.Range{Min: 2, Max: 10_000}))
	a.options.sample = int(r.Int("sample_size", 10, suggest.Range{Min: 1, Max: 10_000}))
	a.options.founders = int(r.Int("founders", int64(min(20, a.options.population)), suggest.Range{Min: 1, Max: float64(a.options.population)}))
	a.options.variation = variation{dims: a.follower.Dims, near: 5}
	return a
}

// Suggest implements suggest.Algorithm.
func (a *evolution) Suggest(ctx context.Context, s suggest.Study, n int) ([]suggest.Proposal, error) {
	if err := ctx.Err(); errors.Is(err, context.Canceled) || n <= 0 {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	seed := a.seeding.Seed(s)
	a.follower.Follow(s, seed)
	if d := a.space.Len(); d > 0 && d <= qmc.MaxDimensions && (a.sequence == nil || a.seed != seed) { // then there is no error
		a.seed = seed
		a.sequence, _ = qmc.NewScrambledSobol(d, rng.NewKey(seed, "regularized-evolution", "start"))
	}
	population, elite := a.population(), elite(a.follower.History.Warm, a.options.founders/2)
	children := rng.NewKey(seed, "regularized-evolution", "child")
	return propose.NewTriedAlways(a.space, a.follower.History.Rows).Fill(ctx, a.follower.History.Next, n, rng.NewKey(seed, "regularized-evolution", "untried"), func(number int) propose.Drawing {
		m := &mutator{a: a, population: population, elite: elite, number: number, stream: children.Stream(uint64(number))}
		return propose.Drawing{Draw: m.draw, Proposal: m.proposal}
	})
}

// population is the latest trials that have ended, the oldest one last.
func (a *evolution) population() []*history.Row {
	var out []*history.Row
	for i := len(a.follower.History.Rows) - 1; i >= 0 && len(out) < a.options.population; i-- {
		if r := a.follower.History.Rows[i]; r.Class.Ended() {
			out = append(out, r)
		}
	}
	return out
}

// mutator draws the point of one trial.
type mutator struct {
	a          *evolution
	population []*history.Row
	elite      []suggest.Point // of other studies, tried first
	number     int
	stream     *rng.Stream
	draws      int
}

// founding says whether there are not enough results yet.
func (m *mutator) founding() bool { return len(m.population) < m.a.options.founders }

func (m *mutator) draw() suggest.Point {
	m.draws++
	if !m.founding() && m.draws <= propose.ModelAttempts {
		return m.a.follower.Point(m.a.options.variation.one(m.parent().X, m.stream))
	}
	if m.founding() && m.draws <= len(m.elite) {
		return slices.Clone(m.elite[m.draws-1])
	}
	u := make([]float64, m.a.space.Len())
	if m.draws == len(m.elite)+1 && m.a.sequence != nil {
		m.a.sequence.At(uint32(m.number), u)
	} else {
		m.stream.Fill(u)
	}
	return m.a.space.Decode(u)
}

// parent is the best of a sample.
func (m *mutator) parent() *history.Row {
	sample := make([]*history.Row, min(m.a.options.sample, len(m.population)))
	for k := range sample {
		sample[k] = m.population[m.stream.Uint64N(uint64(len(m.population)))]
	}
	if m.a.follower.History.Objectives < 2 {
		return slices.MinFunc(sample, (*history.Row).Compare)
	}
	front := frontsOf(rankMembers(sample))[0]
	if front[0].Losses == nil {
		return front[0].Row
	}
	for i, d := range pareto.Crowding(lossesOfMembers(front)) {
		front[i].crowd = d
	}
	return slices.MaxFunc(front, func(x, y survivor) int { return cmp.Compare(x.crowd, y.crowd) }).Row
}

func (m *mutator) proposal(p suggest.Point) suggest.Proposal {
	switch {
	case m.founding() && m.draws <= len(m.elite):
		return suggest.Proposal{Point: p, Why: "one of the best points of another study"}
	case m.founding():
		return suggest.Proposal{Point: p, Why: "one of the points that the population starts with, spread evenly"}
	case m.draws > propose.ModelAttempts:
		return suggest.Proposal{Point: p, Why: "drawn from the parameters' distributions, as no change of a trial was new and allowed", Fallback: "prior"}
	}
	return suggest.Proposal{Point: p, Why: "one parameter of a good trial among the latest ones was changed"}
}

// one is a copy of a row with one active parameter changed. Parameters that are
// not active get values at random, which count if the change makes them active.
func (v *variation) one(parent []float64, stream *rng.Stream) []float64 {
	row := slices.Clone(parent)
	var free []int
	for i, dim := range v.dims {
		switch {
		case math.IsNaN(row[i]):
			row[i] = anywhere(dim, stream)
		case dim.Kind == box.Continuous || dim.Count > 1 || len(dim.Levels) > 1:
			free = append(free, i)
		}
	}
	if len(free) > 0 {
		i := free[stream.Uint64N(uint64(len(free)))]
		row[i] = v.mutate(v.dims[i], row[i], stream)
	}
	return row
}

// elite is at most n points of other studies, and not more than can be drawn one
// after another, the best of each first.
func elite(warm []*history.Row, n int) []suggest.Point {
	n = min(n, propose.Attempts/4)
	var ranked [][]survivor
	for _, source := range history.Sources(warm) {
		ranked = append(ranked, rankMembers(source))
	}
	var out []suggest.Point
	for k := 0; len(out) < n; k++ {
		before := len(out)
		for _, source := range ranked {
			if k < len(source) && len(out) < n {
				out = append(out, source[k].Point)
			}
		}
		if len(out) == before {
			break
		}
	}
	return out
}
