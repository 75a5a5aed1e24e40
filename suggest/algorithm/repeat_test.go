package algorithm_test

import (
	"errors"
	"math"
	"strconv"
	"testing"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/algorithm"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
	"github.com/vernier-ml/vernier/suggest/propose"
	"github.com/vernier-ml/vernier/suggest/suggesttest"
)

// noisyGrid is 400 points whose loss is a bowl, measured with noise of a quarter of
// what lies between the best and the worst.
func noisyGrid(t *testing.T, noise float64) (space suggest.Space, truth func(suggest.Point) float64, measure func(int, suggest.Point) float64) {
	t.Helper()
	space, err := suggest.NewSpace([]suggest.ParameterSpec{
		{Name: "a", Kind: suggest.Int, Min: "1", Max: "20"}, {Name: "b", Kind: suggest.Int, Min: "1", Max: "20"},
	})
	if err != nil {
		t.Fatal(err)
	}
	truth = func(p suggest.Point) float64 {
		a, b := (p[0].Float()-6)/20, (p[1].Float()-15)/20
		return a*a + b*b
	}
	return space, truth, func(number int, p suggest.Point) float64 {
		return truth(p) + noise*rng.New(7, "test", number, "noise").NormFloat64()
	}
}

func playRepeats(t *testing.T, name string, repeats bool, seed uint64, noise float64) (suggest.Session, func(suggest.Point) float64) {
	t.Helper()
	space, truth, measure := noisyGrid(t, noise)
	r, _ := algorithm.Get(name)
	a, err := r.New(space, nil)
	if err != nil {
		t.Fatal(err)
	}
	p := suggesttest.Player{Algorithm: a, Study: suggesttest.NewStudy(space, seed), Objective: measure}
	p.Study.Repeats, p.Study.Budget = repeats, 60
	if err := p.Play(t.Context(), 60); err != nil {
		t.Fatal(err)
	}
	return suggest.Session{Study: p.Study, Algorithm: a}, truth
}

// repeated are the trials that say that they repeat another one.
func repeated(s suggest.Study) (out []*suggest.Trial) {
	for _, t := range s.Trials {
		if t.Meta[suggest.MetaRepeat] != "" {
			out = append(out, t)
		}
	}
	return out
}

func TestPointsAreRepeatedWhereThereIsNoise(t *testing.T) {
	for name, c := range map[string]struct {
		repeats     bool
		noise       float64
		least, most int
	}{
		"noise, and repeats are allowed":     {true, 0.05, 6, 40},
		"noise, and repeats are not allowed": {false, 0.05, 0, 0},
		"no noise, as few repeats show":      {true, 0, 1, 5},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := playRepeats(t, "tpe", c.repeats, 1, c.noise)
			if n := len(repeated(s.Study)); n < c.least || n > c.most {
				t.Errorf("%d of 60 trials are repeats, want %d to %d", n, c.least, c.most)
			}
		})
	}
}

