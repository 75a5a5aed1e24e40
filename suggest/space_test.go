package suggest_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/suggest"
)

func space(t *testing.T, specs ...suggest.ParameterSpec) suggest.Space {
	t.Helper()
	s, err := suggest.NewSpace(specs)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func parameter(t *testing.T, spec suggest.ParameterSpec) suggest.Parameter {
	t.Helper()
	spec.Name = "p"
	return space(t, spec).At(0)
}

func TestNewSpaceSaysWhatIsWrong(t *testing.T) {
	double := func(min, max, step string, d suggest.Distribution) suggest.ParameterSpec {
		return suggest.ParameterSpec{Name: "lr", Kind: suggest.Double, Min: min, Max: max, Step: step, Distribution: d}
	}
	whole := func(min, max, step string) suggest.ParameterSpec {
		return suggest.ParameterSpec{Name: "lr", Kind: suggest.Int, Min: min, Max: max, Step: step}
	}
	list := func(k suggest.Kind, values ...string) suggest.ParameterSpec {
		return suggest.ParameterSpec{Name: "lr", Kind: k, List: values}
	}
	cases := map[string]struct {
		spec      suggest.ParameterSpec
		wantField string
		wantSaid  string // part of the message that tells what to do
	}{
		"min above max":                           {double("2", "1", "", ""), "min", "swap"},
		"min above max of an int":                 {whole("2", "1", ""), "min", "swap"},
		"min is no number":                        {double("abc", "1", "", ""), "min", "write it like"},
		"max is infinite":                         {double("0", "inf", "", ""), "max", "write it like"},
		"max overflows":                           {double("0", "1e999", "", ""), "max", "write it like"},
		"min is NaN":                              {double("NaN", "1", "", ""), "min", "write it like"},
		"hexadecimal":                             {double("0x1p-2", "1", "", ""), "min", "write it like"},
		"underscores":                             {double("0", "1_000", "", ""), "max", "write it like"},
		"a space":                                 {double(" 0", "1", "", ""), "min", "write it like"},
		"no min":                                  {double("", "1", "", ""), "min", "needs it"},
		"no max":                                  {whole("1", "", ""), "max", "needs it"},
		"step of zero":                            {double("0", "1", "0", ""), "step", "positive"},
		"step below zero":                         {whole("0", "1", "-1"), "step", "positive"},
		"step that underflows":                    {double("0", "1", "1e-999", ""), "step", "positive"},
		"step is no number":                       {double("0", "1", "x", ""), "step", "write it like"},
		"step finer than doubles are":             {double("0", "1e6", "1e-12", ""), "step", "larger step"},
		"int with a fractional min":               {whole("0.5", "3", ""), "min", "round it"},
		"int with a fractional max":               {whole("0", "3.5", ""), "max", "round it"},
		"int with a fractional step":              {whole("0", "3", "0.5"), "step", "round it"},
		"int beyond what is exact":                {whole("0", "9223372036854775807", ""), "max", "round it"},
		"int almost beyond what is exact":         {whole("0", "9007199254740991", ""), "step", "narrower range"},
		"range beyond a double":                   {double("-1e308", "1e308", "", ""), "max", "narrow"},
		"bounds too close to tell values apart":   {double("1000000000000000", "1000000000000000.125", "", "logNormal"), "max", "widen"},
		"logUniform from zero":                    {double("0", "1", "", "logUniform"), "min", "use uniform"},
		"logNormal from below zero":               {double("-1", "1", "", "logNormal"), "min", "use normal"},
		"log distribution of an int from zero":    {suggest.ParameterSpec{Name: "lr", Kind: suggest.Int, Min: "0", Max: "9", Distribution: "logUniform"}, "min", "raise min"},
		"unknown distribution":                    {double("0", "1", "", "cauchy"), "distribution", "logNormal"},
		"unknown kind":                            {suggest.ParameterSpec{Name: "lr", Kind: "float"}, "kind", "double"},
		"list for a double":                       {suggest.ParameterSpec{Name: "lr", Kind: suggest.Double, Min: "0", Max: "1", List: []string{"1"}}, "list", "remove it"},
		"min for a categorical":                   {suggest.ParameterSpec{Name: "lr", Kind: suggest.Categorical, Min: "0", List: []string{"1"}}, "min", "remove it"},
		"step for a discrete":                     {suggest.ParameterSpec{Name: "lr", Kind: suggest.Discrete, Step: "1", List: []string{"1"}}, "step", "remove it"},
		"empty list of a categorical":             {list(suggest.Categorical), "list", "at least one"},
		"empty list of a discrete":                {list(suggest.Discrete), "list", "at least one"},
		"word twice":                              {list(suggest.Categorical, "a", "b", "a"), "list", `"a" twice`},
		"number twice in two spellings":           {list(suggest.Discrete, "1", "1.0"), "list", "same number"},
		"word in a list of numbers":               {list(suggest.Discrete, "1", "two"), "list", "categorical"},
		"infinity in a list of numbers":           {list(suggest.Discrete, "1", "-Inf"), "list", "categorical"},
		"zero twice, once with a minus before it": {list(suggest.Discrete, "0", "-0.0"), "list", "same number"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := suggest.NewSpace([]suggest.ParameterSpec{c.spec})
			var problems suggest.SpaceError
			if !errors.As(err, &problems) {
				t.Fatalf("got %v, want a SpaceError", err)
			}
			if len(problems) != 1 {
				t.Errorf("got %d problems, want one: %v", len(problems), err)
			}
			if p := problems[0]; p.Name != "lr" || p.Index != 0 || p.Field != c.wantField {
				t.Errorf("got parameter %d %q, field %q, want 0, lr, %q", p.Index, p.Name, p.Field, c.wantField)
			}
			for _, part := range []string{`"lr"`, c.wantField, c.wantSaid} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not say %q", err, part)
				}
			}
		})
	}
}

