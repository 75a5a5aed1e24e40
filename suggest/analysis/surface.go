package analysis

import (
	"fmt"
	"math"

	"github.com/vernier-ml/vernier/suggest"
)

const (
	// mostSmoothed bounds the results that a surface is made of, which are taken
	// evenly over the study.
	mostSmoothed = 2000
	// farthest is how many bandwidths the nearest result may be away, and between the
	// values of a parameter that has few, farthestOfFew.
	farthest, farthestOfFew = 1, 2
)

// Axis is where a surface is known along one parameter: at values of a numerical one,
// evenly spaced on its own scale, or at the words of a categorical one.
type Axis struct {
	Name   string
	Values []float64
	Words  []string
}

// Len is the number of places along the axis.
func (a Axis) Len() int { return max(len(a.Values), len(a.Words)) }

// Surface is an objective over two parameters.
type Surface struct {
	X, Y Axis
	// Z has a row for each place of Y with a value for each of X, as the user measured
	// them; NaN where no result is near.
	Z []float64
}

// Contour smooths the results over parameters x and y by a Gaussian kernel (Nadaraya
// and Watson, 1964) whose bandwidth follows Scott's rule for results that are spread
// evenly. Categories are not mixed. points is the number of places along a numerical
// axis, at least 2. Trials without one of the parameters do not count.
func Contour(s suggest.Study, objective int, x, y string, points int) (Surface, error) {
	all, _, err := enough(s, objective, leastResults, Level)
	if err != nil {
		return Surface{}, err
	}
	var axes [2]axis
	for i, name := range []string{x, y} {
		k, known := s.Space.Index(name)
		if !known {
			return Surface{}, fmt.Errorf("%q is no parameter of the study", name)
		}
		axes[i] = newAxis(s.Space.At(k), k, points)
	}
	type sample struct{ x, y, value float64 }
	var samples []sample
	for _, r := range thin(all, mostSmoothed) {
		if a, b := r.Point[axes[0].index], r.Point[axes[1].index]; a.IsSet() && b.IsSet() {
			samples = append(samples, sample{axes[0].place(a), axes[1].place(b), s.Objectives[objective].Loss(r.Losses[objective])})
		}
	}
	bandwidth := math.Pow(float64(max(1, len(samples))), -1.0/6) / math.Sqrt(12)
	out := Surface{X: axes[0].Axis, Y: axes[1].Axis}
	reach := float64(farthest)
	for _, name := range []string{out.X.Name, out.Y.Name} {
		if i, ok := s.Space.Index(name); ok && s.Space.At(i).Kind() != suggest.Double {
			reach = farthestOfFew
		}
	}
	for j := range out.Y.Len() {
		for i := range out.X.Len() {
			sum, weights, nearest := 0.0, 0.0, math.Inf(1)
			for _, p := range samples {
				d := math.Hypot(axes[0].distance(p.x, i), axes[1].distance(p.y, j)) / bandwidth
				w := math.Exp(-d * d / 2)
				sum, weights, nearest = sum+w*p.value, weights+w, math.Min(nearest, d)
			}
			if nearest > reach {
				sum = math.NaN()
			}
			out.Z = append(out.Z, sum/weights)
		}
	}
	return out, nil
}

// axis maps the values of a parameter to [0, 1], or to the index of a word.
type axis struct {
	Axis
	index     int
	parameter suggest.Parameter
}

func newAxis(p suggest.Parameter, index, points int) axis {
	a := axis{Axis: Axis{Name: p.Name()}, index: index, parameter: p}
	if p.Kind() == suggest.Categorical {
		a.Words = p.Choices()
		return a
	}
	for i := range points {
		a.Values = append(a.Values, a.value(float64(i)/float64(points-1)))
	}
	return a
}

func (a axis) logarithmic() bool {
	d := a.parameter.Distribution()
	return (d == suggest.LogUniform || d == suggest.LogNormal) && a.parameter.Min() > 0
}

// value is that at a place in [0, 1].
func (a axis) value(u float64) float64 {
	low, high := a.parameter.Min(), a.parameter.Max()
	if a.logarithmic() {
		return math.Exp(math.Log(low) + u*(math.Log(high)-math.Log(low)))
	}
	return low + u*(high-low)
}

// place is the inverse of value, or the index of a word.
func (a axis) place(v suggest.Value) float64 {
	if a.Words != nil {
		i, _ := v.Index()
		return float64(i)
	}
	low, high, x := a.parameter.Min(), a.parameter.Max(), v.Float()
	switch {
	case low == high:
		return 0
	case a.logarithmic():
		return (math.Log(x) - math.Log(low)) / (math.Log(high) - math.Log(low))
	}
	return (x - low) / (high - low)
}

// distance is how far a result is from place i of the axis.
func (a axis) distance(at float64, i int) float64 {
	if a.Words == nil {
		return at - float64(i)/float64(len(a.Values)-1)
	}
	if at == float64(i) {
		return 0
	}
	return math.Inf(1)
}
