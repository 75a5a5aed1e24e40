package suggest_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/suggest"
)

func TestConstraintMistakesAreShown(t *testing.T) {
	cases := map[string]struct {
		text         string
		wantPosition int
		wantSaid     string
	}{
		"nothing":                          {"", 1, "complete the constraint"},
		"only spaces":                      {"  ", 3, "complete the constraint"},
		"no comparison":                    {"a + b", 1, "compare it"},
		"a name alone in and":              {"a == 1 and b", 12, "compare it"},
		"not of a number":                  {"not a", 5, "compare it"},
		"an unknown name":                  {"a + bb <= 1", 5, `"bb" is no parameter`},
		"a name that needs backquotes":     {"max-depth.x < 3", 10, "backquotes"},
		"a dash in a name":                 {"max - 1 < 3", 1, "`max-depth.x`"},
		"no parameter":                     {"1 < 2", 1, "names no parameter"},
		"one equals sign":                  {"a = 3", 3, "write =="},
		"and of another language":          {"a < 1 && b < 2", 7, "write and"},
		"or of another language":           {"a < 1 || b < 2", 7, "write or"},
		"not of another language":          {"!(a < 1)", 1, "write not"},
		"power of another language":        {"a ^ 2 < 1", 3, "**"},
		"a remainder":                      {"a % 2 == 0", 3, "remainder"},
		"an unknown sign":                  {"a < 1 ; b < 2", 7, "remove it"},
		"a sign beyond ASCII":              {"größe ≤ 1", 7, "remove it"},
		"an open parenthesis":              {"(a + b < 3", 11, "close the parenthesis"},
		"a closed parenthesis":             {"a + b) < 3", 6, "not expected"},
		"two names":                        {"a b < 3", 3, "put an operator"},
		"a number before a name":           {"2a < 3", 2, "such as *"},
		"two numbers":                      {"2 3 < a", 3, "such as *"},
		"two dots":                         {"1.2.3 < a", 1, "write it like"},
		"a number beyond a double":         {"1e999 < a", 1, "write it like"},
		"hexadecimal":                      {"0x10 < a", 2, "such as *"},
		"an unfinished exponent":           {"1e < a", 2, "such as *"},
		"an unfinished comparison":         {"a <", 4, "complete"},
		"an unfinished and":                {"a < 1 and", 10, "complete"},
		"an operator at the front":         {"* a < 1", 1, "complete"},
		"a word for a name":                {"and < 1", 1, "complete"},
		"a string without an end":          {"model == 'svm", 10, "close it with '"},
		"a name without an end":            {"`max < 3", 1, "close it with `"},
		"an empty name":                    {"`` < 3", 1, "name is empty"},
		"an unknown function":              {"sin(a) < 1", 1, `"sin" is no function`},
		"a parameter called":               {"a(3) < 1", 1, "no function"},
		"too many arguments":               {"a < sqrt(1, 2)", 5, "2 arguments; it takes 1"},
		"too few arguments":                {"a < pow(1)", 5, "1 arguments; it takes 2"},
		"no arguments":                     {"a < min()", 9, "complete"},
		"a comma too many":                 {"a < min(1,)", 11, "complete"},
		"a category as a number":           {"model + 1 < 3", 1, "a category"},
		"a category with a number":         {"model == 3", 10, "string in quotes"},
		"a number with a string":           {"a == '3'", 1, "compared with a category"},
		"order of categories":              {"model < 'svm'", 1, "no order"},
		"a value that a category lacks":    {"model == 'swm'", 10, "use one of svm, mlp"},
		"a value lacked, the string first": {"'swm' == model", 1, "use one of svm, mlp"},
		"a condition compared":             {"(a < 1) == (b < 1)", 2, "a number is needed"},
		"a condition in arithmetic":        {"(a < 1) + 1 < 3", 2, "a number is needed"},
		"a condition as an argument":       {"abs(a < 1) < 3", 5, "a number is needed"},
		"bytes that are no text":           {"a < 1 \xff", 1, "UTF-8"},
		"position after letters beyond":    {"größe < 1 and größe < x", 23, `"x" is no parameter`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := garden(t).WithConstraints([]string{"a < 9", c.text})
			var problem *suggest.ConstraintError
			if !errors.As(err, &problem) {
				t.Fatalf("got %v, want a ConstraintError", err)
			}
			if problem.Position != c.wantPosition || !strings.Contains(err.Error(), c.wantSaid) {
				t.Errorf("got %v (character %d)\nwant %q at character %d", err, problem.Position, c.wantSaid, c.wantPosition)
			}
		})
	}
}

