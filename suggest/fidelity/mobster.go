package fidelity

import (
	"cmp"
	"slices"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/bayes"
	"github.com/vernier-ml/vernier/suggest/propose"
)

// MOBSTER is asynchronous successive halving whose new points come from a
// Gaussian process over points and resources (Klein, Tiao, Lienart, Archambeau
// and Seeger, "Model-based asynchronous hyperparameter and neural architecture
// search", arXiv 2003.10865, 2020): it learns from what each trial came to at
// each rung, and asks what a whole trial would come to.
func MOBSTER() propose.Registration {
	summary := "ASHA whose new points come from a Gaussian process that learns from short and long trials at once. The best choice for trials that can be short."
	return registration("mobster", summary, "asha", nil, func(f *fidelity, _ *suggest.SettingsReader) suggest.Algorithm {
		f.model()
		return f.asha()
	})
}

// model makes a Gaussian process over points and resources the sampler.
func (f *fidelity) model() {
	var levels []int64
	for k := range f.depth + 1 {
		levels = append(levels, int64(f.resource(f.depth, k)))
	}
	var spend func(suggest.Point) suggest.Point
	if f.parameter >= 0 {
		spend = f.entire
	}
	f.sampler = bayes.NewOver(f.space, f.seeding, levels, spend)
	f.learns, f.joint = true, true
}

// curves is the study as a model over points and resources sees it: a trial for
// each point, numbered without gaps, whose curve has its results at the rungs.
// Those that wait at a rung below the top are as if they were stopped there.
func (f *fidelity) curves(s suggest.Study, b *rungBook) suggest.Study {
	s.Initial, s.Budget = nil, 0
	s.Trials = make([]*suggest.Trial, len(b.base))
	for i, base := range b.base {
		t := &suggest.Trial{Number: i, Point: f.entire(base.trial.Point), Meta: base.trial.Meta, State: suggest.Killed}
		if base.last == nil {
			t.State, t.Values, t.Constraints, t.Resource = base.trial.State, base.trial.Values, base.trial.Constraints, f.spent(base.trial)
		}
		f.curve(t, base)
		s.Trials[i] = t
	}
	return s
}

// curve reads a point's results at the rungs.
func (f *fidelity) curve(t *suggest.Trial, base baseTrial) {
	var entries []*rungEntry
	for e := base.last; e != nil; e = e.sibling {
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(x, y *rungEntry) int {
		return cmp.Or(cmp.Compare(x.trial.Resource, y.trial.Resource), cmp.Compare(x.trial.Number, y.trial.Number))
	})
	for _, e := range entries {
		switch {
		case !e.finished():
			t.State, t.Values, t.Constraints = suggest.Running, nil, nil
			return
		case e.usable():
			t.Curve = append(t.Curve, suggest.Sample{Step: int64(e.trial.Resource), Value: e.trial.Values[0]})
			t.State, t.Values, t.Constraints = suggest.Pruned, e.trial.Values, e.trial.Constraints
			if e.trial.Resource >= float64(f.max) {
				t.State = suggest.Succeeded
			}
		case e.trial.State == suggest.Pruned && len(e.trial.Curve) > 0:
			t.Curve = append(t.Curve, e.trial.Curve[len(e.trial.Curve)-1])
			t.State, t.Values, t.Constraints = suggest.Pruned, e.trial.Values, e.trial.Constraints
		default:
			t.State, t.Values = suggest.Failed, nil
		}
	}
}
