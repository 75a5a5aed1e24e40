package analysis

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

func newSpace(t testing.TB, specs ...suggest.ParameterSpec) suggest.Space {
	t.Helper()
	space, err := suggest.NewSpace(specs)
	if err != nil {
		t.Fatal(err)
	}
	return space
}

func double(name, min, max string) suggest.ParameterSpec {
	return suggest.ParameterSpec{Name: name, Kind: suggest.Double, Min: min, Max: max}
}

// play measures n points of the prior.
func play(space suggest.Space, n int, loss func(p suggest.Point) float64) suggest.Study {
	s := suggest.Study{Space: space, Seed: 1, Objectives: []suggest.Objective{{Name: "loss"}}}
	stream := rng.NewKey(9, "analysis test").Stream(0)
	u := make([]float64, space.Len())
	for i := range n {
		for d := range u {
			u[d] = stream.Float64()
		}
		p := space.Decode(u)
		s.Trials = append(s.Trials, &suggest.Trial{Number: i, Point: p, State: suggest.Succeeded, Values: []float64{loss(p)}})
	}
	return s
}

type evaluator func(suggest.Study) (Importance, error)

func evaluators() map[string]evaluator {
	return map[string]evaluator{
		"functional ANOVA": func(s suggest.Study) (Importance, error) { return FunctionalANOVA(context.Background(), s, 0) },
		"PED-ANOVA":        func(s suggest.Study) (Importance, error) { return PEDANOVA(s, 0) },
	}
}

func sharesOf(i Importance) []float64 {
	out := make([]float64, len(i.Parameters))
	for k, p := range i.Parameters {
		out[k] = p.Share
	}
	return out
}

// The Sobol indices of the first order are 0.3139, 0.4424 and 0 (Saltelli et
// al., "Global sensitivity analysis", 2008, section 4.5). The forest smooths the
// waves along y, which takes some of their variance.
func TestFunctionalANOVAOfIshigami(t *testing.T) {
	space := newSpace(t, double("x", "-3.141592653589793", "3.141592653589793"), double("y", "-3.141592653589793", "3.141592653589793"), double("z", "-3.141592653589793", "3.141592653589793"))
	s := play(space, 1000, func(p suggest.Point) float64 {
		x, y, z := p[0].Float(), p[1].Float(), p[2].Float()
		return math.Sin(x) + 7*math.Pow(math.Sin(y), 2) + 0.1*math.Pow(z, 4)*math.Sin(x)
	})
	got, err := FunctionalANOVA(t.Context(), s, 0)
	if err != nil {
		t.Fatal(err)
	}
	want := Importance{Parameters: []Share{{"x", 0.3139}, {"y", 0.4424}, {"z", 0}}, Interactions: 0.2437}
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 0.09)); diff != "" {
		t.Error(diff)
	}
}