func TestNewSpaceListsEachProblem(t *testing.T) {
	_, err := suggest.NewSpace([]suggest.ParameterSpec{
		{Name: "a", Kind: suggest.Int, Min: "1", Max: "2"},
		{Kind: suggest.Int, Min: "1", Max: "2"},
		{Name: "a", Kind: suggest.Double, Min: "x", Max: "y"},
	})
	want := []string{
		`parameter number 2: name is empty; give the parameter a name`,
		`parameter "a": name is used by parameter number 1 already; rename one of them`,
		`parameter "a": min "x" is not a finite number; write it like 0.01, 1e-3 or 10`,
		`parameter "a": max "y" is not a finite number; write it like 0.01, 1e-3 or 10`,
	}
	var single *suggest.ParameterError
	if !errors.As(err, &single) || single.Index != 1 {
		t.Errorf("errors.As finds %v, want the first problem", single)
	}
	if got := err.Error(); got != strings.Join(want, "; ") {
		t.Errorf("got  %s\nwant %s", got, strings.Join(want, "; "))
	}
}

func TestValuesPrintExactly(t *testing.T) {
	cases := map[string]struct {
		spec suggest.ParameterSpec
		want []string
	}{
		"a decimal step has no drift": {
			suggest.ParameterSpec{Kind: suggest.Double, Min: "0.01", Max: "0.07", Step: "0.01"},
			[]string{"0.01", "0.02", "0.03", "0.04", "0.05", "0.06", "0.07"},
		},
		"a step that does not meet max ends below it": {
			suggest.ParameterSpec{Kind: suggest.Double, Min: "0", Max: "1", Step: "0.3"},
			[]string{"0", "0.3", "0.6", "0.9"},
		},
		"exponents are understood": {
			suggest.ParameterSpec{Kind: suggest.Double, Min: "1e-3", Max: "3E-3", Step: "1e-03"},
			[]string{"0.001", "0.002", "0.003"},
		},
		"very small numbers have an exponent": {
			suggest.ParameterSpec{Kind: suggest.Double, Min: "0.00001", Max: "3e-5", Step: "0.00001"},
			[]string{"1e-05", "2e-05", "3e-05"},
		},
		"large doubles have none": {
			suggest.ParameterSpec{Kind: suggest.Double, Min: "1e6", Max: "3e6", Step: "1e6"},
			[]string{"1000000", "2000000", "3000000"},
		},
		"numbers go through zero without a sign": {
			suggest.ParameterSpec{Kind: suggest.Double, Min: "-0.2", Max: "0.2", Step: "0.1"},
			[]string{"-0.2", "-0.1", "0", "0.1", "0.2"},
		},
		"a step wider than the range leaves min": {
			suggest.ParameterSpec{Kind: suggest.Double, Min: "1", Max: "2", Step: "5"},
			[]string{"1"},
		},
		"more digits than are exact still work": {
			suggest.ParameterSpec{Kind: suggest.Double, Min: "0.30000000000000004", Max: "0.55", Step: "0.1"},
			[]string{"0.30000000000000004", "0.4", "0.5"},
		},
		"an int has no dot": {
			suggest.ParameterSpec{Kind: suggest.Int, Min: "-1", Max: "1"},
			[]string{"-1", "0", "1"},
		},
		"an int may be written as a double": {
			suggest.ParameterSpec{Kind: suggest.Int, Min: "1.0", Max: "1e1", Step: "4.0"},
			[]string{"1", "5", "9"},
		},
		"a discrete keeps its spelling and is sorted": {
			suggest.ParameterSpec{Kind: suggest.Discrete, List: []string{"1e-1", "0.0010", "+7"}},
			[]string{"0.0010", "1e-1", "+7"},
		},
		"a categorical keeps its order": {
			suggest.ParameterSpec{Kind: suggest.Categorical, List: []string{"sgd", "", "1.0", "1"}},
			[]string{"sgd", "", "1.0", "1"},
		},
		"min equal to max": {
			suggest.ParameterSpec{Kind: suggest.Double, Min: "5e-1", Max: "0.5"},
			[]string{"0.5"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := parameter(t, c.spec)
			n, finite := p.Count()
			if !finite {
				t.Fatal("not finite")
			}
			var got []string
			for i := range n {
				v := p.At(i)
				got = append(got, v.String())
				back, ok := p.Parse(v.String())
				if index, _ := back.Index(); !ok || index != i || !back.Equal(v) {
					t.Errorf("%q reads back as %v (index %d, %v), want index %d", v, back, index, ok, i)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParse(t *testing.T) {
	step := suggest.ParameterSpec{Kind: suggest.Double, Min: "0", Max: "1", Step: "0.1"}
	whole := suggest.ParameterSpec{Kind: suggest.Int, Min: "1", Max: "9", Step: "2"}
	line := suggest.ParameterSpec{Kind: suggest.Double, Min: "1", Max: "2"}
	discrete := suggest.ParameterSpec{Kind: suggest.Discrete, List: []string{"0.5", "1e-3"}}
	cases := map[string]struct {
		spec   suggest.ParameterSpec
		text   string
		want   string // what it prints
		wantOK bool
	}{
		"another spelling":                      {step, "3e-1", "0.3", true},
		"rounding noise of another program":     {step, "0.30000000000000004", "0.3", true},
		"between the steps":                     {step, "0.35", "0.35", false},
		"below min":                             {step, "-0.1", "-0.1", false},
		"above max":                             {step, "1.1", "1.1", false},
		"a word":                                {step, "big", "big", false},
		"nothing":                               {step, "", "", false},
		"NaN":                                   {step, "NaN", "NaN", false},
		"infinity":                              {line, "+Inf", "+Inf", false},
		"an int as a double":                    {whole, "3.0", "3", true},
		"an int between the steps":              {whole, "4", "4", false},
		"an int with a fraction":                {whole, "3.0000001", "3.0000001", false},
		"a double without step":                 {line, "1.50", "1.5", true},
		"min":                                   {line, "1", "1", true},
		"max":                                   {line, "2e0", "2", true},
		"a double without step, below min":      {line, "0.999", "0.999", false},
		"another spelling of a discrete":        {discrete, "0.001", "1e-3", true},
		"a number that is not in the list":      {discrete, "0.002", "0.002", false},
		"only exact words name a category":      {suggest.ParameterSpec{Kind: suggest.Categorical, List: []string{"1"}}, "1.0", "1.0", false},
		"the only value in another spelling":    {suggest.ParameterSpec{Kind: suggest.Double, Min: "1", Max: "1"}, "1.00", "1", true},
		"not the only value":                    {suggest.ParameterSpec{Kind: suggest.Double, Min: "1", Max: "1"}, "1.01", "1.01", false},
		"a number with very many digits":        {line, "1." + strings.Repeat("5", 500), "1.5555555555555556", true},
		"a number with an exponent of nonsense": {line, "1e99999999999999999999", "1e99999999999999999999", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			v, ok := parameter(t, c.spec).Parse(c.text)
			if v.String() != c.want || ok != c.wantOK || v.InSpace() != c.wantOK {
				t.Errorf("got %q, %v, in space %v; want %q, %v", v, ok, v.InSpace(), c.want, c.wantOK)
			}
			if _, has := v.Index(); has && !ok {
				t.Error("a value outside of the space has an index")
			}
		})
	}
}

func TestPointsOfUsersAreTolerated(t *testing.T) {
	s := space(t,
		suggest.ParameterSpec{Name: "lr", Kind: suggest.Double, Min: "0", Max: "1"},
		suggest.ParameterSpec{Name: "opt", Kind: suggest.Categorical, List: []string{"sgd", "adam"}})
	full := []suggest.Assignment{{Name: "opt", Value: "adam"}, {Name: "lr", Value: "0.5"}}
	cases := map[string]struct {
		give         []suggest.Assignment
		want         []suggest.Assignment
		wantOK       bool
		wantContains bool
	}{
		"in another order": {full, []suggest.Assignment{{Name: "lr", Value: "0.5"}, {Name: "opt", Value: "adam"}}, true, true},
		"one is missing":   {full[:1], []suggest.Assignment{{Name: "opt", Value: "adam"}}, false, false},
		"one is too much": {
			append(full[:2:2], suggest.Assignment{Name: "x", Value: "1"}),
			[]suggest.Assignment{{Name: "lr", Value: "0.5"}, {Name: "opt", Value: "adam"}}, false, true,
		},
		"one comes twice": {
			append(full[:1:1], full[0]),
			[]suggest.Assignment{{Name: "opt", Value: "adam"}}, false, false,
		},
		"one is out of range": {
			[]suggest.Assignment{{Name: "lr", Value: "7"}, {Name: "opt", Value: "adam"}},
			[]suggest.Assignment{{Name: "lr", Value: "7"}, {Name: "opt", Value: "adam"}}, false, false,
		},
		"none": {nil, []suggest.Assignment{}, false, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p, ok := s.Parse(c.give)
			if ok != c.wantOK || s.Contains(p) != c.wantContains {
				t.Errorf("got ok %v, contains %v; want %v, %v", ok, s.Contains(p), c.wantOK, c.wantContains)
			}
			if diff := cmp.Diff(c.want, s.Assignments(p)); diff != "" {
				t.Error(diff)
			}
			if _, ok := s.Key(p); ok != c.wantContains {
				t.Errorf("has a key: %v", ok)
			}
			if _, ok := s.Encode(p); ok != c.wantContains {
				t.Errorf("can be encoded: %v", ok)
			}
		})
	}
}

func TestSize(t *testing.T) {
	bit := suggest.ParameterSpec{Kind: suggest.Int, Min: "0", Max: "1"}
	bitsOf := func(n int, extra ...suggest.ParameterSpec) []suggest.ParameterSpec {
		specs := extra
		for range n {
			specs = append(specs, bit)
		}
		for i := range specs {
			specs[i].Name = fmt.Sprint("p", i)
		}
		return specs
	}
	cases := map[string]struct {
		specs      []suggest.ParameterSpec
		want       uint64
		wantFinite bool
	}{
		"no parameters":           {nil, 1, true},
		"ten bits":                {bitsOf(10), 1024, true},
		"63 bits":                 {bitsOf(63), 1 << 63, true},
		"64 bits are too many":    {bitsOf(64), math.MaxUint64, true},
		"70 bits are too many":    {bitsOf(70), math.MaxUint64, true},
		"one continuous":          {bitsOf(70, suggest.ParameterSpec{Kind: suggest.Double, Min: "0", Max: "1"}), 0, false},
		"a single continuous one": {bitsOf(2, suggest.ParameterSpec{Kind: suggest.Double, Min: "1", Max: "1"}), 4, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			n, finite := space(t, c.specs...).Size()
			if n != c.want || finite != c.wantFinite {
				t.Errorf("got %d, %v; want %d, %v", n, finite, c.want, c.wantFinite)
			}
		})
	}
}

func TestKeysTellPointsApart(t *testing.T) {
	s := space(t,
		suggest.ParameterSpec{Name: "a", Kind: suggest.Int, Min: "0", Max: "300"},
		suggest.ParameterSpec{Name: "b", Kind: suggest.Int, Min: "0", Max: "300"})
	seen := map[string]bool{}
	for i := range int64(301) {
		for j := range int64(301) {
			key, ok := s.Key(suggest.Point{s.At(0).At(i), s.At(1).At(j)})
			if !ok || seen[key] {
				t.Fatalf("point %d, %d: ok %v, seen before %v", i, j, ok, seen[key])
			}
			seen[key] = true
		}
	}
}

func TestAllowedSaysTheValues(t *testing.T) {
	long := make([]string, 40)
	for i := range long {
		long[i] = fmt.Sprint("word", i)
	}
	tests := map[string]struct {
		spec suggest.ParameterSpec
		want string
	}{
		"a double":            {suggest.ParameterSpec{Name: "x", Kind: suggest.Double, Min: "1e-5", Max: "0.10"}, "from 1e-05 to 0.1"},
		"a double with steps": {suggest.ParameterSpec{Name: "x", Kind: suggest.Double, Min: "0", Max: "1", Step: "0.25"}, "from 0 to 1 in steps of 0.25"},
		"an int":              {suggest.ParameterSpec{Name: "x", Kind: suggest.Int, Min: "1", Max: "20000000"}, "from 1 to 20000000 in steps of 1"},
		"numbers of a list":   {suggest.ParameterSpec{Name: "x", Kind: suggest.Discrete, List: []string{"8", "2"}}, "one of 2, 8"},
		"words":               {suggest.ParameterSpec{Name: "x", Kind: suggest.Categorical, List: []string{"sgd", "adam"}}, "one of sgd, adam"},
		"a long list is cut":  {suggest.ParameterSpec{Name: "x", Kind: suggest.Categorical, List: long}, "one of word0, word1, word2, word3, word4, word5, word6, word7, word…"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, space(t, test.spec).At(0).Allowed()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
