package suggest_test

import (
	"math"
	"testing"

	"github.com/vernier-ml/vernier/suggest"
)

func TestDecodeKnownAnswers(t *testing.T) {
	double := func(min, max, step string, d suggest.Distribution) suggest.ParameterSpec {
		return suggest.ParameterSpec{Kind: suggest.Double, Min: min, Max: max, Step: step, Distribution: d}
	}
	whole := func(min, max, step string, d suggest.Distribution) suggest.ParameterSpec {
		return suggest.ParameterSpec{Kind: suggest.Int, Min: min, Max: max, Step: step, Distribution: d}
	}
	// Quantiles of the standard normal cut off at -3 and 3, from SciPy 1.17:
	// truncnorm.ppf(u, -3, 3).
	const q01, q30, q999999 = -2.2793578771038914, -0.522848165433789, 2.999775045615965
	cases := map[string]struct {
		spec suggest.ParameterSpec
		u    float64
		want float64
	}{
		"uniform, a quarter":                          {double("2", "6", "", ""), 0.25, 3},
		"uniform, the lower end":                      {double("2", "6", "", ""), 0, 2},
		"uniform, the upper end":                      {double("2", "6", "", ""), 1, 6},
		"below the unit interval":                     {double("2", "6", "", ""), -3, 2},
		"above the unit interval":                     {double("2", "6", "", ""), 3, 6},
		"not a number":                                {double("2", "6", "", ""), math.NaN(), 2},
		"logUniform, the middle is the geometric one": {double("1e-4", "1", "", "logUniform"), 0.5, 1e-2},
		"logUniform, the upper end is exact":          {double("1e-5", "0.1", "", "logUniform"), 1, 0.1},
		"logUniform, numbers below the normal ones":   {double("1e-311", "1e-309", "", "logUniform"), 0.5, 1e-310},
		"normal, the middle":                          {double("0", "6", "", "normal"), 0.5, 3},
		"normal, one percent":                         {double("0", "6", "", "normal"), 0.01, 3 + q01},
		"normal, thirty percent":                      {double("0", "6", "", "normal"), 0.3, 3 + q30},
		"normal, far in the upper tail":               {double("0", "6", "", "normal"), 0.999999, 3 + q999999},
		"normal, the upper end":                       {double("0", "6", "", "normal"), 1, 6},
		"logNormal, one percent":                      {double("1e-3", "1e3", "", "logNormal"), 0.01, math.Pow(10, q01)},
		"int, the first value has a full share":       {whole("1", "3", "", ""), 0.33, 1},
		"int, the second value":                       {whole("1", "3", "", ""), 0.34, 2},
		"int, the last value has a full share":        {whole("1", "3", "", ""), 0.67, 3},
		// ln 1.5/0.5 : ln 2.5/1.5 : ln 3.5/2.5 end at 0.5646 and 0.8271.
		"log int, end of the first share":     {whole("1", "3", "", "logUniform"), 0.564, 1},
		"log int, begin of the second":        {whole("1", "3", "", "logUniform"), 0.565, 2},
		"log int, begin of the third":         {whole("1", "3", "", "logUniform"), 0.828, 3},
		"log with half a step beyond zero":    {whole("1", "21", "10", "logUniform"), 0.01, 1},
		"log with half a step beyond zero, 2": {whole("1", "21", "10", "logUniform"), 0.99, 21},
		"step":                                {double("0", "1", "0.25", ""), 0.5, 0.5},
		"step that does not meet max":         {double("0", "1", "0.3", ""), 1, 0.9},
		"normal steps, the lower end":         {double("0", "1", "0.5", "normal"), 0, 0},
		"only value":                          {double("4", "4", "", "normal"), 0.9, 4},
		"discrete":                            {suggest.ParameterSpec{Kind: suggest.Discrete, List: []string{"100", "1", "10"}}, 0.5, 10},
		"wide range":                          {double("-1e300", "1e300", "", ""), 0.75, 5e299},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := parameter(t, c.spec).Decode(c.u).Float()
			if math.Abs(got-c.want) > 1e-12*math.Abs(c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestEncodeKnownAnswers(t *testing.T) {
	p := parameter(t, suggest.ParameterSpec{Kind: suggest.Double, Min: "0", Max: "6", Distribution: "normal"})
	v, _ := p.Parse("0.5")
	// SciPy 1.17: truncnorm.cdf(-2.5, -3, 3).
	if got, want := p.Encode(v), 0.004872923192999062; math.Abs(got-want) > 1e-15 {
		t.Errorf("got %v, want %v", got, want)
	}
	p = parameter(t, suggest.ParameterSpec{Kind: suggest.Categorical, List: []string{"a", "b", "c", "d"}})
	v, _ = p.Parse("b")
	if got, want := p.Encode(v), 0.375; got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

// specs of each kind, with and without step, in each distribution.
func specs() map[string]suggest.ParameterSpec {
	out := map[string]suggest.ParameterSpec{
		"discrete":         {Kind: suggest.Discrete, List: []string{"3", "1e2", "-7", "0.5"}},
		"categorical":      {Kind: suggest.Categorical, List: []string{"x", "y", "z"}},
		"one choice":       {Kind: suggest.Categorical, List: []string{"x"}},
		"one number":       {Kind: suggest.Discrete, List: []string{"2"}},
		"negative double":  {Kind: suggest.Double, Min: "-3", Max: "-1.5"},
		"negative int":     {Kind: suggest.Int, Min: "-30", Max: "-15"},
		"min equal to max": {Kind: suggest.Int, Min: "7", Max: "7"},
		"a million steps":  {Kind: suggest.Double, Min: "0", Max: "1", Step: "1e-6"},
		"very large range": {Kind: suggest.Double, Min: "-8e307", Max: "8e307"},
		"very small range": {Kind: suggest.Double, Min: "1e-300", Max: "2e-300"},
		"large numbers":    {Kind: suggest.Int, Min: "1000000000000", Max: "1000000000010"},
		"two log decades":  {Kind: suggest.Int, Min: "1", Max: "100000", Distribution: "logUniform"},
		"ends below max":   {Kind: suggest.Double, Min: "0.1", Max: "1", Step: "0.4", Distribution: "normal"},
		"coarse log steps": {Kind: suggest.Double, Min: "1", Max: "1001", Step: "100", Distribution: "logNormal"},
		"tiny log numbers": {Kind: suggest.Double, Min: "1e-12", Max: "1e-3", Distribution: "logUniform"},
		"two normal ints":  {Kind: suggest.Int, Min: "0", Max: "1", Distribution: "normal"},
		"many digits":      {Kind: suggest.Double, Min: "0.12345678901234567", Max: "0.9", Step: "0.1"},
	}
	for _, d := range []suggest.Distribution{suggest.Uniform, suggest.LogUniform, suggest.Normal, suggest.LogNormal} {
		out["double "+string(d)] = suggest.ParameterSpec{Kind: suggest.Double, Min: "0.001", Max: "10", Distribution: d}
		out["stepped "+string(d)] = suggest.ParameterSpec{Kind: suggest.Double, Min: "0.1", Max: "2", Step: "0.1", Distribution: d}
		out["int "+string(d)] = suggest.ParameterSpec{Kind: suggest.Int, Min: "1", Max: "64", Distribution: d}
	}
	return out
}

// checkParameter holds what must hold for each valid parameter.
func checkParameter(t *testing.T, p suggest.Parameter) {
	t.Helper()
	for _, u := range []float64{0, 1e-12, 0.01, 0.3, 0.5, 0.77, 0.999, 1 - 1e-12, 1} {
		v := p.Decode(u)
		if !v.InSpace() {
			t.Errorf("Decode(%v) = %v is not in the space", u, v)
		}
		if p.Kind() != suggest.Categorical && (v.Float() < p.Min() || v.Float() > p.Max()) {
			t.Errorf("Decode(%v) = %v is outside of [%v, %v]", u, v, p.Min(), p.Max())
		}
		if back, ok := p.Parse(v.String()); !ok || !back.Equal(v) {
			t.Errorf("Decode(%v) = %#v reads back as %#v, %v", u, v, back, ok)
		}
		e := p.Encode(v)
		if again := p.Decode(e); !(e >= 0 && e <= 1) || again.Float() != v.Float() && math.Abs(p.Encode(again)-e) > 1e-9 {
			t.Errorf("%v encodes as %v, which decodes as %v", v, e, again)
		}
	}
	n, finite := p.Count()
	if !finite {
		if lo, hi := p.Decode(0), p.Decode(1); lo.Float() != p.Min() || hi.Float() != p.Max() {
			t.Errorf("the ends are %v and %v, want %v and %v", lo, hi, p.Min(), p.Max())
		}
		return
	}
	if first, _ := p.Decode(0).Index(); first != 0 {
		t.Errorf("the lower end has the index %d", first)
	}
	if last, _ := p.Decode(1).Index(); last != n-1 {
		t.Errorf("the upper end has the index %d, want %d", last, n-1)
	}
}

func TestEncodingRoundTrips(t *testing.T) {
	for name, spec := range specs() {
		t.Run(name, func(t *testing.T) { checkParameter(t, parameter(t, spec)) })
	}
}

func TestCellsShareTheUnitInterval(t *testing.T) {
	for name, spec := range specs() {
		p := parameter(t, spec)
		n, finite := p.Count()
		if !finite || n > 1e5 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			end := 0.0
			for i := range n {
				lo, hi := p.Cell(i)
				if lo != end || !(hi > lo) {
					t.Fatalf("cell %d is [%v, %v], the one before ends at %v", i, lo, hi, end)
				}
				end = hi
				for _, u := range []float64{lo + (hi-lo)*1e-3, p.Encode(p.At(i)), hi - (hi-lo)*1e-3} {
					if got, _ := p.Decode(u).Index(); got != i {
						t.Errorf("Decode(%v) in cell %d [%v, %v] has the index %d", u, i, lo, hi, got)
					}
				}
			}
			if end != 1 {
				t.Errorf("the last cell ends at %v", end)
			}
		})
	}
}

func TestAtRefusesWhatIsNotThere(t *testing.T) {
	p := parameter(t, suggest.ParameterSpec{Kind: suggest.Int, Min: "1", Max: "3"})
	for _, i := range []int64{-1, 3} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("At(%d) did not panic", i)
				}
			}()
			p.At(i)
		}()
	}
}

func FuzzNewSpace(f *testing.F) {
	for _, spec := range specs() {
		item := ""
		if len(spec.List) > 0 {
			item = spec.List[0]
		}
		f.Add(string(spec.Kind), spec.Min, spec.Max, spec.Step, item, string(spec.Distribution))
	}
	f.Add("double", "1e-400", "1e+308", "0x1", "", "unknown")
	f.Add("double", "-.5e+1", "5.", "1e-5", "", "normal")
	f.Add("int", "-9007199254740992", "9007199254740992", "1e15", "", "")
	f.Fuzz(func(t *testing.T, kind, min, max, step, item, distribution string) {
		spec := suggest.ParameterSpec{
			Name: "p", Kind: suggest.Kind(kind), Min: min, Max: max, Step: step,
			Distribution: suggest.Distribution(distribution),
		}
		if item != "" {
			spec.List = []string{item}
		}
		s, err := suggest.NewSpace([]suggest.ParameterSpec{spec})
		if err != nil {
			if s.Len() != 0 {
				t.Error("an error comes with a space")
			}
			return
		}
		checkParameter(t, s.At(0))
		s.At(0).Parse(item)
		s.At(0).Parse(max)
	})
}
