package suggest_test

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/suggest"
)

func numbersOf(s suggest.Study) []int {
	out := []int{}
	for _, t := range s.Trials {
		out = append(out, t.Number)
	}
	return out
}

func TestPutKeepsTheOrderOfNumbers(t *testing.T) {
	cases := map[string]struct {
		put       []int
		want      []int
		wantAfter int
	}{
		"an empty study":   {nil, []int{}, 0},
		"in order":         {[]int{0, 1, 2}, []int{0, 1, 2}, 3},
		"in another order": {[]int{2, 0, 1}, []int{0, 1, 2}, 3},
		"with gaps":        {[]int{7, 3}, []int{3, 7}, 8},
		"twice":            {[]int{1, 0, 1}, []int{0, 1}, 2},
		"numbers below 0":  {[]int{-4, -5}, []int{-5, -4}, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var s, batch suggest.Study
			var all []*suggest.Trial
			for i, n := range c.put {
				trial := &suggest.Trial{Number: n, Resource: float64(i)}
				s.Put(trial)
				all = append(all, trial)
			}
			batch.Put(all...)
			if diff := cmp.Diff(c.want, numbersOf(s)); diff != "" {
				t.Errorf("numbers (-want +got):\n%s", diff)
			}
			if !slices.Equal(batch.Trials, s.Trials) {
				t.Errorf("all at once gives %v", numbersOf(batch))
			}
			if got := s.NextNumber(); got != c.wantAfter {
				t.Errorf("the next number is %d, want %d", got, c.wantAfter)
			}
		})
	}
}

func TestAnEqualTrialKeepsItsPointer(t *testing.T) {
	first := suggest.Trial{
		Number: 1, State: suggest.Pruned, Values: []float64{math.NaN()}, Constraints: []float64{2}, Meta: suggest.Meta{"a": "b"},
		Resource: 3, Curve: []suggest.Sample{{Step: 1, Value: math.NaN()}},
	}
	changes := map[string]func(t *suggest.Trial){
		"nothing":      func(t *suggest.Trial) { t.Values, t.Curve = slices.Clone(t.Values), slices.Clone(t.Curve) },
		"a state":      func(t *suggest.Trial) { t.State = suggest.Failed },
		"a value":      func(t *suggest.Trial) { t.Values = []float64{1} },
		"a constraint": func(t *suggest.Trial) { t.Constraints = nil },
		"meta":         func(t *suggest.Trial) { t.Meta = suggest.Meta{"a": "c"} },
		"a resource":   func(t *suggest.Trial) { t.Resource = 4 },
		"a curve":      func(t *suggest.Trial) { t.Curve = append(slices.Clone(t.Curve), suggest.Sample{Step: 2}) },
		"a point":      func(t *suggest.Trial) { t.Point = make(suggest.Point, 1) },
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			s := suggest.Study{Trials: []*suggest.Trial{{Number: 0}, &first, {Number: 2}}}
			earlier := s
			if !s.Update(1, change) {
				t.Fatal("the trial was not found")
			}
			if same := s.Trials[1] == &first; same != (name == "nothing") {
				t.Errorf("the pointer is the same: %v", same)
			}
			if earlier.Trials[1] != &first || s.Trial(1) != s.Trials[1] {
				t.Error("an earlier study changed, or the new trial is not found")
			}
		})
	}
	var empty suggest.Study
	if empty.Update(0, func(*suggest.Trial) {}) || empty.Trial(0) != nil {
		t.Error("a trial that is not there was found")
	}
}

// Two studies that go on from the same one do not share what they add.
func TestStudiesGrowApart(t *testing.T) {
	one := suggest.Study{}
	for n := range 5 {
		one.Put(&suggest.Trial{Number: n})
	}
	two := one
	one.Put(&suggest.Trial{Number: 5, State: suggest.Failed})
	two.Put(&suggest.Trial{Number: 5, State: suggest.Killed})
	if one.Trial(5).State != suggest.Failed || two.Trial(5).State != suggest.Killed {
		t.Errorf("trial 5 is %v in one and %v in the other", one.Trial(5).State, two.Trial(5).State)
	}
}

func TestSeedsOfTrialsDiffer(t *testing.T) {
	seen := map[uint32]int{}
	for number := range 200_000 {
		seed := suggest.TrialSeed(42, number)
		if first, twice := seen[seed]; twice || seed > math.MaxInt32 {
			t.Fatalf("trials %d and %d have the seed %d", first, number, seed)
		}
		seen[seed] = number
	}
	if suggest.TrialSeed(42, 3) == suggest.TrialSeed(43, 3) {
		t.Error("the seed of the study does not count")
	}
}
