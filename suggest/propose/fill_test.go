package propose

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

// clockless is a context whose error the test sets.
type clockless struct {
	context.Context
	err error
}

func (c *clockless) Err() error                { return c.err }
func (*clockless) Deadline() (time.Time, bool) { return time.Time{}, false }

func TestFillKeepsWhatThereIs(t *testing.T) {
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		n       int
		at      int   // the proposal with which something happens
		err     error // of that proposal
		ended   error // of the context, from then on
		want    int
		wantErr error
	}{
		"nothing is asked":                        {n: 0, at: -1},
		"less than nothing is asked":              {n: -3, at: -1},
		"all goes well":                           {n: 4, at: -1, want: 4},
		"an error comes first":                    {n: 4, at: 0, err: broken, wantErr: broken},
		"an error comes later":                    {n: math.MaxInt, at: 2, err: broken, want: 2},
		"nothing is left at first":                {n: 4, at: 0, err: suggest.ErrExhausted, wantErr: suggest.ErrExhausted},
		"nothing is left later":                   {n: math.MaxInt, at: 3, err: suggest.ErrExhausted, want: 3},
		"the deadline passes at the first":        {n: 4, at: 0, ended: context.DeadlineExceeded, want: 1},
		"the deadline passes later":               {n: math.MaxInt, at: 2, ended: context.DeadlineExceeded, want: 3},
		"the deadline passes and there is none":   {n: 4, at: 0, ended: context.DeadlineExceeded, err: broken, wantErr: broken},
		"it is cancelled with a proposal":         {n: 4, at: 2, ended: context.Canceled, wantErr: context.Canceled},
		"it is cancelled with an error":           {n: 4, at: 2, ended: context.Canceled, err: broken, wantErr: context.Canceled},
		"the deadline and an error come together": {n: 4, at: 2, ended: context.DeadlineExceeded, err: broken, want: 2},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := &clockless{Context: t.Context()}
			got, err := Fill(ctx, 7, c.n, func(number int) (suggest.Proposal, error) {
				p := suggest.Proposal{Resource: float64(number)}
				if number != 7+c.at {
					return p, nil
				}
				ctx.err = c.ended
				return p, c.err
			})
			var want []suggest.Proposal
			for i := range c.want {
				want = append(want, suggest.Proposal{Resource: float64(7 + i)})
			}
			if diff := cmp.Diff(want, got); diff != "" || !errors.Is(err, c.wantErr) {
				t.Errorf("%v, want %v; %s", err, c.wantErr, diff)
			}
		})
	}
}

// A search for one of few allowed points looks at its context.
func TestSystematicSearchCanBeInterrupted(t *testing.T) {
	for name, specs := range map[string][]suggest.ParameterSpec{
		"along a lattice": {
			{Name: "a", Kind: suggest.Int, Min: "0", Max: "1000000"}, {Name: "b", Kind: suggest.Int, Min: "0", Max: "1000000"},
		},
		"at random": {
			{Name: "a", Kind: suggest.Double, Min: "0", Max: "1"}, {Name: "b", Kind: suggest.Double, Min: "0", Max: "1"},
		},
	} {
		for _, end := range []error{context.Canceled, context.DeadlineExceeded} {
			t.Run(name+" "+end.Error(), func(t *testing.T) {
				space, err := suggest.NewSpace(specs)
				if err != nil {
					t.Fatal(err)
				}
				if space, err = space.WithConstraints([]string{"a + b < 0"}); err != nil {
					t.Fatal(err)
				}
				ctx := &clockless{Context: t.Context(), err: end}
				u := []float64{0.5, 0.5}
				_, err = NewTried(space, nil).Untried(ctx, func() suggest.Point { return space.Decode(u) }, rng.New(1, "test", 0, "walk"))
				if !errors.Is(err, end) {
					t.Errorf("error %v, want %v", err, end)
				}
			})
		}
	}
}

// All allowed points of a space that is too large to weigh are found, and then that there
// is none left.
func TestFewAllowedPointsAreFound(t *testing.T) {
	for name, c := range map[string]struct {
		parameters int
		constraint string
		want       int
	}{
		"on a line":   {2, "x0 + x1 == 0.9", 91},
		"in a corner": {3, "x0 + x1 + x2 <= 0.02", 10},
	} {
		t.Run(name, func(t *testing.T) {
			specs := make([]suggest.ParameterSpec, c.parameters)
			for i := range specs {
				specs[i] = suggest.ParameterSpec{Name: fmt.Sprintf("x%d", i), Kind: suggest.Double, Min: "0", Max: "1", Step: "0.01"}
			}
			space, err := suggest.NewSpace(specs)
			if err != nil {
				t.Fatal(err)
			}
			if space, err = space.WithConstraints([]string{c.constraint}); err != nil {
				t.Fatal(err)
			}
			stream, u, found := rng.New(1, "test", 0, "few"), make([]float64, c.parameters), 0
			tried := NewTried(space, nil)
			for ; err == nil; found++ {
				_, err = tried.Untried(t.Context(), func() suggest.Point { stream.Fill(u); return space.Decode(u) }, stream)
			}
			if found--; found != c.want || !errors.Is(err, suggest.ErrExhausted) {
				t.Errorf("%d points, want %d; at the end %v", found, c.want, err)
			}
		})
	}
}
