package algorithm

import (
	"fmt"
	"math"
	"slices"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/bayes"
	"github.com/vernier-ml/vernier/suggest/history"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

const (
	// branchesMost is how many values a parameter may have that can be branches.
	branchesMost = 16
	// branchesDraws is how many points are drawn in a branch, and branchesLeast how many of
	// them must differ and be allowed: a branch is due no more trials than it has points.
	branchesDraws, branchesLeast = 256, 32
	// branchesDue times the root of all trials is how many a branch is due.
	branchesDue = 1.5
	// branchesFailed is how many trials of a branch fail before it is due no more.
	branchesFailed = 4
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
			b := &branch{parameter: i, value: value, arm: fmt.Sprintf("branch %d %d", i, value), space: space.Within(i, value)}
			if !b.apart() || !b.roomy() {
				continue
			}
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

// apart says whether the parameters that exist for this value, and not for all, are as many
// as those that depend on nothing. A model that is trained by one of two solvers is the same
// model, whatever else the solvers have.
func (b *branch) apart() bool {
	own, count, shared := make([]bool, b.space.Len()), 0, 0
	root := b.space.At(b.parameter)
	for _, i := range b.space.ParentsFirst() {
		p := b.space.At(i)
		switch on, depends := p.When(); {
		case depends && on == b.parameter:
			own[i] = p.ActiveFor(root.At(b.value)) && !activeForAll(p, root)
		case depends:
			own[i] = own[on]
		case i != b.parameter:
			shared++
		}
		if own[i] {
			count++
		}
	}
	return count >= max(shared, 1)
}

func activeForAll(p, root suggest.Parameter) bool {
	count, _ := root.Count()
	for value := range count {
		if !p.ActiveFor(root.At(value)) {
			return false
		}
	}
	return true
}

// roomy says whether there is more to try in the branch than it is due. Constraints may
// leave nothing of it.
func (b *branch) roomy() bool {
	stream, u := rng.New(0, autoName, int(b.value), "branch"), make([]float64, b.space.Len())
	found := map[string]bool{}
	for range branchesDraws {
		for i := range u {
			u[i] = stream.Float64()
		}
		u[b.parameter] = b.space.At(b.parameter).Encode(b.space.At(b.parameter).At(b.value))
		if key, ok := b.space.Key(b.space.Decode(u)); ok {
			found[key] = true
		}
	}
	return len(found) >= branchesLeast
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
// that is less. nil: all have had as many. A branch whose trials all fail is due none.
func (a *automatic) starved(s suggest.Study, number int) (found *branch) {
	least := 1.0
	for _, b := range a.branches {
		had, failed, good := 0, 0, 0
		for _, t := range s.Trials {
			if t.State == suggest.Killed || !b.has(t.Point) {
				continue
			}
			had++
			if _, ok := lossOf(s, t); ok {
				good++
			} else if t.State.Finished() {
				failed++
			}
		}
		if good == 0 && failed >= branchesFailed {
			continue
		}
		values, _ := a.space.At(b.parameter).Count()
		due := min(branchesDue*math.Sqrt(float64(number)), float64(number)/float64(2*values), branchesLeast)
		if part := float64(had) / due; part < least {
			least, found = part, b
		}
	}
	return found
}

// lossOf is the loss of a trial that has one and holds the constraints on metrics.
func lossOf(s suggest.Study, t *suggest.Trial) (loss float64, ok bool) {
	if _, violation := history.ViolationsOf(s.Constraints, t.Constraints); len(t.Values) == 0 || violation != 0 {
		return 0, false
	}
	loss = s.Objectives[0].Loss(t.Values[0])
	return loss, loss == loss
}
