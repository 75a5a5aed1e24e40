package algorithm

import (
	"fmt"
	"math"
	"slices"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/bayes"
)

const (
	// branchesMost is how many values a parameter may have that can be branches.
	branchesMost = 16
	// branchesLeast is how many points a branch has at least.
	branchesLeast = 64
	// branchesDue times the root of all trials is how many a branch is due.
	branchesDue = 1.5
)

// branch is the part of a space in which a parameter that others depend on, and that depends
// on none, has one of its values: one model of several, with the parameters that are its own.
type branch struct {
	parameter int
	value     int64
	arm, why  string
	space     suggest.Space
	search    suggest.Algorithm // of this branch alone
	view      view
}

// newBranches of a space; each has a Gaussian process that knows its trials only. So a
// branch whose points are not good yet is searched for its own best one, whatever the best
// ones of other branches are.
func newBranches(space suggest.Space, settings suggest.Settings) ([]*branch, error) {
	var out []*branch
	for i := range space.Len() {
		p := space.At(i)
		count, finite := p.Count()
		if _, depends := p.When(); depends || !finite || count > branchesMost {
			continue
		}
		for value := range count {
			if !apart(space, i, p.At(value)) {
				continue
			}
			b := &branch{parameter: i, value: value, arm: fmt.Sprintf("branch %d %d", i, value), space: space.Within(i, value)}
			b.why = fmt.Sprintf("a Gaussian process for %s=%s alone, which has had few trials", p.Name(), p.At(value))
			var err error
			if b.search, err = bayes.New(b.space, append(slices.Clip(settings), suggest.Setting{Name: "n_initial_points", Value: "4"})); err != nil {
				return nil, err
			}
			out = append(out, b)
		}
	}
	return out, nil
}

// apart says whether a value of a parameter makes a branch: at least half of the parameters
// that a point has there, besides this one, are the branch's own, and they leave more points
// than are tried for the branch's sake. A model that is trained by one of two solvers is the
// same model, whatever else the solvers have.
func apart(space suggest.Space, root int, value suggest.Value) bool {
	own, size := make([]bool, space.Len()), int64(1)
	count, shared := 0, 0
	for _, i := range space.ParentsFirst() {
		p := space.At(i)
		on, depends := p.When()
		if own[i] = depends && (on == root && p.ActiveFor(value) || own[on]); own[i] {
			count++
			if values, finite := p.Count(); finite && values < branchesLeast {
				size = min(size*values, branchesLeast)
			} else {
				size = branchesLeast
			}
		}
		if !depends && i != root {
			shared++
		}
	}
	return count >= max(shared, 1) && size == branchesLeast
}

// has says whether a point is in the branch.
func (b *branch) has(p suggest.Point) bool {
	if b.parameter >= len(p) {
		return false
	}
	at, ok := p[b.parameter].Index()
	return ok && at == b.value
}

// study of the branch: the trials of others count as killed, under their own numbers.
func (b *branch) study(s suggest.Study) suggest.Study {
	own := s
	own.Space = b.space
	own.Trials = b.view.of(s.Trials, func(t *suggest.Trial) *suggest.Trial {
		if b.has(t.Point) {
			return t
		}
		return &suggest.Trial{Number: t.Number, Point: t.Point, State: suggest.Killed}
	})
	return own
}

// starved is the branch that has had the smallest part of the trials that it is due by the
// one with this number: branchesDue times the root of all, or half of an equal share where
// that is less. nil: all have had as many.
func (a *automatic) starved(s suggest.Study, number int) (found *branch) {
	least := 1.0
	for _, b := range a.branches {
		had := 0
		for _, t := range s.Trials {
			if t.State != suggest.Killed && b.has(t.Point) {
				had++
			}
		}
		values, _ := a.space.At(b.parameter).Count()
		due := min(branchesDue*math.Sqrt(float64(number)), float64(number)/float64(2*values))
		if part := float64(had) / due; part < least {
			least, found = part, b
		}
	}
	return found
}
