package pareto_test

import (
	"math"
	"slices"
	"testing"

	"github.com/vernier-ml/vernier/suggest/numeric/pareto"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

func TestBoxesCoverTheRegionOnce(t *testing.T) {
	for objectives := 1; objectives <= 3; objectives++ {
		ref := slices.Repeat([]float64{0.9}, objectives)
		for seed := range uint64(40) {
			points := uniform(12, objectives, seed)
			boxes := pareto.Boxes(points, ref)
			front := 0
			for _, i := range pareto.Front(points) {
				if slices.Max(points[i]) < 0.9 {
					front++
				}
			}
			if most := max(1, objectives-1)*front + 1; len(boxes) > most {
				t.Errorf("%d objectives: %d boxes for %d points, want at most %d", objectives, len(boxes), front, most)
			}
			// The boxes above a corner fill what the corner's box has left.
			corner := slices.Repeat([]float64{-1}, objectives)
			want := math.Pow(1.9, float64(objectives)) - pareto.Hypervolume(points, ref)
			if got := above(boxes, corner); math.Abs(got-want) > 1e-12 {
				t.Errorf("%d objectives, seed %d: the volume is %v, want %v", objectives, seed, got, want)
			}
			for _, probe := range uniform(50, objectives, seed+1000) {
				gain := pareto.Hypervolume(append(slices.Clone(points), probe), ref) - pareto.Hypervolume(points, ref)
				if got := above(boxes, probe); math.Abs(got-gain) > 1e-12 {
					t.Errorf("%d objectives, seed %d: %v improves by %v, want %v", objectives, seed, probe, got, gain)
				}
			}
		}
	}
}

// above is the volume of the boxes that y dominates.
func above(boxes []pareto.Box, y []float64) float64 {
	sum := 0.0
	for _, b := range boxes {
		v := 1.0
		for j := range y {
			v *= math.Max(0, b.High[j]-math.Max(b.Low[j], y[j]))
		}
		sum += v
	}
	return sum
}

type normals struct{ mean, deviation []float64 }

var (
	twoFront   = [][]float64{{1, 4}, {2, 2}, {4, 1}}
	threeFront = [][]float64{{1, 3, 2}, {2, 1, 3}, {3, 2, 1}, {2, 2, 2}}
)

// The values are from mpmath 1.3 with 40 digits: the sum, over all cells of the
// grid through the points that no point dominates, of the products of one-
// dimensional expected improvements. BoTorch 0.18's
// ExpectedHypervolumeImprovement agrees where it does not underflow.
func TestImprovementKnownAnswers(t *testing.T) {
	cases := map[string]struct {
		points [][]float64
		ref    []float64
		at     normals
		want   float64
	}{
		"two objectives":   {twoFront, []float64{5, 5}, normals{[]float64{2.5, 1.5}, []float64{0.5, 1}}, 0.27758389040168113},
		"where it is tiny": {twoFront, []float64{5, 5}, normals{[]float64{9, 20}, []float64{0.25, 0.5}}, -864.91240953193024},
		"where it is sure": {twoFront, []float64{5, 5}, normals{[]float64{0, 0}, []float64{0.001, 0.001}}, 2.6390573296152586},
		"three objectives": {threeFront, []float64{4, 4, 4}, normals{[]float64{1.5, 1.5, 2.5}, []float64{0.7, 0.3, 1.1}}, 1.0560111762456625},
		"three, tiny":      {threeFront, []float64{4, 4, 4}, normals{[]float64{8, 9, 5}, []float64{0.5, 0.25, 0.1}}, -371.06508193043514},
		"narrow boxes":     {[][]float64{{1, 1 + 0x1p-20}, {1 + 0x1p-20, 1}}, []float64{2, 2}, normals{[]float64{1, 1}, []float64{0.125, 0.25}}, -1.9335775434091816},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := pareto.NewImprovement(c.points, c.ref).Log(c.at.mean, c.at.deviation, nil, nil)
			if math.Abs(got-c.want) > 1e-12*math.Max(1, math.Abs(c.want)) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestImprovementAgainstMonteCarlo(t *testing.T) {
	const n = 100_000
	for objectives := 1; objectives <= 3; objectives++ {
		points := uniform(10, objectives, 5)
		ref := slices.Repeat([]float64{1}, objectives)
		boxes := pareto.Boxes(points, ref)
		at := normals{[]float64{0.3, 0.5, 0.2}[:objectives], []float64{0.2, 0.4, 0.1}[:objectives]}
		stream := rng.NewKey(1, "pareto", "monte carlo").Stream(uint64(objectives))
		sum, squares := 0.0, 0.0
		y := make([]float64, objectives)
		for range n {
			for j := range y {
				y[j] = at.mean[j] + at.deviation[j]*stream.NormFloat64()
			}
			v := above(boxes, y)
			sum += v
			squares += v * v
		}
		mean := sum / n
		sd := math.Sqrt((squares/n - mean*mean) / n)
		got := math.Exp(pareto.NewImprovement(points, ref).Log(at.mean, at.deviation, nil, nil))
		if math.Abs(got-mean) > 5*sd {
			t.Errorf("%d objectives: %v, by Monte Carlo %v +- %v", objectives, got, mean, sd)
		}
	}
}

func TestImprovementGradient(t *testing.T) {
	cases := map[string]normals{
		"inside":            {[]float64{0.4, 0.6, 0.5}, []float64{0.3, 0.2, 0.4}},
		"good":              {[]float64{-3, -2, -1}, []float64{0.3, 0.2, 0.4}},
		"poor":              {[]float64{3, 4, 2}, []float64{0.3, 0.2, 0.4}},
		"very poor":         {[]float64{300, 400, 200}, []float64{0.3, 0.2, 0.4}},
		"unsure":            {[]float64{0.5, 0.5, 0.5}, []float64{500, 700, 900}},
		"good in one":       {[]float64{-3, 0.5, 2}, []float64{0.01, 0.2, 0.4}},
		"on a level":        {[]float64{0.5, 0.5, 0.5}, []float64{0.01, 0.02, 0.03}},
		"narrow, to a side": {[]float64{0.5, 1, 0}, []float64{20, 0.1, 30}},
	}
	for name, at := range cases {
		t.Run(name, func(t *testing.T) {
			for objectives := 1; objectives <= 3; objectives++ {
				e := pareto.NewImprovement(uniform(10, objectives, 3), slices.Repeat([]float64{1}, objectives))
				mean, deviation := at.mean[:objectives], at.deviation[:objectives]
				byMean, byDeviation := make([]float64, objectives), make([]float64, objectives)
				log := e.Log(mean, deviation, byMean, byDeviation)
				value := func() float64 { return e.Log(mean, deviation, nil, nil) }
				for j := range objectives {
					h := 1e-4 * deviation[j]
					noise := 1e-14 * (1 + math.Abs(log)) / h
					expect(t, byMean[j], slope(&mean[j], h, value), noise)
					expect(t, byDeviation[j], slope(&deviation[j], h, value), noise)
				}
			}
		})
	}
}

// slope is the derivative by x from four points.
func slope(x *float64, h float64, f func() float64) float64 {
	at := func(d float64) float64 {
		before := *x
		*x += d
		defer func() { *x = before }()
		return f()
	}
	return (8*(at(h)-at(-h)) - (at(2*h) - at(-2*h))) / (12 * h)
}

func expect(t *testing.T, got, want, noise float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-6*math.Abs(want)+noise {
		t.Errorf("the derivative is %v, by differences %v", got, want)
	}
}

func TestImprovementIsFinite(t *testing.T) {
	for _, scale := range []float64{1e-300, 1e-30, 1, 1e30, 1e150, 1e300} {
		for _, mean := range []float64{-1, 0, 0.5, 1, 1e6} {
			for _, deviation := range []float64{1e-200, 1e-12, 1, 1e6} {
				m, d := mean*scale, math.Max(deviation*scale, 5e-324)
				if math.IsInf(m, 0) || math.IsInf(d, 0) {
					continue
				}
				points := [][]float64{{0.1 * scale, 0.9 * scale}, {0.9 * scale, 0.1 * scale}}
				e := pareto.NewImprovement(points, []float64{scale, scale})
				byMean := make([]float64, 2)
				v := e.Log([]float64{m, m}, []float64{d, d}, byMean, nil)
				if math.IsNaN(v) || math.IsInf(v, 0) || math.IsNaN(byMean[0]) || math.IsNaN(byMean[1]) {
					t.Errorf("scale %v, mean %v, deviation %v: %v %v", scale, m, d, v, byMean)
				}
			}
		}
	}
}

func BenchmarkImprovement(b *testing.B) {
	for name, objectives := range map[string]int{"two": 2, "three": 3} {
		var points [][]float64
		for i := range 30 {
			a := float64(i) / 30 * math.Pi / 2
			points = append(points, []float64{1 - math.Sin(a), 1 - math.Cos(a), math.Abs(math.Sin(5 * a))}[:objectives])
		}
		e := pareto.NewImprovement(points, slices.Repeat([]float64{1.1}, objectives))
		mean, deviation := slices.Repeat([]float64{0.4}, objectives), slices.Repeat([]float64{0.3}, objectives)
		byMean, byDeviation := make([]float64, objectives), make([]float64, objectives)
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				e.Log(mean, deviation, byMean, byDeviation)
			}
		})
	}
}
