package cma

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/vernier-ml/vernier/suggest/numeric/box"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

func near(got, want, relative float64) bool { return math.Abs(got-want) <= relative*math.Abs(want) }

// The values are those of the package cmaes 0.13.1 for Python.
func TestParametersKnownAnswers(t *testing.T) {
	cases := []struct {
		d, population, defaultPopulation, parents int
		// muEff, c1, cMu, cSigma, dSigma, cc, chi, first weight, last positive and last negative weight
		want [10]float64
	}{
		{2, 6, 6, 3, [10]float64{2.0286114646100617, 0.1548153998964136, 0.057859085071916304, 0.44620498737831715, 1.4462049873783172, 0.62455453902682645, 1.254272742818995, 0.63704257124121677, 0.078387171320750335, -1.1559817781589212}},
		{5, 8, 8, 4, [10]float64{2.6001788261131793, 0.047292304159400896, 0.038169160703857813, 0.36508837609348538, 1.3650883760934853, 0.45019955799280792, 2.1285237557247996, 0.52993018447877915, 0.041498386949792215, -0.91349809551171746}},
		{10, 10, 10, 5, [10]float64{3.1672992814107026, 0.015283824524751714, 0.02015428276120838, 0.28442858794636749, 1.2844285879463675, 0.29499038303562225, 3.0847265651690123, 0.45627264690340597, 0.025509591835974777, -0.58622182877883533}},
		{10, 40, 10, 20, [10]float64{11.30948208893226, 0.014388542820040108, 0.12102163166531006, 0.50588156938791373, 1.5058815693879137, 0.3155196710809971, 3.0847265651690123, 0.16712470149808076, 0.0013662797996746414, -0.063030234207000699}},
		{40, 15, 15, 7, [10]float64{4.5409152090759566, 0.0011694327252618397, 0.0031225007109974066, 0.13203056870208271, 1.1320305687020826, 0.093009216634249173, 6.2852150803977596, 0.34479619859202054, 0.022141096850667188, -0.31550462179603478}},
	}
	for _, c := range cases {
		p := NewParameters(c.d, c.population, false)
		got := [10]float64{p.MuEff, p.C1, p.CMu, p.CSigma, p.DSigma, p.CC, p.Chi, p.Weights[0], p.Weights[p.Parents-1], p.Weights[p.Population-1]}
		for i := range got {
			if !near(got[i], c.want[i], 1e-12) {
				t.Errorf("%d dimensions, population %d: constant %d is %v, want %v", c.d, c.population, i, got[i], c.want[i])
			}
		}
		if p.Parents != c.parents || DefaultPopulation(c.d) != c.defaultPopulation {
			t.Errorf("%d dimensions: %d parents, default population %d", c.d, p.Parents, DefaultPopulation(c.d))
		}
	}
}

// The samples of four generations, best first, and what the package cmaes
// 0.13.1 for Python makes of them from mean (0.5, 0.4, 0.6) and step size 0.2.
func TestUpdateKnownAnswers(t *testing.T) {
	generations := [][][]float64{
		{{0.393, 0.487, 0.370}, {0.475, 0.546, 0.394}, {0.390, 0.383, 0.512}, {0.662, 0.339, 0.547}, {0.674, 0.324, 0.632}, {0.468, 0.362, 0.713}},
		{{0.349, 0.457, 0.321}, {0.334, 0.431, 0.387}, {0.503, 0.430, 0.376}, {0.420, 0.552, 0.282}, {0.326, 0.470, 0.439}, {0.527, 0.583, 0.437}},
		{{0.325, 0.345, 0.313}, {0.423, 0.430, 0.265}, {0.368, 0.503, 0.371}, {0.290, 0.599, 0.349}, {0.257, 0.468, 0.493}, {0.300, 0.465, 0.532}},
		{{0.243, 0.265, 0.263}, {0.332, 0.421, 0.298}, {0.431, 0.405, 0.375}, {0.339, 0.429, 0.372}, {0.295, 0.483, 0.345}, {0.448, 0.504, 0.480}},
	}
	m := New(Options{Dims: make([]box.Dim, 3), Population: 6, Start: &Start{Mean: []float64{0.5, 0.4, 0.6}, Sigma: 0.2}})
	for _, rows := range generations {
		var results []Candidate
		for rank, row := range rows {
			results = append(results, Candidate{Row: row, Rank: rank})
		}
		m.Update(results, math.NaN())
	}
	want := map[string][]float64{
		"mean":       {0.283063541120286, 0.3203671641452382, 0.2817393221982552},
		"sigma":      {0.1527570416047166},
		"covariance": {0.6823919240985319, 0.02920683638220373, 0.2408117751536586, 0.02920683638220377, 0.7640322381059292, -0.06833268696969461, 0.2408117751536586, -0.06833268696969462, 0.7578772501024482},
		"path sigma": {-0.8577817946896559, -0.7554478545444565, -0.5898029605485819},
		"path c":     {-0.7029777309963245, -0.701561171707924, -0.4736703881061767},
	}
	got := map[string][]float64{"mean": m.gauss.mean, "sigma": {m.gauss.sigma}, "covariance": m.gauss.c, "path sigma": m.gauss.pathSigma, "path c": m.gauss.pathC}
	for name := range want {
		for i := range want[name] {
			// The peer adds 1e-8 to the squared lengths in floating point of its own order.
			if !near(got[name][i], want[name][i], 1e-12) {
				t.Errorf("%s[%d] is %v, want %v", name, i, got[name][i], want[name][i])
			}
		}
	}
}

