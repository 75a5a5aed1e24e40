package algorithm_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/algorithm"
)

// With several objectives, what is proposed first follows the trials of an earlier
// study, and turns round with their values.
func TestAutoLearnsFromEarlierStudiesOfSeveralObjectives(t *testing.T) {
	space, err := suggest.NewSpace([]suggest.ParameterSpec{{Name: "x", Kind: suggest.Double, Min: "0", Max: "1"}, {Name: "y", Kind: suggest.Double, Min: "0", Max: "1"}})
	if err != nil {
		t.Fatal(err)
	}
	r, ok := algorithm.Get("auto")
	if !ok {
		t.Fatal("there is no auto")
	}
	proposed := func(sign float64) (text []string, whys string) {
		a, err := r.New(space, nil)
		if err != nil {
			t.Fatal(err)
		}
		s := suggest.Study{Space: space, Seed: 1, Objectives: []suggest.Objective{{Name: "a"}, {Name: "b"}}}
		for i := range 40 {
			x := float64(i) / 40
			s.Warm = append(s.Warm, &suggest.Trial{
				Number: i, Point: space.Decode([]float64{x, x}), State: suggest.Succeeded,
				Values: []float64{sign * x, sign * x * x}, Meta: suggest.Meta{"study": "earlier"},
			})
		}
		got, err := a.Suggest(t.Context(), s, 4)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range got {
			text, whys = append(text, fmt.Sprint(space.Assignments(p.Point))), whys+p.Why+"\n"
		}
		return text, whys
	}
	low, whys := proposed(1)
	high, _ := proposed(-1)
	if slices.Equal(low, high) || !strings.Contains(whys, "earlier studies") {
		t.Errorf("%v\n%v\n%s", low, high, whys)
	}
}
