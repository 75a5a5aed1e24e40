package parzen_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/suggest/numeric/box"
	"github.com/vernier-ml/vernier/suggest/numeric/parzen"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

var dims = []box.Dim{
	{Kind: box.Continuous},
	{Kind: box.Ordered, Levels: []float64{0.05, 0.2, 0.3, 0.55, 0.9}},
	{Kind: box.Choice, Count: 3},
}

var columns = []int{0, 1, 2}

// observe draws rows; a tenth of the values is not active, some come twice.
func observe(n int, seed uint64) (ids []int, rows [][]float64) {
	s := rng.NewKey(seed, "parzen", "test").Stream(0)
	for i := range n {
		row := []float64{math.Round(20*s.Float64()) / 20, dims[1].Levels[s.Uint64N(5)], float64(s.Uint64N(3))}
		for j := range row {
			if s.Float64() < 0.1 {
				row[j] = math.NaN()
			}
		}
		ids, rows = append(ids, 3*i-7), append(rows, row)
	}
	return ids, rows
}

func mixture(n int, config parzen.Config) *parzen.Mixture {
	m := parzen.New(dims, columns, config)
	m.Fill(observe(n, uint64(n)))
	weights := make([]float64, n)
	for i := range weights {
		weights[i] = 1 + float64(i%4)
	}
	m.Weigh(weights)
	return m
}

var configs = map[string]parzen.Config{
	"as hyperopt":        {PriorWeight: 1, Clip: 100},
	"no prior":           {Clip: 100},
	"endpoints, no clip": {PriorWeight: 0.3, Endpoints: true},
	"empirical":          {PriorWeight: 2, Clip: 100, Empirical: true},
}

// The density must sum to one over the levels and choices, and integrate to one
// over the real dimension, also where only some dimensions are active.
func TestDensityIntegratesToOne(t *testing.T) {
	const cells = 4000
	for name, config := range configs {
		for _, n := range []int{0, 1, 2, 30} {
			t.Run(fmt.Sprint(name, " ", n), func(t *testing.T) {
				m := mixture(n, config)
				var rows, choices [][]float64
				for c := range 3 {
					choices = append(choices, []float64{math.NaN(), math.NaN(), float64(c)})
					for _, l := range dims[1].Levels {
						for i := range cells {
							rows = append(rows, []float64{(float64(i) + 0.5) / cells, l, float64(c)})
						}
					}
				}
				if got := sum(m, rows) / cells; math.Abs(got-1) > 1e-3 {
					t.Errorf("the integral over the whole box is %v", got)
				}
				if got := sum(m, choices); math.Abs(got-1) > 1e-9 {
					t.Errorf("the sum over the choices alone is %v", got)
				}
			})
		}
	}
}

func sum(m *parzen.Mixture, rows [][]float64) float64 {
	logs := make([]float64, len(rows))
	m.LogDensities(rows, logs)
	total := 0.0
	for _, l := range logs {
		total += math.Exp(l)
	}
	return total
}

// What a mixture is must not depend on how it came to be.
func TestInsertAndRemoveEqualFill(t *testing.T) {
	for name, config := range configs {
		t.Run(name, func(t *testing.T) {
			ids, rows := observe(150, 9)
			_, probes := observe(50, 10)
			got := parzen.New(dims, columns, config)
			s := rng.NewKey(1, "order").Stream(0)
			in := map[int]bool{}
			for step := range 900 {
				i := int(s.Uint64N(150))
				if in[i] {
					got.Remove(ids[i])
				} else {
					got.Insert(ids[i], rows[i])
				}
				in[i] = !in[i]
				if step%60 != 59 {
					continue
				}
				want := parzen.New(dims, columns, config)
				var someIDs []int
				var someRows [][]float64
				for j := range ids {
					if in[j] {
						someIDs, someRows = append(someIDs, ids[j]), append(someRows, rows[j])
					}
				}
				want.Fill(someIDs, someRows)
				if diff := cmp.Diff(bits(want, probes), bits(got, probes)); diff != "" {
					t.Fatalf("after %d steps: %s", step+1, diff)
				}
			}
		})
	}
}