// search minimises a function of a row and gives the best loss of each generation.
func search(m *Model, f func([]float64) float64, seed uint64, generations int) []float64 {
	stream := rng.NewKey(seed, "cma", "test").Stream(0)
	var bests []float64
	for range generations {
		type sample struct {
			row  []float64
			loss float64
		}
		samples := make([]sample, m.Population())
		for i := range samples {
			samples[i].row = make([]float64, len(m.options.Dims))
			m.Sample(stream, nil, samples[i].row)
			samples[i].loss = f(samples[i].row)
		}
		slices.SortStableFunc(samples, func(a, b sample) int { return cmp.Compare(a.loss, b.loss) })
		results := make([]Candidate, len(samples))
		for i, s := range samples {
			results[i] = Candidate{Row: s.row, Rank: i}
			if i > 0 && s.loss == samples[i-1].loss {
				results[i].Rank = results[i-1].Rank
			}
		}
		m.Update(results, samples[0].loss)
		bests = append(bests, samples[0].loss)
	}
	return bests
}

func sphere(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += (v - 0.7) * (v - 0.7)
	}
	return sum
}

func ellipsoid(x []float64) float64 {
	sum := 0.0
	for i, v := range x {
		sum += math.Pow(1e6, float64(i)/float64(len(x)-1)) * (v - 0.7) * (v - 0.7)
	}
	return sum
}

// rosenbrock on [-2, 2].
func rosenbrock(u []float64) float64 {
	sum := 0.0
	for i := range len(u) - 1 {
		x, y := 4*u[i]-2, 4*u[i+1]-2
		sum += 100*(y-x*x)*(y-x*x) + (1-x)*(1-x)
	}
	return sum
}

func TestConvergence(t *testing.T) {
	functions := map[string]func([]float64) float64{"sphere": sphere, "ellipsoid": ellipsoid, "rosenbrock": rosenbrock}
	for name, f := range functions {
		for _, d := range []int{5, 10} {
			for _, separable := range []bool{false, true} {
				if separable && name == "rosenbrock" {
					continue // it is not separable
				}
				t.Run(fmt.Sprintf("%s, %d dimensions, separable %v", name, d, separable), func(t *testing.T) {
					m := New(Options{Dims: make([]box.Dim, d), Separable: separable})
					bests := search(m, f, 1, 700)
					if best := slices.Min(bests); best > 1e-10 {
						t.Errorf("the best is %v after %d samples", best, 700*m.Population())
					}
				})
			}
		}
	}
}

func TestConvergenceOverLevels(t *testing.T) {
	dims := make([]box.Dim, 6)
	for i := range 4 {
		dims[i] = box.Dim{Kind: box.Ordered}
		for k := range 11 {
			dims[i].Levels = append(dims[i].Levels, (float64(k)+0.5)/11)
		}
	}
	f := func(x []float64) float64 {
		y := slices.Clone(x)
		for i := range 4 {
			y[i] = dims[i].Levels[dims[i].Nearest(x[i])] - 10.5/11 + 0.7 // best at the last level
		}
		return ellipsoid(y)
	}
	hits := 0
	for seed := range uint64(10) {
		if slices.Min(search(New(Options{Dims: dims}), f, seed, 300)) < 1e-8 {
			hits++
		}
	}
	if hits < 9 {
		t.Errorf("%d of 10 searches found the last levels", hits)
	}
}