// A space that the budget covers is tried as a whole before a point comes again; a grid
// repeats none.
func TestASmallSpaceIsTriedAsAWholeBeforeRepeats(t *testing.T) {
	space, err := suggest.NewSpace([]suggest.ParameterSpec{{Name: "a", Kind: suggest.Int, Min: "1", Max: "40"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name           string
		budget, trials int
		repeats        bool
	}{{"grid", 40, 40, false}, {"tpe", 40, 40, false}, {"tpe", 60, 50, true}, {"random", 60, 50, true}, {"grid", 60, 40, false}} {
		t.Run(c.name+" "+strconv.Itoa(c.budget), func(t *testing.T) {
			r, _ := algorithm.Get(c.name)
			a, err := r.New(space, nil)
			if err != nil {
				t.Fatal(err)
			}
			p := suggesttest.Player{Algorithm: a, Study: suggesttest.NewStudy(space, 3), Parallel: 4, Objective: func(number int, p suggest.Point) float64 {
				x := (p[0].Float() - 12) / 40
				return x*x + 0.1*rng.New(7, "test", number, "noise").NormFloat64()
			}}
			p.Study.Repeats, p.Study.Budget = true, c.budget
			if err := p.Play(t.Context(), c.trials); err != nil && !(c.repeats && errors.Is(err, suggest.ErrExhausted)) {
				t.Fatal(err)
			}
			first := map[string]bool{}
			for _, trial := range p.Study.Trials[:40] {
				first[must(space.Key(trial.Point))] = true
			}
			if again := repeated(p.Study); len(first) != 40 || len(again) > 0 != c.repeats {
				t.Errorf("the first 40 trials try %d of 40 points, and %d are repeats", len(first), len(again))
			}
			if c.repeats {
				return
			}
			if _, err := a.Suggest(t.Context(), p.Study, 1); c.name == "grid" && !errors.Is(err, suggest.ErrExhausted) {
				t.Errorf("after all of the grid: %v", err)
			}
		})
	}
}

// A point that diverges with each seed but its first is given up soon, and not recommended.
func TestAPointThatDivergesIsNotRepeatedForEver(t *testing.T) {
	space, truth, _ := noisyGrid(t, 0)
	lucky := func(p suggest.Point) bool { return p[0].Float() > 10 }
	r, _ := algorithm.Get("tpe")
	a, err := r.New(space, nil)
	if err != nil {
		t.Fatal(err)
	}
	times := map[string]int{}
	p := suggesttest.Player{Algorithm: a, Study: suggesttest.NewStudy(space, 3), Objective: func(_ int, p suggest.Point) float64 {
		key, _ := space.Key(p)
		times[key]++
		switch {
		case lucky(p) && times[key] > 1:
			return math.NaN()
		case lucky(p):
			return truth(p) - 1
		}
		return truth(p)
	}}
	p.Study.Repeats, p.Study.Budget = true, 80
	if err := p.Play(t.Context(), 70); err != nil {
		t.Fatal(err)
	}
	most := 0
	for _, n := range times {
		most = max(most, n)
	}
	if n := len(repeated(p.Study)); n == 0 || most > 4 {
		t.Errorf("%d trials are repeats, and one point is measured %d times, want at most 4", n, most)
	}
	s := suggest.Session{Study: p.Study, Algorithm: a}
	if got, ok := s.Recommend(t.Context()); !ok || lucky(got.Trial.Point) && times[must(space.Key(got.Trial.Point))] > 2 {
		t.Errorf("recommended is %+v", got)
	}
}

func must(key string, _ bool) string { return key }

// The trial with the best value is one that was lucky; what the model recommends is
// better on average, and its value is told without that luck.
func TestTheRecommendationIsBetterThanTheLuckiestTrial(t *testing.T) {
	seen, recommended, told := 0.0, 0.0, 0.0
	const seeds = 8
	for seed := range uint64(seeds) {
		s, truth := playRepeats(t, "tpe", true, seed, 0.1)
		r, ok := s.Recommend(t.Context())
		if !ok {
			t.Fatal("nothing is recommended")
		}
		if !(r.Deviation > 0) || !(r.Noise > 0.03 && r.Noise < 0.3) {
			t.Errorf("seed %d: deviation %g, noise %g, want noise near 0.1", seed, r.Deviation, r.Noise)
		}
		seen += truth(s.Best().Point) / seeds
		recommended += truth(r.Trial.Point) / seeds
		told += math.Abs(r.Value-truth(r.Trial.Point)) / seeds
	}
	if recommended > 0.75*seen {
		t.Errorf("the recommended points are worth %.4f on average, and those with the best values %.4f", recommended, seen)
	}
	if told > 0.05 {
		t.Errorf("the values that are expected are off by %.4f on average", told)
	}
}

// repeatsAreDeliberate holds that a tried point comes again only in a trial that says
// so, in a study that allows for it, and that a fresh process repeats the same.
func repeatsAreDeliberate(t *testing.T, r propose.Registration) {
	if r.MultiFidelity || r.Repeats {
		t.Skip("its trials repeat points for other reasons")
	}
	space, _, measure := noisyGrid(t, 0.1)
	build := func() suggest.Algorithm {
		a, err := r.New(space, nil)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	a := build()
	p := suggesttest.Player{Algorithm: a, Study: suggesttest.NewStudy(space, 2), Parallel: 2, Objective: measure}
	p.Study.Repeats, p.Study.Budget = true, 36
	if err := p.Play(t.Context(), 30); err != nil {
		t.Fatal(err)
	}
	first := map[string]int{}
	for _, trial := range p.Study.Trials {
		key, _ := space.Key(trial.Point)
		of, known := first[key]
		if !known {
			first[key] = trial.Number
		}
		said := trial.Meta[suggest.MetaRepeat]
		if known && said != strconv.Itoa(of) && !r.Evolves || !known && said != "" {
			t.Errorf("trial %d says that it repeats %q; the point was first tried by %d (%v)", trial.Number, said, of, known)
		}
	}
	want := lines(space, ask(t, a, p.Study, 4))
	if got := lines(space, ask(t, build(), p.Study, 4)); !equalLines(got, want) {
		t.Errorf("a fresh process proposes %v, want %v", got, want)
	}
}

func equalLines(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}
