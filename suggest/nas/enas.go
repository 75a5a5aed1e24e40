// Package nas has the algorithms for the architectures of Katib's nasConfig: ENAS
// and DARTS.
package nas

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/history"
	"github.com/vernier-ml/vernier/suggest/numeric/lstm"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
	"github.com/vernier-ml/vernier/suggest/propose"
)

// enas is the controller of ENAS (Pham et al., "Efficient neural architecture
// search via parameter sharing", ICML 2018): a recurrent network that makes one
// choice for each parameter of an architecture, and learns by REINFORCE from the
// results. Each result is credited to the choices that were evaluated, which are
// read from the trial's own point; weights are not shared between trials.
//
// The reward of a trial is its rank among the newest trials, so that it has the
// same scale for every metric; a trial that failed ranks last. The best trials
// are learned from again and again. The network is what it becomes by learning
// from the finished trials in the order of their numbers, and is rebuilt from
// them where it is not known yet.
//
// A number with more than enasChoices values, or with a continuous range, is
// chosen as one of enasChoices equal parts of its range, and at random within.
type enas struct {
	*history.Reader
	seeding propose.Seeding
	enasSettings
	steps  []enasStep // in the order of the network's choices: parents first
	counts []int
	cache  controllers
}

// enasStep is a choice that the network makes.
type enasStep struct {
	parameter int
	parts     bool // the choice is a part of the range, not a value
}

const (
	// enasChoices is how many choices a step has at most.
	enasChoices = 64
)

// enasSettings have Katib's names, without controller_. Zero stands for None.
type enasSettings struct {
	hidden        int
	temperature   float64
	tanhConst     float64
	entropyWeight float64
	baselineDecay float64
	learningRate  float64
	skipTarget    float64
	skipWeight    float64
	trainSteps    int
}

var _ suggest.Algorithm = (*enas)(nil)
var _ suggest.Preparer = (*enas)(nil)

// ENAS is the registration of the algorithm.
func ENAS() propose.Registration {
	return propose.Registration{
		Name: "enas",
		Summary: "Architecture search by a recurrent network that learns which choices give good results (REINFORCE). " +
			"For architectures with many choices and hundreds of trials.",
		New:            suggest.Reading(newENAS),
		Settings:       enasSettingsDoc(),
		Adaptive:       true,
		FirstObjective: true,
	}
}

func enasSettingsDoc() []propose.Setting {
	return []propose.Setting{
		{Name: "controller_baseline_decay", Default: "0.97", Help: "How slowly the expected reward follows the rewards, above 0 and at most 1."},
		{Name: "controller_entropy_weight", Default: "0.01", Help: "Weight of the entropy, which keeps the network from making up its mind too soon; above 0, or None."},
		{Name: "controller_hidden_size", Default: "16", Help: "Size of the network's state, a whole number from 1 to 1024."},
		{Name: "controller_learning_rate", Default: "0.03", Help: "Learning rate of the network, above 0 and at most 1."},
		{Name: "controller_log_every_steps", Default: "10", Help: "Accepted for Katib's sake, a whole number of at least 1. Nothing is logged."},
		{Name: "controller_skip_target", Default: "0.4", Help: "Wanted probability of a skip connection, which is a categorical parameter with the values 0 and 1; above 0 and at most 1."},
		{Name: "controller_skip_weight", Default: "0.01", Help: "Weight of the distance to controller_skip_target; above 0, or None."},
		{Name: "controller_tanh_const", Default: "2.25", Help: "Bound of the logits, by a tanh; above 0, or None. It keeps each choice possible."},
		{Name: "controller_temperature", Default: "5", Help: "Divides the logits: the higher, the more even the choices and the slower the learning; above 0, or None."},
		{Name: "controller_train_steps", Default: "2", Help: "How often the network learns for each finished trial, a whole number from 1 to 1000."},
		propose.RandomStateSetting(),
	}
}

