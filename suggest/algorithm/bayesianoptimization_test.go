package algorithm

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/numeric/gp"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

func unitCube(t testing.TB, d int) suggest.Space {
	t.Helper()
	specs := make([]suggest.ParameterSpec, d)
	for i := range specs {
		specs[i] = suggest.ParameterSpec{Name: fmt.Sprint("x", i), Kind: suggest.Double, Min: "0", Max: "1"}
	}
	space, err := suggest.NewSpace(specs)
	if err != nil {
		t.Fatal(err)
	}
	return space
}

func bayesian(t testing.TB, space suggest.Space, settings ...suggest.Setting) *bayesianOptimization {
	t.Helper()
	a, err := newBayesian(space, settings)
	if err != nil {
		t.Fatal(err)
	}
	return a.(*bayesianOptimization)
}

// tell appends what a trial of the proposal measured.
func tell(s *suggest.Study, p suggest.Proposal, values ...float64) {
	trial := suggest.Trial{Number: s.NextNumber(), Point: p.Point, Meta: p.Meta, State: suggest.Succeeded, Values: values}
	if len(values) == 0 {
		trial.State = suggest.Failed
	}
	s.Trials = append(s.Trials, trial)
}

func coordinates(p suggest.Point) []float64 {
	x := make([]float64, len(p))
	for i, v := range p {
		x[i] = v.Float()
	}
	return x
}

// played runs n trials in sequence; measure gives no values for a failure.
func playedBy(t testing.TB, a suggest.Algorithm, s *suggest.Study, n int, measure func(x []float64) []float64) {
	t.Helper()
	for range n {
		got, err := a.Suggest(t.Context(), *s, 1)
		if err != nil || len(got) != 1 {
			t.Fatalf("%v, %v", got, err)
		}
		tell(s, got[0], measure(coordinates(got[0].Point))...)
	}
}

func bowlAt(centre float64) func(x []float64) []float64 {
	return func(x []float64) []float64 {
		sum := 0.0
		for _, v := range x {
			sum += (v - centre) * (v - centre)
		}
		return []float64{sum}
	}
}

func lowest(s suggest.Study) float64 {
	best := math.Inf(1)
	for _, t := range s.Trials {
		if len(t.Values) > 0 {
			best = min(best, t.Values[0])
		}
	}
	return best
}

func newStudyOf(space suggest.Space, seed uint64, objectives int) suggest.Study {
	return suggest.Study{Space: space, Seed: seed, Objectives: make([]suggest.Objective, objectives)}
}

func TestBayesianFindsTheBottom(t *testing.T) {
	space := unitCube(t, 4)
	for seed := range uint64(3) {
		s := newStudyOf(space, seed, 1)
		playedBy(t, bayesian(t, space), &s, 40, bowlAt(0.37))
		if best := lowest(s); best > 1e-4 { // random search gets 0.02
			t.Errorf("seed %d: the best of 40 is %v", seed, best)
		}
	}
}

func TestBayesianAvoidsWhatFails(t *testing.T) {
	space := unitCube(t, 3)
	s := newStudyOf(space, 1, 1)
	playedBy(t, bayesian(t, space), &s, 60, func(x []float64) []float64 {
		if x[0] > 0.5 || x[1] > 0.7 { // nearly two thirds of the space
			return nil
		}
		sum := 0.0
		for _, v := range x {
			sum += (v-0.4)*(v-0.4) + 0.05*(1-math.Cos(50*(v-0.4)))
		}
		return []float64{sum}
	})
	failed := 0
	for _, trial := range s.Trials[30:] {
		if trial.State == suggest.Failed {
			failed++
		}
	}
	if best := lowest(s); failed > 12 || best > 0.1 { // 19 at random
		t.Errorf("%d of the last 30 failed, and the best is %v", failed, best)
	}
}

