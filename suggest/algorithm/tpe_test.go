package algorithm_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/algorithm"
	"github.com/vernier-ml/vernier/suggest/suggesttest"
)

// tree is a space with conditions and all kinds of parameters.
func tree() []suggest.ParameterSpec {
	when := func(in ...string) *suggest.When { return &suggest.When{Parameter: "model", In: in} }
	return []suggest.ParameterSpec{
		{Name: "model", Kind: suggest.Categorical, List: []string{"svm", "mlp"}},
		{Name: "c", Kind: suggest.Double, Min: "1e-3", Max: "1e3", Distribution: suggest.LogUniform, When: when("svm")},
		{Name: "layers", Kind: suggest.Int, Min: "1", Max: "9", When: when("mlp")},
		{Name: "lr", Kind: suggest.Double, Min: "1e-5", Max: "1", Distribution: suggest.LogUniform, When: when("mlp")},
		{Name: "seed", Kind: suggest.Int, Min: "1", Max: "100000"},
	}
}

// flat is a space without conditions.
func flat() []suggest.ParameterSpec {
	return []suggest.ParameterSpec{
		{Name: "x", Kind: suggest.Double, Min: "0", Max: "1"},
		{Name: "y", Kind: suggest.Double, Min: "-2", Max: "7"},
		{Name: "k", Kind: suggest.Categorical, List: []string{"a", "b", "c"}},
	}
}

// tpeCase is a kind of study.
type tpeCase struct {
	specs       []suggest.ParameterSpec
	settings    []suggest.Setting
	objectives  int
	constraints int
	warm        bool
}

func tpeCases() map[string]tpeCase {
	set := func(pairs ...string) (out []suggest.Setting) {
		for i := 0; i < len(pairs); i += 2 {
			out = append(out, suggest.Setting{Name: pairs[i], Value: pairs[i+1]})
		}
		return out
	}
	return map[string]tpeCase{
		"one objective":           {specs: tree(), objectives: 1},
		"groups":                  {specs: tree(), objectives: 1, settings: set("group", "true", "multivariate", "true")},
		"each on its own":         {specs: tree(), objectives: 1, settings: set("multivariate", "false")},
		"no prior":                {specs: tree(), objectives: 1, settings: set("prior_weight", "0", "consider_endpoints", "true")},
		"two objectives":          {specs: tree(), objectives: 2},
		"two, without conditions": {specs: flat(), objectives: 2},
		"constraints":             {specs: tree(), objectives: 1, constraints: 2},
		"two and constraints":     {specs: tree(), objectives: 2, constraints: 1},
		"trials of other studies": {specs: tree(), objectives: 1, warm: true},
	}
}

func (c tpeCase) study(space suggest.Space) suggest.Study {
	s := suggest.Study{Space: space, Seed: 5, Budget: 60}
	for i := range c.objectives {
		s.Objectives = append(s.Objectives, suggest.Objective{Name: fmt.Sprint("y", i), Direction: suggest.Minimize})
	}
	for i := range c.constraints {
		s.Constraints = append(s.Constraints, suggest.Constraint{Name: fmt.Sprint("c", i)})
	}
	for i := 0; c.warm && i < 20; i++ {
		u := slices.Repeat([]float64{float64(i) / 20}, space.Len())
		t := &suggest.Trial{Number: i, Point: space.Decode(u), State: suggest.Succeeded, Values: []float64{1000 * math.Abs(u[0]-0.4)}}
		t.Meta = suggest.Meta{"study": fmt.Sprint("other", i%2)}
		s.Warm = append(s.Warm, t)
	}
	return s
}

// end finishes a trial in one of many ways that depend on its number.
func (c tpeCase) end(space suggest.Space, t *suggest.Trial) {
	if t.Number%7 == 3 {
		t.State = suggest.Failed
		return
	}
	t.State = suggest.Succeeded
	if t.Number%5 == 4 {
		t.State, t.Curve = suggest.Pruned, []suggest.Sample{{Step: int64(t.Number % 3), Value: 1}}
	}
	u, _ := space.Encode(t.Point)
	for i := range c.objectives {
		sum := 0.0
		for _, x := range u {
			sum += math.Abs(x - 0.3 - 0.4*float64(i))
		}
		t.Values = append(t.Values, sum)
	}
	for i := range c.constraints {
		t.Constraints = append(t.Constraints, u[i]-0.6)
	}
}