func newENAS(space suggest.Space, r *suggest.SettingsReader) suggest.Algorithm {
	above := func(max float64) suggest.Range { return suggest.Range{Min: 0, OpenMin: true, Max: max} }
	orNone := func(name string, byDefault float64) float64 {
		if r.Text(name, "") == "None" {
			return 0
		}
		return r.Float(name, byDefault, above(1e6))
	}
	a := &enas{Reader: history.NewReader(space), seeding: propose.ReadSeeding(r)}
	a.enasSettings = enasSettings{
		hidden:        int(r.Int("controller_hidden_size", 16, suggest.Range{Min: 1, Max: 1024})),
		temperature:   orNone("controller_temperature", 5),
		tanhConst:     orNone("controller_tanh_const", 2.25),
		entropyWeight: orNone("controller_entropy_weight", 0.01),
		baselineDecay: r.Float("controller_baseline_decay", 0.97, above(1)),
		learningRate:  r.Float("controller_learning_rate", 0.03, above(1)),
		skipTarget:    r.Float("controller_skip_target", 0.4, above(1)),
		skipWeight:    orNone("controller_skip_weight", 0.01),
		trainSteps:    int(r.Int("controller_train_steps", 2, suggest.Range{Min: 1, Max: 1000})),
	}
	r.Int("controller_log_every_steps", 10, suggest.Range{Min: 1, Max: 1e9})
	for _, i := range space.ParentsFirst() {
		count, finite := space.At(i).Count()
		step := enasStep{parameter: i, parts: !finite || count > enasChoices && space.At(i).Kind() != suggest.Categorical}
		if step.parts {
			count = enasChoices
		}
		a.steps, a.counts = append(a.steps, step), append(a.counts, int(count))
	}
	return a
}

// Prepare implements suggest.Preparer: it learns from new results.
func (a *enas) Prepare(ctx context.Context, s suggest.Study) {
	_, _ = a.learn(ctx, s)
}

// Suggest implements suggest.Algorithm.
func (a *enas) Suggest(ctx context.Context, s suggest.Study, n int) ([]suggest.Proposal, error) {
	if n <= 0 || errors.Is(ctx.Err(), context.Canceled) {
		return nil, ctx.Err()
	}
	net, complete := a.learn(ctx, s)
	if err := ctx.Err(); errors.Is(err, context.Canceled) {
		return nil, err
	}
	fallback := ""
	if !complete {
		fallback = "deadline"
	}
	seed := a.seeding.Seed(s)
	known := propose.NewTriedAlways(a.Space, a.Read(s).Rows)
	return known.Fill(ctx, s.NextNumber(), n, rng.NewKey(seed, "enas", "untried"), func(number int) propose.Drawing {
		stream, chance := rng.New(seed, "enas", number, "sample"), 0.0
		draw := func() suggest.Point {
			var p suggest.Point
			p, chance = a.sample(net, stream)
			return p
		}
		return propose.Drawing{Draw: draw, Proposal: func(p suggest.Point) suggest.Proposal {
			why := fmt.Sprintf("the controller draws these choices once in %.3g times", math.Exp(-chance))
			return suggest.Proposal{Point: p, Fallback: fallback, Why: why}
		}}
	})
}

// sample draws a point, and gives the logarithm of its choices' probability.
func (a *enas) sample(net *lstm.Network, stream *rng.Stream) (p suggest.Point, logChance float64) {
	u, walk := make([]float64, a.Space.Len()), net.Walk()
	p = make(suggest.Point, a.Space.Len())
	for t, step := range a.steps {
		chances := walk.Probabilities()
		pick, within := stream.Float64(), stream.Float64()
		parameter := a.Space.At(step.parameter)
		if parent, ok := parameter.When(); ok && !parameter.ActiveFor(p[parent]) {
			walk.Choose(-1)
			continue
		}
		choice := len(chances) - 1
		for k, c := range chances {
			if pick -= c; pick < 0 {
				choice = k
				break
			}
		}
		logChance += math.Log(chances[choice])
		walk.Choose(choice)
		if step.parts {
			u[step.parameter] = (float64(choice) + within) / float64(a.counts[t])
			p[step.parameter] = parameter.Decode(u[step.parameter])
		} else {
			p[step.parameter] = parameter.At(int64(choice))
		}
	}
	a.Space.Settle(p)
	return p, logChance
}

// choices are those that the network would have to make to come to the point.
func (a *enas) choices(p suggest.Point) []int {
	out := make([]int, len(a.steps))
	for t, step := range a.steps {
		v := p[step.parameter]
		switch {
		case !v.InSpace():
			out[t] = -1
		case step.parts:
			u := a.Space.At(step.parameter).Encode(v)
			out[t] = min(int(u*float64(a.counts[t])), a.counts[t]-1)
		default:
			index, _ := v.Index()
			out[t] = int(index)
		}
	}
	return out
}

// skipTargets are the wanted probabilities of skip connections.
func (a *enas) skipTargets() []float64 {
	out := make([]float64, len(a.steps))
	for t, step := range a.steps {
		p := a.Space.At(step.parameter)
		if p.Kind() == suggest.Categorical && slices.Equal(p.Choices(), []string{"0", "1"}) {
			out[t] = a.skipTarget
		}
	}
	return out
}