// Each branch of the tree has numbers of its own; the better one is the one
// with the narrower bottom.
func TestBayesianSearchesTrees(t *testing.T) {
	when := func(branch string) *suggest.When { return &suggest.When{Parameter: "branch", In: []string{branch}} }
	space, err := suggest.NewSpace([]suggest.ParameterSpec{
		{Name: "branch", Kind: suggest.Categorical, List: []string{"a", "b"}},
		{Name: "a1", Kind: suggest.Double, Min: "0", Max: "1", When: when("a")},
		{Name: "a2", Kind: suggest.Double, Min: "0", Max: "1", When: when("a")},
		{Name: "b1", Kind: suggest.Double, Min: "1e-4", Max: "1", Distribution: suggest.LogUniform, When: when("b")},
		{Name: "b2", Kind: suggest.Int, Min: "1", Max: "40", When: when("b")},
		{Name: "common", Kind: suggest.Double, Min: "0", Max: "1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	s := newStudyOf(space, 3, 1)
	a := bayesian(t, space)
	for range 60 {
		got, err := a.Suggest(t.Context(), s, 1)
		if err != nil {
			t.Fatal(err)
		}
		x := coordinates(got[0].Point)
		loss := (x[5] - 0.3) * (x[5] - 0.3)
		if got[0].Point[0].String() == "a" {
			loss += 0.2 + (x[1]-0.5)*(x[1]-0.5) + (x[2]-0.9)*(x[2]-0.9)
		} else {
			r := math.Log10(x[3]) + 2.5
			loss += r*r + (x[4]-31)*(x[4]-31)/200
		}
		tell(&s, got[0], loss)
	}
	if best := lowest(s); best > 0.01 { // the branch that is easy to begin with has 0.2
		t.Errorf("the best is %v", best)
	}
}

func TestBayesianHoldsConstraints(t *testing.T) {
	space := unitCube(t, 2)
	s := newStudyOf(space, 2, 1)
	s.Constraints = []suggest.Constraint{{Name: "size"}} // at most 0
	a := bayesian(t, space)
	best := math.Inf(1)
	for range 40 {
		got, err := a.Suggest(t.Context(), s, 1)
		if err != nil {
			t.Fatal(err)
		}
		x := coordinates(got[0].Point)
		loss, size := x[0]+x[1], 0.25-x[0]*x[1]
		tell(&s, got[0], loss)
		s.Trials[len(s.Trials)-1].Constraints = []float64{1e6 * size}
		if size <= 0 {
			best = min(best, loss)
		}
	}
	if best > 1.02 { // the minimum is 1, at (0.5, 0.5)
		t.Errorf("the best that holds the constraint is %v", best)
	}
}

func TestBayesianLearnsFromOtherStudies(t *testing.T) {
	space := unitCube(t, 5)
	source := newStudyOf(space, 3, 1)
	playedBy(t, bayesian(t, space), &source, 40, func(x []float64) []float64 { return []float64{1000 * bowlAt(0.62)(x)[0]} })
	cold := newStudyOf(space, 4, 1)
	playedBy(t, bayesian(t, space), &cold, 6, bowlAt(0.6))
	warm := newStudyOf(space, 4, 1)
	for _, trial := range source.Trials {
		trial.Meta = suggest.Meta{"study": "source"}
		warm.Warm = append(warm.Warm, trial)
	}
	playedBy(t, bayesian(t, space), &warm, 6, bowlAt(0.6))
	if best := lowest(warm); best > 0.01 || best > lowest(cold)/5 {
		t.Errorf("the best of 6 is %v with the trials of another study and %v without", best, lowest(cold))
	}
}

// Nothing holds the constraints, and next to nothing was measured of them.
func TestBayesianWithoutMeasuredConstraints(t *testing.T) {
	space := unitCube(t, 2)
	for objectives := 1; objectives <= 2; objectives++ {
		s := newStudyOf(space, 2, objectives)
		s.Constraints = make([]suggest.Constraint, 2)
		a := bayesian(t, space)
		playedBy(t, a, &s, 25, func(x []float64) []float64 { return x[:objectives] })
		s.Trials[20].Constraints = []float64{1, math.NaN()}
		got, err := a.Suggest(t.Context(), s, 2)
		if err != nil || len(got) != 2 || got[0].Fallback == "" {
			t.Errorf("%d objectives: %v, %v", objectives, got, err)
		}
	}
}

func TestBayesianFindsTheFront(t *testing.T) {
	space := unitCube(t, 3)
	s := newStudyOf(space, 5, 2)
	playedBy(t, bayesian(t, space), &s, 50, func(x []float64) []float64 {
		return []float64{bowlAt(0.2)(x)[0], bowlAt(0.7)(x)[0]}
	})
	// The front is the line from (0.2, ...) to (0.7, ...).
	near := 0
	for _, trial := range s.Trials[20:] {
		x := coordinates(trial.Point)
		mean := (x[0] + x[1] + x[2]) / 3
		off := 0.0
		for _, v := range x {
			off += (v - mean) * (v - mean)
		}
		if off < 0.005 && mean > 0.15 && mean < 0.75 {
			near++
		}
	}
	if near < 10 { // random points: none
		t.Errorf("%d of the last 30 points are near the front", near)
	}
}

func TestBayesianPrepareChangesNoAnswer(t *testing.T) {
	space := unitCube(t, 3)
	s := newStudyOf(space, 6, 1)
	a := bayesian(t, space)
	playedBy(t, a, &s, 25, bowlAt(0.4))
	want, err := bayesian(t, space).Suggest(t.Context(), s, 3)
	if err != nil {
		t.Fatal(err)
	}
	a = bayesian(t, space)
	a.Prepare(t.Context(), s)
	fits := len(a.fits)
	got, err := a.Suggest(t.Context(), s, 1)
	if err != nil || !got[0].Point.Equal(want[0].Point) || fits == 0 || len(a.fits) != fits {
		t.Errorf("%v, %v, want %v; %d fits, then %d", got, err, want[0], fits, len(a.fits))
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	a = bayesian(t, space)
	a.Prepare(cancelled, s) // must not leave half a fit behind
	if got, err = a.Suggest(t.Context(), s, 3); err != nil || !got[2].Point.Equal(want[2].Point) {
		t.Errorf("after a cancelled Prepare: %v, %v, want %v", got, err, want)
	}
}

// A question must not wait longer than it may, whoever uses the caches.
// What a batch leaves in the caches must not show.
func TestBayesianBatchesLeaveNoTrace(t *testing.T) {
	space := unitCube(t, 3)
	s := newStudyOf(space, 6, 1)
	a := bayesian(t, space)
	playedBy(t, a, &s, 25, bowlAt(0.4))
	a.fits = nil
	batch, err := a.Suggest(t.Context(), s, 9)
	if err != nil {
		t.Fatal(err)
	}
	if len(a.fits) != len(transforms) {
		t.Errorf("%d fits for one batch", len(a.fits))
	}
	for i, p := range batch {
		if (len(p.Meta) > 0) != (i < len(transforms)) {
			t.Errorf("proposal %d has %v", i, p.Meta)
		}
	}
	for i := range 5 { // all of these run
		got, err := a.Suggest(t.Context(), s, 1)
		if err != nil {
			t.Fatal(err)
		}
		want, err := bayesian(t, space).Suggest(t.Context(), s, 1)
		if err != nil || !got[0].Point.Equal(want[0].Point) {
			t.Errorf("with %d running: %v, want %v (%v)", i, got, want, err)
		}
		s.Trials = append(s.Trials, suggest.Trial{Number: s.NextNumber(), Point: got[0].Point, State: suggest.Running, Meta: got[0].Meta})
	}
	s.Trials[26].State, s.Trials[26].Values = suggest.Succeeded, []float64{0.1}
	got, err := a.Suggest(t.Context(), s, 4)
	if err != nil {
		t.Fatal(err)
	}
	want, err := bayesian(t, space).Suggest(t.Context(), s, 4)
	if err != nil || !slices.EqualFunc(got, want, func(a, b suggest.Proposal) bool { return a.Point.Equal(b.Point) }) {
		t.Errorf("out of order: %v, want %v (%v)", got, want, err)
	}
}

func TestBayesianAnswersWhileAnotherFits(t *testing.T) {
	space := unitCube(t, 3)
	s := newStudyOf(space, 6, 1)
	a := bayesian(t, space)
	playedBy(t, a, &s, 25, bowlAt(0.4))
	a.turn <- struct{}{}
	ctx, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	got, err := a.Suggest(ctx, s, 2)
	if err != nil || len(got) != 1 || got[0].Fallback != "deadline" || !space.Contains(got[0].Point) {
		t.Errorf("%v, %v", got, err)
	}
	a.Prepare(ctx, s)
}

func TestBayesianToleratesOddMeta(t *testing.T) {
	space := unitCube(t, 2)
	s := newStudyOf(space, 7, 1)
	playedBy(t, bayesian(t, space), &s, 20, bowlAt(0.4))
	for _, text := range []string{"", "x", "19", "19 ", "19 !!", "-5 AAAAAAAAAA", "19 AAAAAAAAAA", "19 __________", strings.Repeat("9", 99) + " AAAAAAAAAA"} {
		for i := range s.Trials {
			s.Trials[i].Meta = suggest.Meta{"gp.linear": text, "gp.halfrank": text}
		}
		got, err := bayesian(t, space).Suggest(t.Context(), s, 2)
		if err != nil || len(got) != 2 || !space.Contains(got[0].Point) || !space.Contains(got[1].Point) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

// Above 800 trials the model sees a subset, which grows between its choices: a
// new process must see the same.
func TestBayesianRestartsWithManyTrials(t *testing.T) {
	space := unitCube(t, 2)
	s := newStudyOf(space, 8, 1)
	stream := rng.New(8, "test", 0, "points")
	for range 873 {
		p := suggest.Proposal{Point: space.Decode([]float64{stream.Float64(), stream.Float64()})}
		tell(&s, p, bowlAt(0.4)(coordinates(p.Point))...)
	}
	theta := gp.NewPrior(2, true).Theta().Text() // not to fit, which takes seconds
	s.Trials[872].Meta = suggest.Meta{"gp.halfrank": "873 " + theta, "gp.linear": "873 " + theta, "gp.loghalfrank": "873 " + theta, "gp.power": "873 " + theta}
	a := bayesian(t, space)
	for range 3 {
		got, err := a.Suggest(t.Context(), s, 1)
		if err != nil {
			t.Fatal(err)
		}
		want, err := bayesian(t, space).Suggest(t.Context(), s, 1)
		if err != nil || !got[0].Point.Equal(want[0].Point) {
			t.Fatalf("after %d trials: %v, and %v in a new process (%v)", len(s.Trials), got, want, err)
		}
		tell(&s, got[0], bowlAt(0.4)(coordinates(got[0].Point))...)
	}
}

func TestSubset(t *testing.T) {
	stream := rng.New(9, "test", 0, "rows")
	rows, losses := make([][]float64, 2000), make([]float64, 2000)
	for i := range rows {
		rows[i] = []float64{stream.Float64(), stream.Float64()}
		losses[i] = stream.NormFloat64()
	}
	if got := subset(rows[:700], losses[:700]); !slices.Equal(got, rangeOf(700)) {
		t.Errorf("of 700 rows: %v", got)
	}
	base := subset(rows[:1900], losses[:1900])
	later := subset(rows[:1924], losses[:1924])
	if len(base) != modelled || !slices.Equal(later[:modelled], base) || len(later) != modelled+24 {
		t.Errorf("%d rows of 1900, %d of 1924", len(base), len(later))
	}
	best := ascending(losses[:1900])
	for _, i := range best[:300] {
		if !slices.Contains(base, i) {
			t.Errorf("row %d, one of the best, is missing", i)
		}
	}
	if !slices.IsSorted(base) {
		t.Error("not in order of the trials")
	}
}

func TestRegionSide(t *testing.T) {
	down := make([]float64, 12)
	for i := range down {
		down[i] = -float64(i)
	}
	flat := slices.Repeat([]float64{1}, 1000)
	for name, c := range map[string]struct {
		losses []float64
		want   float64
	}{
		"nothing yet":           {nil, regionStart},
		"always better":         {down, regionLargest},
		"no better for a while": {flat[:1+10], regionStart / 2},
		"twice":                 {flat[:1+20], regionStart / 4},
		"from the start":        {flat[:1+70], regionStart},
	} {
		if got := regionSide(c.losses, 40); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestDistinctAveragesReplicates(t *testing.T) {
	nan := math.NaN()
	rows := [][]float64{{0.1, nan}, {0.2, 0}, {0.1, nan}, {0.1, 0.5}, {0.1 + 1e-12, nan}}
	gotRows, losses, weights := distinct(rows, []float64{1, 5, 2, 7, 6})
	if len(gotRows) != 3 || !slices.Equal(losses, []float64{3, 5, 7}) || !slices.Equal(weights, []float64{1.0 / 3, 1, 1}) {
		t.Errorf("got %v, %v, %v", gotRows, losses, weights)
	}
}

func TestRefitSchedule(t *testing.T) {
	for _, c := range []struct {
		last, now int
		want      bool
	}{{0, 1, true}, {50, 50, false}, {50, 51, true}, {99, 100, false}, {99, 102, true}, {1000, 1024, false}, {1000, 1026, true}, {500, 400, true}} {
		if got := refit(c.last, c.now); got != c.want {
			t.Errorf("fitted at %d, now %d: %v", c.last, c.now, got)
		}
	}
}

func TestBilogKeepsTheBound(t *testing.T) {
	values := []float64{-3, 1e300, 0, 5, -1e-3}
	zero := bilog(values)
	if values[2] != zero || !(values[0] < values[4] && values[4] < zero && zero < values[3] && values[3] < values[1]) {
		t.Errorf("%v, zero at %v", values, zero)
	}
	for _, odd := range [][]float64{{0, 0, 0}, {2, 2, 2}, {0, 0, 1}} {
		for _, v := range append(odd, bilog(odd)) {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				t.Errorf("%v", odd)
			}
		}
	}
}

func TestArmsTakeTurns(t *testing.T) {
	q := &question{bayesianOptimization: bayesian(t, unitCube(t, 1))}
	count := map[arm]int{}
	for number := range 160 {
		count[q.arm(number)]++
	}
	for _, transform := range []gp.Transform{gp.Linear, gp.HalfRank, gp.LogHalfRank, gp.Power} {
		if count[arm{transform, "EI"}] != 30 || count[arm{transform, "LCB"}] != 10 {
			t.Errorf("%v", count)
		}
	}
	q.study.Budget = 100
	for number, want := range map[int]bool{0: false, 93: false, 94: true, 99: true, 100: false} {
		if got := q.arm(number).function == "mean"; got != want {
			t.Errorf("trial %d of 100: %v", number, q.arm(number))
		}
	}
	q.study.Budget = 0
	q.history.measured = make([]*observation, manyResults)
	if got := q.arm(2); got.transform != gp.HalfRank {
		t.Errorf("with many results: %v", got)
	}
	q.history.measured = nil
	clear(count)
	q.running = make([][]float64, manyRunning)
	for number := range 160 {
		count[q.arm(number)]++
	}
	for _, transform := range transforms {
		if count[arm{transform, "EI"}] != 20 || count[arm{transform, "LCB"}] != 10 || count[arm{transform, "PE"}] != 10 {
			t.Errorf("with many running: %v", count)
		}
	}
}

// untilAsked is a context whose deadline passes after so many looks at it.
type untilAsked struct {
	context.Context
	left int
}

func (c *untilAsked) Err() error {
	if c.left--; c.left < 0 {
		return context.DeadlineExceeded
	}
	return nil
}

func (*untilAsked) Deadline() (time.Time, bool) { return time.Time{}, false }

// Wherever the time is up, there is an answer, it comes after a bounded number
// of further looks, and the next question is answered as if there had been none.
func TestBayesianMayBeInterruptedAnywhere(t *testing.T) {
	space := unitCube(t, 3)
	s := newStudyOf(space, 6, 1)
	playedBy(t, bayesian(t, space), &s, 60, bowlAt(0.4))
	want, err := bayesian(t, space).Suggest(t.Context(), s, 1)
	if err != nil {
		t.Fatal(err)
	}
	fallbacks := map[string]int{}
	for looks := 0; looks < 5000; looks += 1 + looks/8 {
		a := bayesian(t, space)
		ctx := &untilAsked{Context: t.Context(), left: looks}
		got, err := a.Suggest(ctx, s, 3)
		if err != nil || len(got) == 0 || !space.Contains(got[0].Point) {
			t.Fatalf("after %d looks: %v, %v", looks, got, err)
		}
		if ctx.left < -100 { // each cheap: steps that are no longer taken
			t.Errorf("after %d looks it goes on for %d more", looks, -ctx.left)
		}
		fallbacks[got[0].Fallback]++
		if again, err := a.Suggest(t.Context(), s, 1); err != nil || !again[0].Point.Equal(want[0].Point) {
			t.Fatalf("after %d looks the next answer is %v, %v, want %v", looks, again, err, want)
		}
	}
	if fallbacks["deadline"] == 0 || fallbacks[""] == 0 || len(fallbacks) != 2 {
		t.Errorf("it answered in these ways: %v", fallbacks)
	}
}