func TestImportance(t *testing.T) {
	loguniform := double("lr", "1e-5", "1")
	loguniform.Distribution = suggest.LogUniform
	for name, c := range map[string]struct {
		specs []suggest.ParameterSpec
		loss  func(suggest.Point) float64
		check func(shares []float64) bool
	}{
		"parameters that do not matter have none": {
			[]suggest.ParameterSpec{loguniform, double("b", "0", "1"), {Name: "c", Kind: suggest.Categorical, List: []string{"u", "v", "w"}}, {Name: "n", Kind: suggest.Int, Min: "1", Max: "9"}},
			func(p suggest.Point) float64 { return math.Pow(math.Log10(p[0].Float())+3, 2) },
			func(s []float64) bool { return s[0] > 0.9 && s[1] < 0.05 && s[2] < 0.05 && s[3] < 0.05 },
		},
		"equal parameters have equal shares": {
			[]suggest.ParameterSpec{double("a", "0", "1"), double("b", "0", "1"), double("c", "0", "1")},
			func(p suggest.Point) float64 {
				return math.Pow(p[0].Float()-0.5, 2) + math.Pow(p[1].Float()-0.5, 2)
			},
			func(s []float64) bool { return math.Abs(s[0]-s[1]) < 0.12 && s[0] > 0.4 && s[2] < 0.05 },
		},
		"the larger weight has the larger share": {
			[]suggest.ParameterSpec{double("a", "0", "1"), double("b", "0", "1")},
			func(p suggest.Point) float64 { return p[0].Float() + 3*p[1].Float() },
			func(s []float64) bool { return s[1] > 2*s[0] },
		},
		"a choice matters": {
			[]suggest.ParameterSpec{{Name: "c", Kind: suggest.Categorical, List: []string{"u", "v", "w"}}, double("b", "0", "1")},
			func(p suggest.Point) float64 {
				return map[string]float64{"u": 1, "v": 0, "w": 2}[p[0].String()] + 0.1*p[1].Float()
			},
			func(s []float64) bool { return s[0] > 0.5 },
		},
		"a conditional parameter matters where it is active": {
			[]suggest.ParameterSpec{
				{Name: "model", Kind: suggest.Categorical, List: []string{"a", "b"}},
				func() suggest.ParameterSpec {
					p := double("x", "0", "1")
					p.When = &suggest.When{Parameter: "model", In: []string{"a"}}
					return p
				}(),
				double("y", "0", "1"),
			},
			func(p suggest.Point) float64 {
				if !p[1].IsSet() {
					return 0.5
				}
				return p[1].Float()
			},
			func(s []float64) bool { return s[1] > 0.4 && s[2] < 0.05 },
		},
	} {
		for evaluator, evaluate := range evaluators() {
			t.Run(name+", "+evaluator, func(t *testing.T) {
				s := play(newSpace(t, c.specs...), 300, c.loss)
				got, err := evaluate(s)
				if err != nil {
					t.Fatal(err)
				}
				sum := got.Interactions
				for _, share := range sharesOf(got) {
					sum += share
				}
				if math.Abs(sum-1) > 1e-9 {
					t.Errorf("the shares sum to %v", sum)
				}
				if !c.check(sharesOf(got)) {
					t.Errorf("got %+v", got)
				}
			})
		}
	}
}

// Of the best two or three, chance would tell.
func TestImportanceOfFewResultsFindsWhatDominates(t *testing.T) {
	lr := double("lr", "1e-5", "1")
	lr.Distribution = suggest.LogUniform
	space := newSpace(t, lr, double("b", "0", "1"), suggest.ParameterSpec{Name: "c", Kind: suggest.Categorical, List: []string{"u", "v", "w"}})
	all := play(space, 240, func(p suggest.Point) float64 { return math.Pow(math.Log10(p[0].Float())+3, 2) + 0.1*p[1].Float() })
	for evaluator, evaluate := range evaluators() {
		for i := range 10 {
			s := all
			s.Trials = all.Trials[i*24 : (i+1)*24]
			if got, err := evaluate(s); err != nil || sharesOf(got)[0] < 0.5 {
				t.Errorf("%s of trials %d to %d: %+v, %v; want more than half for lr", evaluator, i*24, i*24+23, got, err)
			}
		}
	}
}

func TestImportanceDependsOnTheLossesAlone(t *testing.T) {
	space := newSpace(t, double("a", "0", "1"), suggest.ParameterSpec{Name: "c", Kind: suggest.Categorical, List: []string{"u", "v"}})
	for evaluator, evaluate := range evaluators() {
		s := play(space, 60, func(p suggest.Point) float64 { return p[0].Float() })
		got, err := evaluate(s)
		if err != nil {
			t.Fatal(err)
		}
		s.Objectives[0].Direction = suggest.Maximize
		for i := range s.Trials {
			s.Trials[i].Values = []float64{-s.Trials[i].Values[0]}
		}
		if mirrored, err := evaluate(s); err != nil || !cmp.Equal(got, mirrored) {
			t.Errorf("%s: maximizing the negative gives %+v, %v, want %+v", evaluator, mirrored, err, got)
		}
	}
}