func bits(m *parzen.Mixture, rows [][]float64) []uint64 {
	m.Weigh(nil)
	logs := make([]float64, len(rows))
	m.LogDensities(rows, logs)
	out := make([]uint64, len(rows))
	for i, l := range logs {
		out[i] = math.Float64bits(l)
	}
	return out
}

// The wanted values are from SciPy 1.17: sums of truncnorm.pdf and of
// differences of truncnorm.cdf, with the bandwidths 0.3 (real), 0.35 (levels)
// and the masses 2/3 and 1/6 (choices).
func TestKnownAnswers(t *testing.T) {
	m := parzen.New(dims, columns, parzen.Config{PriorWeight: 1, Clip: 100})
	m.Fill([]int{4, 5}, [][]float64{{0.2, 0.2, 0}, {0.5, 0.55, 1}})
	m.Weigh([]float64{1, 2})
	none := math.NaN()
	for name, c := range map[string]struct {
		row  []float64
		want float64
	}{
		"real":     {[]float64{0.35, none, none}, 1.3008402231101193},
		"levels":   {[]float64{none, 0.3, none}, 0.2076224016931763},
		"choices":  {[]float64{none, none, 0}, 1.0 / 3},
		"together": {[]float64{0.35, 0.3, 0}, 0.10486006845258583},
	} {
		if got := math.Exp(logDensity(m, c.row)); math.Abs(got-c.want) > 1e-8*c.want {
			t.Errorf("%s: %.15g, want %.15g", name, got, c.want)
		}
	}
}

// Samples must follow the density: Pearson's chi-square test at the level 0.001
// over the levels, the choices and ten parts of the real dimension.
func TestSamplesFollowTheDensity(t *testing.T) {
	const draws = 20000
	for name, config := range configs {
		t.Run(name, func(t *testing.T) {
			config.Empirical = false // for what is never drawn from
			m := mixture(12, config)
			counts := [3][10]float64{}
			s := rng.NewKey(5, "draws").Stream(0)
			for range draws {
				k := m.Pick(s)
				counts[0][int(10*m.Draw(k, 0, s))]++
				counts[1][dims[1].Nearest(m.Draw(k, 1, s))]++
				counts[2][int(m.Draw(k, 2, s))]++
			}
			for d, want := range expected(m) {
				chi := 0.0
				for i, p := range want {
					chi += (counts[d][i] - draws*p) * (counts[d][i] - draws*p) / (draws * p)
				}
				if chi > 27.88 { // the 0.999 quantile with 9 degrees of freedom; the others have fewer
					t.Errorf("dimension %d: chi-square %v: counts %v, probabilities %v", d, chi, counts[d], want)
				}
			}
		})
	}
}

// expected are the marginal probabilities.
func expected(m *parzen.Mixture) [3][]float64 {
	const fine = 400
	var out [3][]float64
	for part := range 10 {
		var rows [][]float64
		for i := range fine {
			rows = append(rows, []float64{(float64(part) + (float64(i)+0.5)/fine) / 10, math.NaN(), math.NaN()})
		}
		out[0] = append(out[0], sum(m, rows)/fine/10)
	}
	for _, l := range dims[1].Levels {
		out[1] = append(out[1], math.Exp(logDensity(m, []float64{math.NaN(), l, math.NaN()})))
	}
	for c := range 3 {
		out[2] = append(out[2], math.Exp(logDensity(m, []float64{math.NaN(), math.NaN(), float64(c)})))
	}
	return out
}

func logDensity(m *parzen.Mixture, row []float64) float64 {
	var out [1]float64
	m.LogDensities([][]float64{row}, out[:])
	return out[0]
}
