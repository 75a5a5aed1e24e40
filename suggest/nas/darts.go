package nas

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/architecture"
	"github.com/vernier-ml/vernier/suggest/history"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
	"github.com/vernier-ml/vernier/suggest/propose"
)

// darts is for differentiable architecture search (Liu, Simonyan and Yang,
// "DARTS", ICLR 2019), which one trial does by itself: each trial is given the
// whole search space and the settings, which are checked here and passed on by
// architecture.NewDARTS. Its space has one point, and that is proposed each
// time, as trials differ by their own randomness. If there are other parameters
// they are drawn at random, as often as possible without repetition.
type darts struct {
	space  suggest.Space
	reader *history.Reader
}

var _ suggest.Algorithm = (*darts)(nil)

// DARTS is the registration of the algorithm.
func DARTS() propose.Registration {
	return propose.Registration{
		Name:     "darts",
		Summary:  "Differentiable architecture search, which the trial does itself: it is given the operations, the layers and the settings.",
		New:      newDARTS,
		Settings: dartsSettings(),
		Repeats:  true,
	}
}

func dartsSettings() []propose.Setting {
	var doc []propose.Setting
	for _, o := range architecture.DARTSOptions() {
		what := "a number"
		if o.Whole {
			what = "a whole number"
		}
		help := fmt.Sprintf("%s, %s of at least %s", o.Help, what, strconv.FormatFloat(o.Min, 'f', -1, 64))
		if o.None {
			help += ", or None"
		}
		doc = append(doc, propose.Setting{Name: o.Name, Default: o.Default, Help: help + "."})
	}
	slices.SortFunc(doc, func(a, b propose.Setting) int { return strings.Compare(a.Name, b.Name) })
	return doc
}

func newDARTS(space suggest.Space, settings suggest.Settings) (suggest.Algorithm, error) {
	if err := architecture.CheckDARTS(settings); err != nil {
		return nil, err
	}
	return &darts{space: space, reader: history.NewReader(space)}, nil
}

// Suggest implements suggest.Algorithm.
func (a *darts) Suggest(ctx context.Context, s suggest.Study, n int) ([]suggest.Proposal, error) {
	known, anew := propose.NewTried(a.space, a.reader.Read(s).Rows), propose.NewTried(a.space, nil)
	u := make([]float64, a.space.Len())
	return propose.Fill(ctx, s.NextNumber(), n, func(number int) (suggest.Proposal, error) {
		p, err := a.draw(ctx, known, u, s.Seed, number)
		if errors.Is(err, suggest.ErrExhausted) {
			clear(anew.Keys)
			p, err = a.draw(ctx, anew, u, s.Seed, number)
		}
		if err != nil {
			return suggest.Proposal{}, fmt.Errorf("darts: %w", err)
		}
		return suggest.Proposal{Point: p, Why: "the trial searches by itself"}, nil
	})
}

// draw gives the point of the trial with the given number.
func (a *darts) draw(ctx context.Context, known *propose.Tried, u []float64, seed uint64, number int) (suggest.Point, error) {
	stream := rng.New(seed, "darts", number, "point")
	return known.Untried(ctx, func() suggest.Point {
		stream.Fill(u)
		return a.space.Decode(u)
	}, rng.New(seed, "darts", number, "untried"))
}
