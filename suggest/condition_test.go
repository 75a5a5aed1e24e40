package suggest_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/suggest"
)

func when(parameter string, in ...string) *suggest.When {
	return &suggest.When{Parameter: parameter, In: in}
}

// tree: with a=x also c, with c=2 also b; with a=y also e.
func tree() []suggest.ParameterSpec {
	return []suggest.ParameterSpec{
		{Name: "b", Kind: suggest.Int, Min: "1", Max: "3", When: when("c", "2")},
		{Name: "a", Kind: suggest.Categorical, List: []string{"x", "y", "z"}},
		{Name: "c", Kind: suggest.Int, Min: "0", Max: "2", When: when("a", "x")},
		{Name: "e", Kind: suggest.Discrete, List: []string{"0.5", "1"}, When: when("a", "y")},
	}
}

func TestConditionsAreChecked(t *testing.T) {
	choice := suggest.ParameterSpec{Name: "model", Kind: suggest.Categorical, List: []string{"svm", "mlp"}}
	child := func(w *suggest.When) suggest.ParameterSpec {
		return suggest.ParameterSpec{Name: "c", Kind: suggest.Double, Min: "0", Max: "1", When: w}
	}
	cases := map[string]struct {
		specs []suggest.ParameterSpec
		want  string
	}{
		"no such parameter": {[]suggest.ParameterSpec{choice, child(when("modell", "svm"))}, `parameter "c": when names "modell"`},
		"no such value":     {[]suggest.ParameterSpec{choice, child(when("model", "tree"))}, `"tree", which is no value of "model"`},
		"no value":          {[]suggest.ParameterSpec{choice, child(when("model"))}, "give at least one"},
		"continuous parent": {[]suggest.ParameterSpec{child(nil), {Name: "d", Kind: suggest.Int, Min: "1", Max: "2", When: when("c", "0.5")}}, "continuous"},
		"itself":            {[]suggest.ParameterSpec{{Name: "n", Kind: suggest.Int, Min: "1", Max: "2", When: when("n", "1")}}, "break the circle"},
		"a circle": {[]suggest.ParameterSpec{
			{Name: "n", Kind: suggest.Int, Min: "1", Max: "2", When: when("m", "1")},
			{Name: "m", Kind: suggest.Int, Min: "1", Max: "2", When: when("n", "1")},
		}, "break the circle"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := suggest.NewSpace(c.specs)
			var problems suggest.SpaceError
			if !errors.As(err, &problems) || !strings.Contains(err.Error(), c.want) || problems[0].Field != "when" {
				t.Errorf("got %v, want it to say %q", err, c.want)
			}
		})
	}
}

func TestConditionalSpaceIsWalkedOnce(t *testing.T) {
	s := space(t, tree()...)
	want := []string{
		"[{a x} {c 0}]", "[{a x} {c 1}]", "[{a y} {e 0.5}]", "[{a y} {e 1}]", "[{a z}]",
		"[{b 1} {a x} {c 2}]", "[{b 2} {a x} {c 2}]", "[{b 3} {a x} {c 2}]",
	}
	size, finite := s.Size()
	if !finite || int(size) != len(want) {
		t.Errorf("size %d, %v, want %d", size, finite, len(want))
	}
	var got []string
	keys := map[string]bool{}
	p := s.First()
	for range want {
		got = append(got, fmt.Sprint(s.Assignments(p)))
		key, ok := s.Key(p)
		if back, read := s.Parse(s.Assignments(p)); !ok || !read || !back.Equal(p) {
			t.Errorf("%v reads back as %v, %v", p, back, read)
		}
		keys[key] = true
		p = s.Successor(p)
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if len(keys) != len(want) {
		t.Errorf("%d keys for %d points", len(keys), len(want))
	}
	if !p.Equal(s.First()) {
		t.Errorf("after the last comes %v, want the first", p)
	}
}

func TestInactiveParametersHaveNoValue(t *testing.T) {
	s := space(t, tree()...)
	assign := func(pairs ...string) []suggest.Assignment {
		var out []suggest.Assignment
		for i := 0; i < len(pairs); i += 2 {
			out = append(out, suggest.Assignment{Name: pairs[i], Value: pairs[i+1]})
		}
		return out
	}
	cases := map[string]struct {
		in     []suggest.Assignment
		want   string
		wantOK bool
	}{
		"too much is ignored":    {assign("a", "z", "c", "1", "b", "2"), "[{a z}]", true},
		"a grandchild is needed": {assign("a", "x", "c", "2"), "[{a x} {c 2}]", false},
		"a child is needed":      {assign("a", "y"), "[{a y}]", false},
		"the root is needed":     {assign("c", "2", "b", "1"), "[]", false},
		"a bad value":            {assign("a", "q", "c", "2"), "[{a q}]", false},
		"a whole branch":         {assign("c", "2", "b", "1", "a", "x"), "[{b 1} {a x} {c 2}]", true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p, ok := s.Parse(c.in)
			if got := fmt.Sprint(s.Assignments(p)); got != c.want || ok != c.wantOK {
				t.Errorf("got %v, %v, want %v, %v", got, ok, c.want, c.wantOK)
			}
			if s.Contains(p) != c.wantOK {
				t.Errorf("Contains says %v", !c.wantOK)
			}
		})
	}
	all := s.Decode([]float64{1, 0, 1, 1}) // a=x, c=2, b=3; e is not active
	if got := fmt.Sprint(s.Assignments(all)); got != "[{b 3} {a x} {c 2}]" {
		t.Errorf("decoded %v", got)
	}
	if u, ok := s.Encode(all); !ok || u[3] != 0.5 {
		t.Errorf("encoded %v, %v", u, ok)
	}
	if diff := cmp.Diff([]bool{true, true, true, false}, s.Active(all)); diff != "" {
		t.Error(diff)
	}
}

func TestViolation(t *testing.T) {
	low, high := 1.0, 3.0
	cases := map[string]struct {
		c           suggest.Constraint
		value, want float64
	}{
		"above the maximum":      {suggest.Constraint{Max: &high}, 5, 2},
		"below the maximum":      {suggest.Constraint{Max: &high}, 1, -2},
		"below the minimum":      {suggest.Constraint{Min: &low}, 0.5, 0.5},
		"between both":           {suggest.Constraint{Min: &low, Max: &high}, 2.5, -0.5},
		"no bounds, above zero":  {suggest.Constraint{}, 0.25, 0.25},
		"no bounds, at zero":     {suggest.Constraint{}, 0, 0},
		"no bounds, far beneath": {suggest.Constraint{}, -4, -4},
	}
	for name, c := range cases {
		if got := c.c.Violation(c.value); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}
