package analysis

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/vernier-ml/vernier/suggest"
)

func TestLevelIsTheLargestResourceWithEnoughPoints(t *testing.T) {
	of := func(counts map[float64]int) (out []Tried) {
		for _, r := range slices.Sorted(maps.Keys(counts)) {
			for i := range counts[r] {
				out = append(out, Tried{r, fmt.Sprint(r, i)})
			}
		}
		return out
	}
	for name, test := range map[string]struct {
		counts map[float64]int
		level  float64
		most   float64 // of Broadest
		sides  [3]int  // how many had less, as much and more
	}{
		"nothing":                     {nil, 0, 0, [3]int{}},
		"all are whole":               {map[float64]int{0: 5}, 0, 0, [3]int{0, 5, 0}},
		"enough are whole":            {map[float64]int{3: 20, 9: 12, 27: 8}, 27, 3, [3]int{32, 8, 0}},
		"too few are whole":           {map[float64]int{3: 20, 9: 12, 27: 7}, 9, 3, [3]int{20, 12, 7}},
		"none has enough":             {map[float64]int{3: 5, 9: 6, 27: 2}, 9, 9, [3]int{5, 6, 2}},
		"of equals the larger":        {map[float64]int{3: 5, 9: 5}, 9, 9, [3]int{5, 5, 0}},
		"all of it is the largest":    {map[float64]int{0: 4, 3: 20, 27: 4}, 27, 3, [3]int{20, 8, 0}},
		"all of it, and too few have": {map[float64]int{0: 4, 3: 20}, 3, 3, [3]int{0, 24, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			level, sides := Level(of(test.counts))
			var got [3]int
			for _, s := range sides {
				got[s+1]++
			}
			if diff := cmp.Diff(test.sides, got); diff != "" || level != test.level {
				t.Errorf("level %v, want %v (-want +got):\n%s", level, test.level, diff)
			}
			if level, _ := Broadest(of(test.counts)); level != test.most {
				t.Errorf("the broadest level is %v, want %v", level, test.most)
			}
		})
	}
}

// Ten results of two points with all of the resource tell less than eight points with a part
// of it: of those there would be no contour.
func TestAPointCountsOnceForTheLevel(t *testing.T) {
	space := newSpace(t, double("x", "0", "1"), double("y", "0", "1"))
	s := play(space, 8, func(p suggest.Point) float64 { return p[0].Float() })
	for i := range s.Trials {
		s.Trials[i].Resource = 3
	}
	for i := range 10 {
		again := *s.Trials[i%2]
		again.Number, again.Resource = 8+i, []float64{27, 0}[i/5] // what has none recorded had 27, too
		s.Trials = append(s.Trials, &again)
	}
	for name, by := range map[string]Rule{"level": Level, "broadest": Broadest} {
		if level, kept, left := Count(s, by); level != 3 || kept != 8 || left != 10 {
			t.Errorf("%s: resource %v, %d results, %d left out; want 3, 8, 10", name, level, kept, left)
		}
	}
	if _, err := Contour(s, 0, "x", "y", 5); err != nil {
		t.Error(err)
	}
}

// What short trials measured is not comparable: importance is of the 30 short ones, the others
// are of the 10 whole ones. The best may be among the short, as it may be for the experiment.
func TestShortTrialsAreLeftOut(t *testing.T) {
	space := newSpace(t, double("x", "0", "1"), double("epochs", "1", "27"))
	s := play(space, 40, func(p suggest.Point) float64 { return p[0].Float() })
	whole, shorter := s, s
	whole.Trials, shorter.Trials = nil, nil
	for i, trial := range s.Trials {
		short := *trial
		short.Resource = 27
		if i%4 < 3 {
			short.Resource, short.Values = 3, []float64{float64(i) - 10}
			shorter.Trials = append(shorter.Trials, &short)
		} else {
			whole.Trials = append(whole.Trials, &short)
		}
		s.Trials[i] = &short
	}
	for name, test := range map[string]struct {
		of     suggest.Study
		answer func(suggest.Study) (any, error)
	}{
		"functional ANOVA": {shorter, func(s suggest.Study) (any, error) { return FunctionalANOVA(t.Context(), s, 0) }},
		"PED-ANOVA":        {shorter, func(s suggest.Study) (any, error) { return PEDANOVA(s, 0) }},
		"contour":          {whole, func(s suggest.Study) (any, error) { return Contour(s, 0, "x", "epochs", 5) }},
		"distribution":     {whole, func(s suggest.Study) (any, error) { return Distribution(s, 0) }},
	} {
		want, err := test.answer(test.of)
		if err != nil {
			t.Fatal(err)
		}
		got, err := test.answer(s)
		if diff := cmp.Diff(want, got, cmpopts.EquateNaNs()); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
	best, err := BestSoFar(s, 0, nil)
	if err != nil || len(best) == 0 || best[0].Trial != 0 {
		t.Errorf("best so far %v, %v; want the short trial 0 first", best, err)
	}
}