func TestEachWrongConstraintIsNamed(t *testing.T) {
	_, err := garden(t).WithConstraints([]string{"a < x", "a < 1", "y < b"})
	if err == nil || !strings.Contains(err.Error(), `"x"`) || !strings.Contains(err.Error(), `"y"`) {
		t.Errorf("got %v, want both mistakes", err)
	}
}

func TestConstraintLimits(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("(", n) + "a" + strings.Repeat(")", n) + " < 1" }
	cases := map[string]struct {
		text     string
		wantSaid string // "" when it is allowed
	}{
		"100 parentheses":             {deep(100), ""},
		"101 parentheses":             {deep(101), "nested"},
		"5,000 parentheses":           {strings.Repeat("(", 5000), "nested"},
		"5,000 signs":                 {strings.Repeat("-", 5000) + "a < 1", "nested"},
		"1,000 nots":                  {strings.Repeat("not ", 1000) + "a < 1", "nested"},
		"a tower of powers":           {strings.Repeat("a**", 1000) + "a < 1", "nested"},
		"functions in functions":      {strings.Repeat("abs(", 101) + "a" + strings.Repeat(")", 101) + " < 1", "nested"},
		"a sum of 2,000":              {strings.Repeat("a+", 2000) + "a < 1", ""},
		"10,000 characters":           {"a < 1" + strings.Repeat(" ", 9995), ""},
		"10,001 characters":           {"a < 1" + strings.Repeat(" ", 9996), "10000 characters"},
		"10,000 characters of 2 byte": {"größe < 1 or `größe` < 1" + strings.Repeat(" ", 9976), ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := garden(t).WithConstraints([]string{c.text})
			if c.wantSaid == "" && err != nil || c.wantSaid != "" && (err == nil || !strings.Contains(err.Error(), c.wantSaid)) {
				t.Errorf("got %v, want %q", err, c.wantSaid)
			}
			if err != nil && len(err.Error()) > 300 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		})
	}
}

func TestConstraintNames(t *testing.T) {
	got, err := suggest.ConstraintNames("b + a < `x.y` and model == 'svm' or a > max(1, log)")
	if diff := cmp.Diff([]string{"b", "a", "x.y", "model", "log"}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestParseConstraint(t *testing.T) {
	bound := func(x float64) *float64 { return &x }
	cases := map[string]struct {
		text     string
		want     suggest.Constraint
		wantSaid string
	}{
		"an upper bound":              {"latency <= 100", suggest.Constraint{Name: "latency", Max: bound(100)}, ""},
		"a lower bound":               {"recall > 0.5", suggest.Constraint{Name: "recall", Min: bound(0.5)}, ""},
		"the number first":            {"100 >= latency", suggest.Constraint{Name: "latency", Max: bound(100)}, ""},
		"both bounds":                 {"-1 <= `a.b` < 2 ** 3", suggest.Constraint{Name: "a.b", Min: bound(-1), Max: bound(8)}, ""},
		"both bounds from above":      {"8 >= x >= -1", suggest.Constraint{Name: "x", Min: bound(-1), Max: bound(8)}, ""},
		"an equality":                 {"x == 3", suggest.Constraint{}, "give a range"},
		"arithmetic with the name":    {"2 * x <= 3", suggest.Constraint{}, "compared with a number"},
		"a string":                    {"x <= 'a'", suggest.Constraint{}, "compared with a number"},
		"two names":                   {"x <= y", suggest.Constraint{}, "one name"},
		"no name":                     {"1 <= 2", suggest.Constraint{}, "one name"},
		"and":                         {"x <= 2 and x >= 1", suggest.Constraint{}, "write it like"},
		"a name with itself":          {"x <= x", suggest.Constraint{}, "compared with a number"},
		"two bounds on the same side": {"1 >= x <= 3", suggest.Constraint{}, "same side"},
		"bounds that cross":           {"3 <= x <= 1", suggest.Constraint{}, "swap"},
		"a bound that is no number":   {"x <= 1 / 0", suggest.Constraint{}, "compared with a number"},
		"not a constraint":            {"x <=", suggest.Constraint{}, "complete"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := suggest.ParseConstraint(c.text)
			if c.wantSaid != "" {
				var problem *suggest.ConstraintError
				if !errors.As(err, &problem) || !strings.Contains(err.Error(), c.wantSaid) {
					t.Errorf("got %v, want it to say %q", err, c.wantSaid)
				}
				return
			}
			if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}
