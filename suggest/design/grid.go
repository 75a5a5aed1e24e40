package design

import (
	"context"
	"fmt"
	"math"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/history"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
	"github.com/vernier-ml/vernier/suggest/propose"
)

const gridPoints = "grid_points"

// maxGrid bounds the grids whose order is a permutation. A larger one is never
// walked to its end, and is sampled.
const maxGrid = 1 << 62

// grid goes through all combinations of values in random order, each once,
// without holding them in memory. Any beginning of the order is a fair sample
// of the whole. Combinations that a trial of any state had are passed over.
// suggest.ErrExhausted comes after the last.
type grid struct {
	space   suggest.Space
	seeding propose.Seeding
	counts  []uint64 // levels of each parameter
	size    uint64   // product of counts; math.MaxUint64 when above maxGrid
	reader  *history.Reader
}

var _ suggest.Algorithm = (*grid)(nil)

// Grid is the registration of the algorithm.
func Grid() propose.Registration {
	return propose.Registration{
		Name:    "grid",
		Summary: "Tries all combinations, in random order. For small spaces that must be searched to the end.",
		New:     NewGrid,
		Settings: []propose.Setting{
			{
				Name:    gridPoints,
				Default: "none",
				Help: "How many values a double without step has on the grid, at least 1: both ends and values between them, " +
					"spaced by its distribution. Without this setting such a parameter is an error.",
			},
			propose.RandomStateSetting(),
		},
		Exhaustive: true,
	}
}

// NewGrid builds the algorithm; see Grid.
func NewGrid(space suggest.Space, settings suggest.Settings) (suggest.Algorithm, error) {
	return suggest.Reading(newGrid)(space, settings)
}

func newGrid(space suggest.Space, r *suggest.SettingsReader) suggest.Algorithm {
	a := &grid{space: space, reader: history.NewReader(space), seeding: propose.ReadSeeding(r), size: 1}
	points := uint64(r.Int(gridPoints, 0, suggest.Range{Min: 1, Max: 1e9}))
	var problems suggest.SpaceError
	for i := range space.Len() {
		p := space.At(i)
		levels := points
		if count, finite := p.Count(); finite {
			levels = uint64(count)
		} else if points == 0 {
			problems = append(problems, &suggest.ParameterError{
				Index: i, Name: p.Name(), Field: "step",
				Problem: fmt.Sprintf("is missing, as the grid needs it; give a step or the setting %s", gridPoints),
			})
			continue
		}
		a.counts = append(a.counts, levels)
		if a.size > maxGrid/levels {
			a.size = math.MaxUint64
		} else {
			a.size *= levels
		}
	}
	if len(problems) > 0 {
		r.Reject(problems)
	}
	return a
}

// Suggest implements suggest.Algorithm.
func (a *grid) Suggest(ctx context.Context, s suggest.Study, n int) ([]suggest.Proposal, error) {
	if n <= 0 {
		return nil, nil
	}
	_, finite := a.space.Size()
	sparse := a.space.Conditional() || a.space.Constrained()
	if a.size > maxGrid || finite && sparse {
		return a.sample(ctx, s, n)
	}
	taken := make(map[uint64]struct{}, len(s.Trials))
	for _, t := range s.Trials {
		if rank, ok := a.rank(t.Point); ok {
			taken[rank] = struct{}{}
		}
	}
	order := rng.NewPermutation(a.size, rng.NewKey(a.seeding.Seed(s), "grid", "order"))
	var out []suggest.Proposal
	// Without conditions and constraints, each step but those that give a
	// proposal passes over a trial: there are at most n+len(s.Trials) of them.
	most := a.size
	if sparse {
		most = min(most, propose.MaxSteps)
	}
	for i := uint64(0); i < most && len(out) < n; i++ {
		if done, err := propose.Interrupted(ctx, len(out)); err != nil {
			return nil, err
		} else if done {
			break
		}
		rank := order.At(i)
		if _, ok := taken[rank]; ok {
			continue
		}
		if p := a.point(rank); a.canonical(rank, p) && a.space.Contains(p) {
			out = append(out, suggest.Proposal{Point: p})
		}
	}
	switch {
	case len(out) == 0 && most < a.size:
		return nil, fmt.Errorf("grid: %d combinations were passed over; give the doubles steps, or use another algorithm", most)
	case len(out) == 0:
		return nil, suggest.ErrExhausted
	}
	return out, nil
}

// sample draws combinations: of a grid that is too large to ever be finished, or
// of one in which many combinations are the same or not allowed.
func (a *grid) sample(ctx context.Context, s suggest.Study, n int) ([]suggest.Proposal, error) {
	seed := a.seeding.Seed(s)
	points := rng.NewKey(seed, "grid", "sample")
	turns := func(number int) propose.Drawing {
		stream := points.Stream(uint64(number))
		return propose.Drawing{Draw: func() suggest.Point {
			p := make(suggest.Point, len(a.counts))
			for i, count := range a.counts {
				p[i] = a.value(i, stream.Uint64N(count))
			}
			a.space.Settle(p)
			return p
		}}
	}
	return propose.NewTried(a.space, a.reader.Read(s).Rows).Fill(ctx, s.NextNumber(), n, rng.NewKey(seed, "grid", "untried"), turns)
}

// point is the combination with the given mixed-radix number.
func (a *grid) point(rank uint64) suggest.Point {
	p := make(suggest.Point, len(a.counts))
	for i, count := range a.counts {
		p[i] = a.value(i, rank%count)
		rank /= count
	}
	a.space.Settle(p)
	return p
}

// canonical says whether rank is the one that stands for p among those that
// differ only in parameters that are not active.
func (a *grid) canonical(rank uint64, p suggest.Point) bool {
	if !a.space.Conditional() {
		return true
	}
	own, ok := a.rank(p)
	return ok && own == rank
}

// rank is the inverse of point; ok is false for a point that is not on the grid.
func (a *grid) rank(p suggest.Point) (rank uint64, ok bool) {
	if !a.space.Contains(p) {
		return 0, false
	}
	for i := len(p) - 1; i >= 0; i-- {
		level := uint64(0)
		if p[i].IsSet() {
			if level, ok = a.level(i, p[i]); !ok {
				return 0, false
			}
		}
		rank = rank*a.counts[i] + level
	}
	return rank, true
}

// value is the level-th value on the grid of the i-th parameter.
func (a *grid) value(i int, level uint64) suggest.Value {
	p := a.space.At(i)
	if _, finite := p.Count(); finite {
		return p.At(int64(level))
	}
	if a.counts[i] == 1 {
		return p.Decode(0.5)
	}
	return p.Decode(float64(level) / float64(a.counts[i]-1))
}

// level is the inverse of value; ok is false for a value between the levels.
func (a *grid) level(i int, v suggest.Value) (level uint64, ok bool) {
	if index, ok := v.Index(); ok {
		return uint64(index), true
	}
	u := a.space.At(i).Encode(v)
	level = uint64(math.Round(u * float64(a.counts[i]-1)))
	return level, a.value(i, level).Equal(v)
}
