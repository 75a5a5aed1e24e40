// Package tpe has the tree-structured Parzen estimator and its multivariate
// variant.
package tpe

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/history"
	"github.com/vernier-ml/vernier/suggest/numeric/qmc"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
	"github.com/vernier-ml/vernier/suggest/propose"
)

// tpe is the tree-structured Parzen estimator (Bergstra et al., "Algorithms for
// hyper-parameter optimization", NIPS 2011): it splits the trials into good and
// bad ones, estimates a density of each, and proposes a point at which the
// ratio of good to bad is high. By default the densities are mixtures of
// products over all parameters (Falkner et al., "BOHB", ICML 2018; Watanabe,
// arXiv 2304.11127). Trials that run count as bad, so that parallel workers
// spread (the constant liar), and so do failed ones. Several objectives are
// ranked by fronts and hypervolume (Ozaki et al., "Multiobjective
// tree-structured Parzen estimator", 2022), and modelled together and apart by
// turns; constraints have densities of their own (Watanabe and Hutter, "c-TPE",
// IJCAI 2023).
type tpe struct {
	config   Config
	seeding  propose.Seeding
	historic *history.Reader

	mu    sync.Mutex
	model *tpeModel
	apart *tpeModel  // of each parameter on its own; nil before the first use
	sobol *qmc.Sobol // for scramble; nil before the first use
	key   rng.Key    // of sobol
}

var _ suggest.Algorithm = (*tpe)(nil)

// NewWith is for algorithms that are built on this one.
func NewWith(space suggest.Space, config Config, seeding propose.Seeding) *tpe {
	a := &tpe{seeding: seeding, config: config, historic: history.NewReader(space)}
	a.model = newTPEModel(a.historic.Encoding, config)
	return a
}

// modelOf is the model that is asked for a trial. Good trials of several
// objectives lie along a front, so few of them are in one place, and a density
// over all parameters together says little between them; one of each parameter
// on its own does not know what goes with what. Neither is the better one
// everywhere, so they take turns.
func (a *tpe) modelOf(number, objectives int) *tpeModel {
	if objectives < 2 || number%2 == 0 || !a.config.turns || a.historic.Space.Conditional() {
		return a.model
	}
	if a.apart == nil {
		config := a.config
		config.multivariate = no
		a.apart = newTPEModel(a.historic.Encoding, config)
	}
	return a.apart
}

// models are those that are asked for n trials.
func (a *tpe) models(number, n, objectives int) []*tpeModel {
	all := []*tpeModel{a.modelOf(number, objectives)}
	if next := a.modelOf(number+1, objectives); n > 1 && next != all[0] {
		all = append(all, next)
	}
	return all
}

// tpeKeys are the sources of randomness.
type tpeKeys struct{ startup, prior, random, candidates, untried rng.Key }

func newTPEKeys(seed uint64) tpeKeys {
	return tpeKeys{
		startup:    rng.NewKey(seed, "tpe", "startup"),
		prior:      rng.NewKey(seed, "tpe", "prior"),
		random:     rng.NewKey(seed, "tpe", "random"),
		candidates: rng.NewKey(seed, "tpe", "candidates"),
		untried:    rng.NewKey(seed, "tpe", "untried"),
	}
}

// Suggest implements suggest.Algorithm.
func (a *tpe) Suggest(ctx context.Context, s suggest.Study, n int) ([]suggest.Proposal, error) {
	if err := ctx.Err(); errors.Is(err, context.Canceled) || n <= 0 {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	h := a.historic.Read(s)
	known := propose.NewTried(a.historic.Space, h.Rows)
	keys := newTPEKeys(a.seeding.Seed(s))
	modelled := len(h.Measured) >= max(1, a.config.Startup) || len(h.Warm) > 0
	objectives := objectivesOf(h)
	models := a.models(h.Next, n, objectives)
	if modelled {
		for _, m := range models {
			m.learn(h, len(s.Constraints))
		}
	}
	var last suggest.Point // proposed in this answer
	return known.Fill(ctx, h.Next, n, keys.untried, func(number int) propose.Drawing {
		if modelled && last != nil {
			for _, m := range models {
				m.pend(number-1, a.historic.Row(last))
			}
		}
		proposal := suggest.Proposal{Why: "one of the first points, which are spread evenly over the space"}
		draw := a.spread(keys, number)
		switch {
		case modelled && keys.random.Stream(uint64(number)).Float64() < a.config.Random:
			proposal.Why = "one of the points that are drawn whatever the model says"
		case modelled && ctx.Err() == nil:
			draw = a.modelled(a.modelOf(number, objectives), keys, number, draw)
			proposal.Why = "good trials are more frequent around this point than bad ones"
		case modelled:
			proposal.Why, proposal.Fallback = "there was no time to ask the model; points are spread evenly", "deadline"
		}
		return propose.Drawing{Draw: draw, Proposal: func(p suggest.Point) suggest.Proposal {
			proposal.Point, last = p, p
			return proposal
		}}
	})
}

// spread draws the number's point of a scrambled Sobol sequence, and from the
// prior after that.
func (a *tpe) spread(keys tpeKeys, number int) func() suggest.Point {
	space := a.historic.Space
	u := make([]float64, space.Len())
	var stream *rng.Stream
	return func() suggest.Point {
		if stream == nil {
			stream = keys.prior.Stream(uint64(number))
			if q := a.sequence(keys.startup, space.Len()); q != nil {
				q.At(uint32(number), u)
				return space.Decode(u)
			}
		}
		stream.Fill(u)
		return space.Decode(u)
	}
}

// sequence is nil when there are no parameters, or too many.
func (a *tpe) sequence(key rng.Key, dimensions int) *qmc.Sobol {
	if dimensions < 1 || dimensions > qmc.MaxDimensions {
		return nil
	}
	if a.sobol == nil || a.key != key {
		q, err := qmc.NewScrambledSobol(dimensions, key)
		if err != nil {
			panic(fmt.Sprintf("tpe: %v", err)) // the number of dimensions was checked
		}
		a.sobol, a.key = q, key
	}
	return a.sobol
}

// modelled draws from the model, and from prior when what the model likes was
// tried.
func (a *tpe) modelled(m *tpeModel, keys tpeKeys, number int, prior func() suggest.Point) func() suggest.Point {
	next := m.propose(number, keys.candidates.Stream(uint64(number)))
	left := propose.Attempts / 2
	return func() suggest.Point {
		if left--; left >= 0 {
			return a.historic.Point(next())
		}
		return prior()
	}
}