func TestImportanceOfOddStudies(t *testing.T) {
	space := newSpace(t, double("a", "0", "1"), suggest.ParameterSpec{Name: "one", Kind: suggest.Int, Min: "3", Max: "3"})
	for evaluator, evaluate := range evaluators() {
		constant := play(space, 50, func(suggest.Point) float64 { return 7 })
		got, err := evaluate(constant)
		if err != nil || !slices.Equal(sharesOf(got), []float64{0, 0}) || got.Interactions != 0 {
			t.Errorf("%s of a constant: %+v, %v", evaluator, got, err)
		}
		least := map[string]int{"functional ANOVA": 8, "PED-ANOVA": 24}[evaluator]
		for n, want := range map[int]error{least - 1: ErrTooFew, least: nil} {
			if _, err := evaluate(play(space, n, func(p suggest.Point) float64 { return p[0].Float() })); !errors.Is(err, want) {
				t.Errorf("%s of %d trials: %v, want %v", evaluator, n, err, want)
			}
		}
		wild := play(space, 200, func(p suggest.Point) float64 {
			switch x := p[0].Float(); {
			case x > 0.95:
				return 1e300
			case x > 0.9:
				return math.Inf(1)
			case x > 0.85:
				return math.NaN()
			default:
				return x
			}
		})
		got, err = evaluate(wild)
		if share := sharesOf(got); err != nil || !(share[0] > 0.9) {
			t.Errorf("%s with values far out: %+v, %v", evaluator, got, err)
		}
		wild.Objectives = nil
		if _, err := evaluate(wild); err == nil {
			t.Errorf("%s without an objective gives no error", evaluator)
		}
	}
}

func TestActivity(t *testing.T) {
	space := newSpace(t,
		suggest.ParameterSpec{Name: "deep", Kind: suggest.Int, Min: "1", Max: "5", When: &suggest.When{Parameter: "x", In: []string{"2"}}},
		suggest.ParameterSpec{Name: "m", Kind: suggest.Categorical, List: []string{"a", "b", "c"}},
		suggest.ParameterSpec{Name: "x", Kind: suggest.Discrete, List: []string{"1", "2"}, When: &suggest.When{Parameter: "m", In: []string{"a", "c"}}},
		suggest.ParameterSpec{Name: "many", Kind: suggest.Int, Min: "1", Max: "100000"},
		suggest.ParameterSpec{Name: "rare", Kind: suggest.Int, Min: "1", Max: "5", When: &suggest.When{Parameter: "many", In: []string{"7"}}},
	)
	if diff := cmp.Diff([]float64{1. / 3, 1, 2. / 3, 1, 0}, activity(space), cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Error(diff)
	}
}

// tell makes a study of one parameter with the given values of the objectives.
func tell(t testing.TB, directions []suggest.Direction, values ...[]float64) suggest.Study {
	t.Helper()
	s := suggest.Study{Space: newSpace(t, double("a", "0", "1"))}
	for i, d := range directions {
		s.Objectives = append(s.Objectives, suggest.Objective{Name: fmt.Sprint(i), Direction: d})
	}
	for i, v := range values {
		s.Trials = append(s.Trials, &suggest.Trial{Number: i, Point: s.Space.Decode([]float64{float64(i) / 20}), State: suggest.Succeeded, Values: v})
	}
	return s
}