// An algorithm that was built for this question must answer as one that has
// answered all the questions before, with trials that end out of order.
func TestTPECachesDoNotMatter(t *testing.T) {
	for name, c := range tpeCases() {
		t.Run(name, func(t *testing.T) {
			space := newSpace(t, c.specs...)
			r, _ := algorithm.Get("tpe")
			old, err := r.New(space, c.settings)
			if err != nil {
				t.Fatal(err)
			}
			s := c.study(space)
			for step := range 40 {
				fresh, _ := r.New(space, c.settings)
				got, err := old.Suggest(t.Context(), s, 1+step%3)
				if err != nil {
					t.Fatal(err)
				}
				want, _ := fresh.Suggest(t.Context(), s, 1+step%3)
				if g, w := texts(space, got), texts(space, want); !cmp.Equal(g, w) {
					t.Fatalf("step %d: %s", step, cmp.Diff(w, g))
				}
				for _, p := range got {
					if !space.Contains(p.Point) || p.Why == "" || p.Fallback != "" {
						t.Fatalf("step %d: %+v", step, p)
					}
					s.Trials = append(s.Trials, &suggest.Trial{Number: s.NextNumber(), Point: p.Point, State: suggest.Running})
				}
				for i := range s.Trials {
					if trial := s.Trials[i]; !trial.State.Finished() && (trial.Number+step)%3 == 0 {
						s.Update(trial.Number, func(t *suggest.Trial) { c.end(space, t) })
					}
				}
			}
		})
	}
}

func texts(space suggest.Space, proposals []suggest.Proposal) []string {
	out := make([]string, len(proposals))
	for i, p := range proposals {
		out[i] = fmt.Sprint(space.Assignments(p.Point))
	}
	return out
}

// scaled plays the same function times a factor.
func scaled(t *testing.T, direction suggest.Direction, factor float64) []string {
	t.Helper()
	space := newSpace(t, tree()...)
	p := suggesttest.Player{Parallel: 3, Study: suggest.Study{Space: space, Seed: 2, Objectives: []suggest.Objective{{Name: "y", Direction: direction}}}}
	r, _ := algorithm.Get("tpe")
	p.Algorithm, _ = r.New(space, nil)
	p.Objective = func(_ int, point suggest.Point) float64 {
		u, _ := space.Encode(point)
		return factor * ((u[0]-0.2)*(u[0]-0.2) + u[4])
	}
	if err := p.Play(t.Context(), 60); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, trial := range p.Study.Trials {
		out = append(out, fmt.Sprint(space.Assignments(trial.Point)))
	}
	return out
}

func TestTPEKnowsNoScale(t *testing.T) {
	want := scaled(t, suggest.Minimize, 1)
	for name, got := range map[string][]string{
		"maximize mirrors minimize": scaled(t, suggest.Maximize, -1),
		"huge values":               scaled(t, suggest.Minimize, 0x1p1000),
	} {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// lateContext is past its deadline although nothing waited.
type lateContext struct{ context.Context }

func (lateContext) Err() error                  { return context.DeadlineExceeded }
func (lateContext) Deadline() (time.Time, bool) { return time.Time{}, true }

func TestTPEAnswersAfterTheDeadline(t *testing.T) {
	c := tpeCases()["one objective"]
	space := newSpace(t, c.specs...)
	r, _ := algorithm.Get("tpe")
	a, _ := r.New(space, nil)
	s := c.study(space)
	for i := range 30 {
		s.Trials = append(s.Trials, &suggest.Trial{Number: i, Point: space.Decode(slices.Repeat([]float64{float64(i) / 30}, space.Len()))})
		c.end(space, s.Trials[i])
	}
	got, err := a.Suggest(lateContext{t.Context()}, s, 2)
	if err != nil || len(got) != 1 || got[0].Fallback != "deadline" || !space.Contains(got[0].Point) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestTPEDrawsNoDuplicatesInABatch(t *testing.T) {
	space := newSpace(t, letters("a", 6), letters("b", 6), suggest.ParameterSpec{Name: "c", Kind: suggest.Categorical, List: []string{"x", "y"}})
	p := suggesttest.Player{Parallel: 20, Study: suggest.Study{Space: space, Seed: 3, Objectives: []suggest.Objective{{Name: "y"}}}}
	for _, name := range []string{"tpe", "multivariate-tpe"} {
		r, _ := algorithm.Get(name)
		p.Algorithm, _ = r.New(space, nil)
		p.Study.Trials = nil
		p.Objective = func(_ int, point suggest.Point) float64 { return point[0].Float() + point[1].Float() }
		if err := p.Play(t.Context(), 60); err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for _, trial := range p.Study.Trials {
			key, _ := space.Key(trial.Point)
			if seen[key] {
				t.Errorf("%s: trial %d came before", name, trial.Number)
			}
			seen[key] = true
		}
	}
}
