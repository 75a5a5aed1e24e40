package fidelity

import (
	"fmt"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

// priorDraws is how many points are drawn where the sampler has none that is new: the branch of
// a conditional space that it likes may be used up, and others not.
const priorDraws = 4096

// drawFromPrior draws a new point from the parameters' distributions, without the sampler.
func (f *fidelity) drawFromPrior(s suggest.Study, b *rungBook, known map[string]bool, resource float64) (suggest.Proposal, error) {
	stream, u := rng.New(f.seeding.Seed(s), "fidelity", b.next, "prior"), make([]float64, f.space.Len())
	for range priorDraws {
		stream.Fill(u)
		if p := f.spend(f.space.Decode(u), resource); f.allowed(p) && !known[f.plainKey(p)] {
			return suggest.Proposal{Point: p, Why: "drawn from the parameters' distributions, as the sampler found no point that is new and allowed", Fallback: "prior"}, nil
		}
	}
	if len(known) == 0 && f.space.Constrained() {
		return suggest.Proposal{}, fmt.Errorf("none of %d points drawn satisfies the constraints on the parameters with each resource up to %d; loosen them, or lower r_max", priorDraws, f.max)
	}
	return suggest.Proposal{}, suggest.ErrExhausted
}

// allowed says whether the space has the point with the resource of each rung: it may be promoted.
func (f *fidelity) allowed(p suggest.Point) bool {
	if f.parameter < 0 || !f.space.Constrained() {
		return f.space.Contains(p)
	}
	for rung := range f.depth + 1 {
		if !f.space.Contains(f.spend(p, f.resource(f.depth, rung))) {
			return false
		}
	}
	return f.space.Contains(p)
}
