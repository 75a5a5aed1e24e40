package suggest_test

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/suggest"
)

// garden has parameters of each kind, one that is conditional and names that
// need backquotes.
func garden(t testing.TB) suggest.Space {
	t.Helper()
	s, err := suggest.NewSpace([]suggest.ParameterSpec{
		{Name: "a", Kind: suggest.Int, Min: "0", Max: "10"},
		{Name: "b", Kind: suggest.Double, Min: "0", Max: "1", Step: "0.1"},
		{Name: "log", Kind: suggest.Discrete, List: []string{"1", "2", "4"}},
		{Name: "model", Kind: suggest.Categorical, List: []string{"svm", "mlp", "it's"}},
		{Name: "teacher", Kind: suggest.Categorical, List: []string{"mlp", "tree"}},
		{Name: "depth", Kind: suggest.Int, Min: "1", Max: "9", When: when("model", "mlp")},
		{Name: "max-depth.x", Kind: suggest.Int, Min: "1", Max: "9"},
		{Name: "größe", Kind: suggest.Double, Min: "0", Max: "1e300"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var planted = map[string]string{
	"a": "3", "b": "0.3", "log": "4", "model": "svm", "teacher": "mlp", "max-depth.x": "5", "größe": "0.5",
}

// plant is a point of the garden; over holds what differs from planted.
func plant(t testing.TB, s suggest.Space, over map[string]string) suggest.Point {
	t.Helper()
	var assigned []suggest.Assignment
	for i := range s.Len() {
		name := s.At(i).Name()
		value, ok := over[name]
		if !ok {
			value, ok = planted[name]
		}
		if ok {
			assigned = append(assigned, suggest.Assignment{Name: name, Value: value})
		}
	}
	p, ok := s.Parse(assigned)
	if !ok {
		t.Fatalf("%v is not in the space", over)
	}
	return p
}

func TestConstraintHolds(t *testing.T) {
	cases := map[string]struct {
		text string
		over map[string]string
		want bool
	}{
		"a sum":                                    {"a + b <= 3.3", nil, true},
		"a sum that is too large":                  {"a + b < 3.3", nil, false},
		"rounding counts as equal":                 {"b + 0.1 + 0.2 <= 0.6", nil, true},
		"rounding is not less":                     {"0.1 + 0.2 > b", nil, false},
		"whole numbers are exact":                  {"a + 9007199254740980 != 9007199254740981", nil, true},
		"product before sum":                       {"2 + a * 2 == 8", nil, true},
		"minus goes from the left":                 {"10 - a - 2 == 5", nil, true},
		"divide goes from the left":                {"12 / a / 2 == 2", nil, true},
		"power goes from the right":                {"2 ** a ** 2 == 512", nil, true},
		"power binds tighter than minus":           {"-a ** 2 == -9", nil, true},
		"power of a negative exponent":             {"2 ** -a == 0.125", nil, true},
		"two signs":                                {"--a == +3", nil, true},
		"parentheses":                              {"(2 + a) * 2 == 10", nil, true},
		"a chain":                                  {"1 <= a < 4 < 5", nil, true},
		"a chain that breaks at its end":           {"1 <= a < 4 < 4", nil, false},
		"and before or":                            {"a == 3 or a == 4 and b == 9", nil, true},
		"not before and":                           {"not a == 4 and a == 3", nil, true},
		"not of a parenthesis":                     {"not (a == 3 or a == 4)", nil, false},
		"a name of a function is a parameter":      {"log == 4 and log2(log) == 2", nil, true},
		"a discrete is a number":                   {"log / 2 == 2", nil, true},
		"min and max of many":                      {"min(a, b, 7) == b and max(a, b, 7) == 7 and max(a) == 3", nil, true},
		"all functions":                            {"log10(100) + exp(0) + sqrt(4) + abs(-a) + pow(a, 2) == 17 and abs(log(10) - 2.302585) < 1e-6", nil, true},
		"a category":                               {"model == 'svm'", nil, true},
		"a category in double quotes":              {`model != "it's"`, nil, true},
		"the string first":                         {"'mlp' != model", nil, true},
		"two categories":                           {"model != teacher", nil, true},
		"two categories that are equal":            {"model == teacher", map[string]string{"model": "mlp", "depth": "2"}, true},
		"if then":                                  {"model != 'svm' or a <= 3", nil, true},
		"backquotes":                               {"`max-depth.x` >= 5", nil, true},
		"letters of any language":                  {"größe < 1", nil, true},
		"what is not active":                       {"depth > 100", nil, true},
		"what is not active, beside what is false": {"depth > 100 and a > 100", nil, true},
		"what is active":                           {"depth > 100", map[string]string{"model": "mlp", "depth": "2"}, false},
		"division by zero":                         {"1 / (a - 3) > 0", nil, false},
		"not of a division by zero":                {"not 1 / (a - 3) > 0", nil, false},
		"zero by zero":                             {"(a - 3) / (a - 3) != 7", nil, false},
		"a division that is not reached":           {"a == 3 or 1 / (a - 3) > 0", nil, true},
		"a division that and does not reach":       {"not (a != 3 and 1 / (a - 3) > 0)", nil, true},
		"logarithm of zero":                        {"log(a - 3) < 5", nil, false},
		"root of a negative number":                {"sqrt(-a) != 7", nil, false},
		"overflow":                                 {"größe * größe > 1", map[string]string{"größe": "1e300"}, false},
		"NaN to the power of zero":                 {"sqrt(-a) ** 0 == 1", nil, false},
		"the larger of 1 and NaN":                  {"max(1, sqrt(-a)) >= 1", nil, false},
		"numbers without a whole part":             {".5 < a and 5. > a and 1e-3 < a and 1E+2 > a", nil, true},
		"over several lines":                       {"a\n >=\t3", nil, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			free := garden(t)
			p := plant(t, free, c.over)
			s, err := free.WithConstraints([]string{c.text})
			if err != nil {
				t.Fatal(err)
			}
			if got := s.Contains(p); got != c.want {
				t.Errorf("%s: got %v, want %v", c.text, got, c.want)
			}
			if !s.Constrained() || free.Constrained() || !free.Contains(p) {
				t.Error("the first space was changed")
			}
		})
	}
}

func TestConstraintsAddUp(t *testing.T) {
	s, err := garden(t).WithConstraints([]string{"a >= 2", "b <= 0.5"})
	if err != nil {
		t.Fatal(err)
	}
	both, err := s.WithConstraints([]string{"a != 4"})
	if err != nil {
		t.Fatal(err)
	}
	other, err := s.WithConstraints([]string{"a != 5"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, a := range []string{"1", "2", "4", "5"} {
		for _, b := range []string{"0.5", "0.6"} {
			p := plant(t, garden(t), map[string]string{"a": a, "b": b})
			if both.Contains(p) {
				got = append(got, "both "+a+" "+b)
			}
			if other.Contains(p) {
				got = append(got, "other "+a+" "+b)
			}
		}
	}
	want := []string{"both 2 0.5", "other 2 0.5", "other 4 0.5", "both 5 0.5"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestConstraintsAgreeWithPython compares with what Python 3.11 makes of 120
// random conditions at a=3, b=-2, c=0.5, d=0; "undefined" is an exception or a
// complex number there.
func TestConstraintsAgreeWithPython(t *testing.T) {
	s := space(t,
		suggest.ParameterSpec{Name: "a", Kind: suggest.Int, Min: "3", Max: "3"},
		suggest.ParameterSpec{Name: "b", Kind: suggest.Int, Min: "-2", Max: "-2"},
		suggest.ParameterSpec{Name: "c", Kind: suggest.Double, Min: "0.5", Max: "0.5"},
		suggest.ParameterSpec{Name: "d", Kind: suggest.Int, Min: "0", Max: "0"},
	)
	p := s.Decode(make([]float64, 4))
	data, err := os.ReadFile("testdata/expressions.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for line := range strings.Lines(string(data)) {
		var row [2]string
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatal(err)
		}
		count[row[1]]++
		constrained, err := s.WithConstraints([]string{row[0]})
		if err != nil {
			t.Error(err)
			continue
		}
		if got, want := constrained.Contains(p), row[1] == "true"; got != want {
			t.Errorf("%s: got %v, want %v (%s)", row[0], got, want, row[1])
		}
		negated, err := s.WithConstraints([]string{"not (" + row[0] + ")"})
		if err != nil {
			t.Error(err)
			continue
		}
		if got, want := negated.Contains(p), row[1] == "false"; got != want {
			t.Errorf("not (%s): got %v, want %v (%s)", row[0], got, want, row[1])
		}
	}
	if diff := cmp.Diff(map[string]int{"true": 40, "false": 40, "undefined": 40}, count); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}

func TestConstraintAllocatesNothing(t *testing.T) {
	s, err := garden(t).WithConstraints([]string{
		"1 <= a + b * 2 - log <= 100 and max(a, b, 7) ** 2 >= 0",
		"model != 'mlp' or not (depth < 3 or model == teacher)",
	})
	if err != nil {
		t.Fatal(err)
	}
	p := plant(t, s, map[string]string{"a": "6"})
	if n := testing.AllocsPerRun(100, func() { s.Contains(p) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzConstraint holds that no text makes the compiler or the evaluation panic,
// that a constraint is a function of the point, and that and with itself and
// not not change nothing.
func FuzzConstraint(f *testing.F) {
	for _, seed := range []string{
		"a + b <= 10", "model == 'svm' or depth ** 2 < log10(`max-depth.x`)", "not (a/b > 1 and -a < 2 <= max(1, b, log))",
		"größe != 1e300 * 1e300", "((((", "a <", "'x' == 'y'", "`", "min()", "a == a == a", "not not not a<b",
	} {
		f.Add(seed)
	}
	free := garden(f)
	points := []suggest.Point{
		plant(f, free, nil), plant(f, free, map[string]string{"model": "mlp", "depth": "7", "a": "0", "größe": "1e300"}),
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := free.WithConstraints([]string{text})
		if err != nil {
			var problem *suggest.ConstraintError
			if !errors.As(err, &problem) || problem.Position < 1 || problem.Problem == "" {
				t.Fatalf("a poor error: %v", err)
			}
			return
		}
		if names, err := suggest.ConstraintNames(text); err != nil || len(names) == 0 {
			t.Fatalf("names %v, %v", names, err)
		}
		_, _ = suggest.ParseConstraint(text)
		var same []suggest.Space
		for _, equal := range []string{"not not (" + text + "\n)", "(" + text + "\n) and (" + text + "\n)"} {
			if s, err := free.WithConstraints([]string{equal}); err == nil { // it may be too long now
				same = append(same, s)
			}
		}
		for _, p := range points {
			want := s.Contains(p)
			for _, other := range same {
				if other.Contains(p) != want {
					t.Fatalf("%q is %v, but not when written twice", text, want)
				}
			}
		}
	})
}

func TestWithinLeavesTheOtherValuesOut(t *testing.T) {
	whole, err := suggest.NewSpace([]suggest.ParameterSpec{
		{Name: "model", Kind: suggest.Categorical, List: []string{"a", "b"}},
		{Name: "x", Kind: suggest.Double, Min: "0", Max: "1", When: &suggest.When{Parameter: "model", In: []string{"b"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	part := whole.Within(0, 1)
	for _, u := range [][]float64{{0.1, 0.5}, {0.9, 0.5}} {
		p := whole.Decode(u)
		if want := p[0].String() == "b"; part.Contains(p) != want || !whole.Contains(p) {
			t.Errorf("%v: within %v, want %v; in the whole %v, want true", p, part.Contains(p), want, whole.Contains(p))
		}
	}
	if !part.Constrained() || whole.Constrained() {
		t.Errorf("the part is constrained: %v, the whole: %v", part.Constrained(), whole.Constrained())
	}
}