// A margin must be left at each generation, also where the mean has settled.
func TestMarginIsKept(t *testing.T) {
	dims := []box.Dim{{Kind: box.Ordered, Levels: []float64{0.1, 0.3, 0.5, 0.7, 0.9}}, {Kind: box.Ordered, Levels: []float64{0.25, 0.75}}}
	m := New(Options{Dims: dims})
	search(m, func(x []float64) float64 {
		return math.Abs(float64(dims[0].Nearest(x[0])-2)) + float64(dims[1].Nearest(x[1]))
	}, 3, 200)
	stream := rng.NewKey(9, "cma", "margin").Stream(0)
	other := [2]int{}
	row := make([]float64, 2)
	const n = 20_000
	for range n {
		m.Sample(stream, nil, row)
		if dims[0].Nearest(row[0]) != 2 {
			other[0]++
		}
		if dims[1].Nearest(row[1]) != 0 {
			other[1]++
		}
	}
	// alpha is 1/(2*6); five standard deviations below.
	least := n/12 - int(5*math.Sqrt(n/12.))
	if other[0] < least || other[1] < least || other[0] > n/2 || other[1] > n/2 {
		t.Errorf("of %d samples %v have another level, want at least %d", n, other, least)
	}
}

func TestConvergenceOverChoices(t *testing.T) {
	dims := []box.Dim{{}, {}}
	for range 8 {
		dims = append(dims, box.Dim{Kind: box.Choice, Count: 5})
	}
	f := func(x []float64) float64 {
		sum := sphere(x[:2])
		for i, v := range x[2:] {
			if int(v) != i%5 {
				sum++
			}
		}
		return sum
	}
	hits := 0
	for seed := range uint64(10) {
		m := New(Options{Dims: dims})
		if slices.Min(search(m, f, seed, 150)) < 1e-3 {
			hits++
		}
		for _, q := range m.cats.q {
			sum := 0.0
			for _, p := range q {
				sum += p
			}
			if math.Abs(sum-1) > 1e-9 || slices.Min(q) < m.cats.least[0]-1e-12 {
				t.Fatalf("the probabilities are %v", q)
			}
		}
	}
	if hits < 9 {
		t.Errorf("%d of 10 searches found the best choices", hits)
	}
}

func TestEqualRanksTeachNothing(t *testing.T) {
	m := New(Options{Dims: make([]box.Dim, 4)})
	search(m, func([]float64) float64 { return 1 }, 1, 200)
	for _, v := range m.Mean() {
		if v < 0.01 || v > 0.99 {
			t.Errorf("the mean of a flat function went to %v", m.Mean())
		}
	}
	if why := m.Stop(1); why == "" {
		t.Error("a flat function does not end the search")
	}
}

func TestForeignResultsAreCut(t *testing.T) {
	m := New(Options{Dims: make([]box.Dim, 5), Sigma: 0.001})
	far := Candidate{Row: []float64{1, 1, 1, 1, 1}, Rank: 0, Foreign: true}
	results := []Candidate{far}
	for k := 1; k < m.Population(); k++ {
		results = append(results, Candidate{Row: []float64{0.5, 0.5, 0.5, 0.5, 0.5}, Rank: k})
	}
	m.Update(results, 0)
	for _, v := range m.Mean() {
		if v <= 0.5 || v > 0.503 {
			t.Errorf("a foreign result moved the mean to %v", v)
		}
	}
}

