package propose

import (
	"context"
	"math"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/history"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

const (
	// believedFirst is up to which trial each second one is drawn from the prior, and
	// believedLater by which factor the numbers of those that are drawn later grow: what
	// a search finds counts more and more, so that a wrong prior costs little.
	believedFirst = 10
	believedLater = 1.5
	// believedMost is the most that the logarithm of the prior is multiplied by, in the
	// first trial.
	believedMost = 10
)

// PriorFirst makes an algorithm draw trials from what users believe (suggest.Prior): the
// most probable point first, then each second trial of the first ten, and fewer and
// fewer later. Of an algorithm that does not learn, each second one of all. Without a
// prior it is the algorithm itself.
func PriorFirst(a suggest.Algorithm, space suggest.Space, seeding Seeding, learns bool) suggest.Algorithm {
	if !space.Believed() || a == nil {
		return a
	}
	return &believing{Algorithm: a, reader: history.NewReader(space), seeding: seeding, learns: learns}
}

// BeliefWeight is what the logarithm of the prior's density is multiplied by in an
// acquisition function: a tenth of the budget, divided by the number of the trial
// (πBO: Hvarfner, Stoll, Souza, Lindauer, Hutter and Nardi, "πBO: augmenting acquisition
// functions with user beliefs for Bayesian optimization", ICLR 2022, section 4.1 and
// appendix A).
func BeliefWeight(budget, number int) float64 {
	most := float64(believedMost)
	if budget > 0 {
		most = math.Min(float64(budget)/10, most)
	}
	return most / float64(max(1, number))
}

type believing struct {
	suggest.Algorithm
	reader  *history.Reader
	seeding Seeding
	learns  bool
}

// Prepare implements suggest.Preparer.
func (a *believing) Prepare(ctx context.Context, s suggest.Study) {
	if p, ok := a.Algorithm.(suggest.Preparer); ok && !a.turn(s.NextNumber()) {
		p.Prepare(ctx, s)
	}
}

// Suggest implements suggest.Algorithm.
func (a *believing) Suggest(ctx context.Context, s suggest.Study, n int) ([]suggest.Proposal, error) {
	var out []suggest.Proposal
	next := s.NextNumber()
	for len(out) < n {
		if Cancelled(ctx) {
			return nil, ctx.Err()
		}
		run, believed := 1, a.turn(next+len(out))
		for len(out)+run < n && a.turn(next+len(out)+run) == believed {
			run++
		}
		from := a.Algorithm.Suggest
		if believed {
			from = a.draw
		}
		got, err := from(ctx, s, run)
		if err != nil {
			if len(out) > 0 && !Cancelled(ctx) {
				break // what is there; the error comes again with the next question
			}
			return nil, err
		}
		s.Put(suggest.PendingTrials(s.NextNumber(), got)...)
		if out = append(out, got...); len(got) < run {
			break
		}
	}
	return out, nil
}

// turn says whether the trial with a number is drawn from the prior.
func (a *believing) turn(number int) bool {
	switch {
	case number == 0 || !a.learns && number%2 == 1:
		return true
	case number < believedFirst:
		return number%2 == 1
	}
	for at := float64(believedFirst); ; at *= believedLater {
		if int(at) >= number {
			return int(at) == number
		}
	}
}

// draw draws from the prior.
func (a *believing) draw(ctx context.Context, s suggest.Study, n int) ([]suggest.Proposal, error) {
	space, seed := a.reader.Space, a.seeding.Seed(s)
	key := rng.NewKey(seed, "prior", "point")
	u := make([]float64, space.Len())
	known := NewTried(space, a.reader.Read(s).Rows)
	return known.Fill(ctx, s.NextNumber(), n, rng.NewKey(seed, "prior", "untried"), func(number int) Drawing {
		stream, first := key.Stream(uint64(number)), number == 0
		return Drawing{
			Draw: func() suggest.Point {
				if first {
					first = false
					return space.MostBelieved()
				}
				stream.Fill(u)
				return space.FromPrior(u)
			},
			Proposal: func(p suggest.Point) suggest.Proposal {
				return suggest.Proposal{Point: p, Why: "drawn from the priors of the parameters"}
			},
		}
	})
}
