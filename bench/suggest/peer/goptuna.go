package peer

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/c-bata/goptuna"
	"github.com/c-bata/goptuna/cmaes"
	"github.com/c-bata/goptuna/tpe"

	"github.com/vernier-ml/vernier/bench/suggest/play"
	"github.com/vernier-ml/vernier/suggest"
)

// goptunaOpener opens games of Goptuna, which is written in Go, in this process.
type goptunaOpener struct {
	sampler string
	clock   func() time.Duration
}

// Open implements play.Opener.
func (o goptunaOpener) Open(_ context.Context, g play.Game) (play.Player, error) {
	options := []goptuna.StudyOption{
		goptuna.StudyOptionLogger(silent{}), goptuna.StudyOptionDirection(goptuna.StudyDirectionMinimize),
	}
	seed := int64(g.Seed)
	switch o.sampler {
	case "goptuna-tpe":
		options = append(options, goptuna.StudyOptionSampler(tpe.NewSampler(tpe.SamplerOptionSeed(seed))))
	case "goptuna-cmaes":
		options = append(options,
			goptuna.StudyOptionSampler(goptuna.NewRandomSampler(goptuna.RandomSamplerOptionSeed(seed))),
			goptuna.StudyOptionRelativeSampler(cmaes.NewSampler(cmaes.SamplerOptionSeed(seed))))
	default:
		return nil, fmt.Errorf("Goptuna has no player %q", o.sampler)
	}
	study, err := goptuna.CreateStudy("game", options...)
	return &goptunaGame{study: study, space: g.Space, clock: o.clock}, err
}

// Close implements play.Opener.
func (goptunaOpener) Close() error { return nil }

// goptunaGame is a study that is being played.
type goptunaGame struct {
	play.Meter
	study *goptuna.Study
	space suggest.Space
	clock func() time.Duration
}

// Ask implements play.Player.
func (g *goptunaGame) Ask(_ context.Context, n int) (out []play.Candidate, err error) {
	defer func(stop func()) { stop(); g.Share(len(out)) }(g.Start(g.clock))
	for range n {
		c, err := g.ask()
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

// ask starts a trial the way Study.Optimize does.
func (g *goptunaGame) ask() (play.Candidate, error) {
	id, err := g.study.Storage.CreateNewTrial(g.study.ID)
	if err != nil {
		return play.Candidate{}, err
	}
	t := goptuna.Trial{Study: g.study, ID: id}
	if err := t.CallRelativeSampler(); err != nil {
		return play.Candidate{}, err
	}
	point := make(suggest.Point, g.space.Len())
	for i := range point {
		p := g.space.At(i)
		if parent, ok := p.When(); ok && !(point[parent].IsSet() && p.ActiveFor(point[parent])) {
			continue
		}
		text, err := ask(&t, p)
		if err != nil {
			return play.Candidate{}, fmt.Errorf("parameter %s: %w", p.Name(), err)
		}
		if point[i], _ = p.Parse(text); !point[i].IsSet() {
			return play.Candidate{}, fmt.Errorf("parameter %s: %q is not in the space", p.Name(), text)
		}
	}
	return play.Candidate{Number: id, Point: point}, nil
}

// ask asks for one value. Goptuna has no whole numbers on a logarithmic scale,
// and no ordered lists; the first are rounded, of the second the position is
// asked for, counted from 0.
func ask(t *goptuna.Trial, p suggest.Parameter) (text string, err error) {
	var k int
	var v float64
	low, high, step := p.Min(), p.Max(), p.Step()
	whole := p.Kind() == suggest.Int
	switch {
	case p.Kind() == suggest.Categorical:
		return t.SuggestCategorical(p.Name(), p.Choices())
	case p.Kind() == suggest.Discrete:
		n, _ := p.Count()
		k, err = t.SuggestInt(p.Name(), 0, int(n)-1)
		return p.At(min(max(int64(k), 0), n-1)).String(), err
	case p.Distribution() == suggest.LogUniform:
		v, err = t.SuggestLogFloat(p.Name(), low, high)
		if whole {
			v = math.Round(v)
		}
	case whole && step > 1:
		k, err = t.SuggestStepInt(p.Name(), int(low), int(high), int(step))
		v = float64(k)
	case whole:
		k, err = t.SuggestInt(p.Name(), int(low), int(high))
		v = float64(k)
	case step > 0:
		v, err = t.SuggestDiscreteFloat(p.Name(), low, high, step)
	default:
		v, err = t.SuggestFloat(p.Name(), low, high)
	}
	return strconv.FormatFloat(min(max(v, low), high), 'g', -1, 64), err
}

// Tell implements play.Player.
func (g *goptunaGame) Tell(_ context.Context, results []play.Result) error {
	defer g.Start(g.clock)()
	for _, r := range results {
		state := goptuna.TrialStateFail
		if r.State == suggest.Succeeded {
			state = goptuna.TrialStateComplete
			if err := g.study.Storage.SetTrialValue(r.Number, r.Values[0]); err != nil {
				return err
			}
		}
		if err := g.study.Storage.SetTrialState(r.Number, state); err != nil {
			return err
		}
	}
	return nil
}

// Load implements play.Loader; doubles only.
func (g *goptunaGame) Load(_ context.Context, points []suggest.Point, values []float64) error {
	for i, point := range points {
		t := goptuna.FrozenTrial{
			State: goptuna.TrialStateComplete, Value: values[i], DatetimeStart: time.Now(), DatetimeComplete: time.Now(),
			InternalParams: map[string]float64{}, Params: map[string]any{}, Distributions: map[string]any{},
		}
		for j, v := range point {
			p := g.space.At(j)
			t.InternalParams[p.Name()], t.Params[p.Name()] = v.Float(), v.Float()
			t.Distributions[p.Name()] = goptuna.UniformDistribution{Low: p.Min(), High: p.Max()}
		}
		if _, err := g.study.Storage.CloneTrial(g.study.ID, t); err != nil {
			return err
		}
	}
	return nil
}

// Report implements play.Player. No curves are played.
func (g *goptunaGame) Report(context.Context, int, suggest.Sample) (bool, error) { return false, nil }

// Close implements play.Player.
func (g *goptunaGame) Close() error { return nil }

// silent is a logger that says nothing. The logger nil fails at the first warning.
type silent struct{}

// Debug implements goptuna.Logger.
func (silent) Debug(string, ...any) {}

// Info implements goptuna.Logger.
func (silent) Info(string, ...any) {}

// Warn implements goptuna.Logger.
func (silent) Warn(string, ...any) {}

// Error implements goptuna.Logger.
func (silent) Error(string, ...any) {}