// A model has no place for a dimension with one value.
func TestAWarmStartIsOfWhatVaries(t *testing.T) {
	number, fixed := box.Dim{}, box.Dim{Kind: box.Ordered, Levels: []float64{0.5}}
	three, only := box.Dim{Kind: box.Choice, Count: 3}, box.Dim{Kind: box.Choice, Count: 1}
	want := WarmStart([]box.Dim{number, number, three}, [][]float64{{0.1, 0.9, 2}, {0.2, 0.5, 2}, {0.4, 0.8, 1}})
	dims := []box.Dim{only, number, fixed, number, three}
	got := WarmStart(dims, [][]float64{{0, 0.1, 0.5, 0.9, 2}, {0, 0.2, 0.5, 0.5, 2}, {0, 0.4, 0.5, 0.8, 1}})
	got.Mean = want.Mean // which has a place for each
	if !reflect.DeepEqual(got, want) {
		t.Errorf("with what does not vary it is %+v, without %+v", got, want)
	}
}

func TestWarmStart(t *testing.T) {
	dims := []box.Dim{{}, {Kind: box.Choice, Count: 2}, {}}
	rows := [][]float64{{0.2, 1, 0.4}, {0.4, 1, 0.8}, {0.3, 0, math.NaN()}, {0.3, 1, 0.6}}
	s := WarmStart(dims, rows)
	if !near(s.Mean[0], 0.3, 1e-12) || !near(s.Mean[2], 0.6, 1e-12) {
		t.Errorf("the mean is %v", s.Mean)
	}
	if q := s.Probabilities[0]; !near(q[0], 1.5/5, 1e-12) || !near(q[1], 3.5/5, 1e-12) {
		t.Errorf("the probabilities are %v", q)
	}
	// Variances 0.005 and 0.02 (over four rows), covariance 0.01, each variance
	// with 0.01 more.
	want := []float64{0.015, 0.01, 0.01, 0.03}
	for i, v := range s.Covariance {
		if got := v * s.Sigma * s.Sigma; !near(got, want[i], 1e-9) {
			t.Errorf("covariance %d is %v, want %v", i, got, want[i])
		}
	}
	if det := s.Covariance[0]*s.Covariance[3] - s.Covariance[1]*s.Covariance[2]; !near(det, 1, 1e-9) {
		t.Errorf("the determinant is %v, want 1", det)
	}
	if one := WarmStart(dims, rows[:1]); one.Sigma != 0 || one.Covariance != nil {
		t.Errorf("one row gives %+v", one)
	}
}

func TestRestarts(t *testing.T) {
	ipop := Restarts{Strategy: IPOP, Population: 8, Sigma: 0.2}
	for i, want := range []int{16, 32, 64} {
		if got, sigma := ipop.Next(100, 0.5, 0.5); got != want || sigma != 0.2 {
			t.Errorf("IPOP, restart %d: population %d, sigma %v", i+1, got, sigma)
		}
	}
	bipop := Restarts{Strategy: BIPOP, Population: 8, Sigma: 0.2}
	if got, _ := bipop.Next(100, 0.5, 0.5); got != 16 {
		t.Errorf("BIPOP begins with a population of %d, want 16", got)
	}
	// The large run cost 300: small ones follow until they cost as much.
	for _, cost := range []int{300, 100} {
		got, sigma := bipop.Next(cost, 1, 0.5)
		if got != 8 || !near(sigma, 0.02, 1e-12) {
			t.Errorf("BIPOP, small: population %d, sigma %v", got, sigma)
		}
		if bipop.Spent(149) || !bipop.Spent(150) {
			t.Error("BIPOP: a small run does not end after half of the last large one")
		}
	}
	if got, sigma := bipop.Next(250, 0.5, 0.5); got != 32 || sigma != 0.2 {
		t.Errorf("BIPOP, large again: population %d, sigma %v", got, sigma)
	}
	if bipop.Spent(1 << 40) {
		t.Error("BIPOP: a large run ends for its cost")
	}
	if got, _ := bipop.Next(900, 1, 0); got != 16 {
		t.Errorf("BIPOP, the largest small run: population %d, want 16", got)
	}
}

func BenchmarkUpdate(b *testing.B) {
	for _, d := range []int{10, 50} {
		b.Run(fmt.Sprint(d), func(b *testing.B) {
			m := New(Options{Dims: make([]box.Dim, d)})
			stream := rng.NewKey(1, "cma", "bench").Stream(0)
			results := make([]Candidate, m.Population())
			for i := range results {
				results[i] = Candidate{Row: make([]float64, d), Rank: i}
			}
			for b.Loop() {
				for i := range results {
					m.Sample(stream, nil, results[i].Row)
				}
				m.Update(results, 1)
			}
		})
	}
}