func TestBestSoFar(t *testing.T) {
	s := tell(t, []suggest.Direction{suggest.Maximize}, []float64{3}, []float64{1}, []float64{math.NaN()}, []float64{3}, []float64{5}, []float64{9}, []float64{7})
	s.Trials[5].State = suggest.Pruned
	got, err := BestSoFar(s, 0, nil)
	if diff := cmp.Diff([]Best{{0, 3}, {4, 5}, {6, 7}}, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	least := 2.0
	s.Constraints = []suggest.Constraint{{Name: "memory", Max: &least}}
	for i := range s.Trials {
		s.Trials[i].Constraints = []float64{float64(s.Trials[i].Number)}
	}
	got, err = BestSoFar(s, 0, nil)
	if diff := cmp.Diff([]Best{{0, 3}}, got); diff != "" || err != nil {
		t.Errorf("with a constraint: %v\n%s", err, diff)
	}
}

func TestBestSoFarWithASmoother(t *testing.T) {
	s := tell(t, []suggest.Direction{suggest.Maximize}, []float64{3}, []float64{9}, []float64{5})
	half := func(points []suggest.Point, losses []float64) ([]float64, error) {
		if len(points) != 3 || losses[1] != -9 {
			t.Errorf("the smoother gets %v and %v", points, losses)
		}
		return []float64{-3, -4, -5}, nil
	}
	got, err := BestSoFar(s, 0, half)
	if diff := cmp.Diff([]Best{{0, 3}, {1, 4}, {2, 5}}, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	broken := errors.New("no model")
	if _, err := BestSoFar(s, 0, func([]suggest.Point, []float64) ([]float64, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
}

func TestDistribution(t *testing.T) {
	s := tell(t, []suggest.Direction{suggest.Maximize}, []float64{3}, []float64{1}, []float64{3}, []float64{5})
	got, err := Distribution(s, 0)
	if diff := cmp.Diff([]Step{{5, 0.25}, {3, 0.75}, {1, 1}}, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	if _, err := Distribution(s, 1); err == nil {
		t.Error("an objective that does not exist gives no error")
	}
}

func TestHypervolume(t *testing.T) {
	s := tell(t, []suggest.Direction{suggest.Minimize, suggest.Maximize},
		[]float64{3, 1}, []float64{4, 1}, []float64{1, 3}, []float64{2, 2}, []float64{9, 9}, []float64{0, 4}, []float64{math.NaN(), 9})
	got, used, err := Hypervolume(t.Context(), s, []float64{5, 0})
	// By hand: 2*1; then 4*3; then nothing, twice, as {9, 9} is outside and
	// {2, 2} is dominated; then 5*4.
	if diff := cmp.Diff([]Volume{{0, 2}, {2, 12}, {5, 20}}, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	if diff := cmp.Diff([]float64{5, 0}, used); diff != "" {
		t.Error(diff)
	}
	_, used, err = Hypervolume(t.Context(), s, nil)
	if err != nil || len(used) != 2 || used[0] < 9 || used[1] > 1 {
		t.Errorf("the reference from the results is %v, %v", used, err)
	}
	for _, wrong := range [][]float64{{1}, {math.NaN(), 1}} {
		if _, _, err := Hypervolume(t.Context(), s, wrong); err == nil {
			t.Errorf("the reference %v gives no error", wrong)
		}
	}
	if got, _, err := Hypervolume(t.Context(), tell(t, []suggest.Direction{suggest.Minimize}), nil); err != nil || len(got) > 0 {
		t.Errorf("an empty study gives %v, %v", got, err)
	}
}

// A search that measures its best point again and again says no more about the others.
func TestImportanceCountsAPointThatIsRepeatedOnce(t *testing.T) {
	space := newSpace(t, double("x", "0", "1"), double("y", "0", "1"), double("z", "0", "1"))
	once := play(space, 40, func(p suggest.Point) float64 { return math.Abs(p[0].Float()-0.3) + 0.01*p[1].Float() })
	best := slices.MinFunc(once.Trials, func(a, b *suggest.Trial) int { return int(math.Copysign(1, a.Values[0]-b.Values[0])) })
	often := once
	for i := range 20 {
		often.Trials = append(often.Trials[:len(often.Trials):len(often.Trials)], &suggest.Trial{Number: 40 + i, Point: best.Point, State: suggest.Succeeded, Values: best.Values})
	}
	for name, evaluate := range evaluators() {
		want, err1 := evaluate(once)
		got, err2 := evaluate(often)
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		if diff := cmp.Diff(sharesOf(want), sharesOf(got), cmpopts.EquateApprox(0, 1e-9)); diff != "" {
			t.Errorf("%s (-once +often):\n%s", name, diff)
		}
	}
}
