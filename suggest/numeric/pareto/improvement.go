package pareto

import (
	"math"
	"slices"

	"github.com/vernier-ml/vernier/suggest/numeric/normal"
)

// Improvement is the expected hypervolume improvement (EHVI): by how much the
// hypervolume of a front grows, on average, with a point whose objectives are
// independent normals. It is exact: the improvement is a sum over Boxes, in
// each of which it is a product of one factor for each objective, and the mean
// of a factor is a difference of two one-dimensional expected improvements
// (Yang et al. 2019, equation 13). All is done on logarithms, so that there is
// a gradient to follow where the value itself underflows (Ament et al.,
// "Unexpected improvements to expected improvement", 2023).
//
// It is not safe for use from several goroutines at once.
type Improvement struct {
	levels  [][]float64 // for each objective, the different ends of boxes, ascending
	boxes   [][]side    // for each box, one side for each objective
	terms   []float64   // of each box, while computing
	factors [][]factor  // of each side, while computing
	at      [][]moment  // of each level, while computing
}

// side is the positions of a box's ends in levels; low is -1 for -Inf.
type side struct{ low, high int }

// factor is the logarithm of the mean of a box's side, and its derivatives.
type factor struct{ log, mean, deviation float64 }

// NewImprovement is the improvement over the points' front, within ref, which
// must be finite and have one, two or three objectives.
func NewImprovement(points [][]float64, ref []float64) *Improvement {
	boxes := Boxes(points, ref)
	e := &Improvement{levels: make([][]float64, len(ref))}
	for j := range e.levels {
		for _, b := range boxes {
			e.levels[j] = append(e.levels[j], b.High[j])
			if !math.IsInf(b.Low[j], -1) {
				e.levels[j] = append(e.levels[j], b.Low[j])
			}
		}
		slices.Sort(e.levels[j])
		e.levels[j] = slices.Compact(e.levels[j])
	}
	for _, b := range boxes {
		sides := make([]side, len(ref))
		for j := range sides {
			sides[j].low = -1
			if !math.IsInf(b.Low[j], -1) {
				sides[j].low, _ = slices.BinarySearch(e.levels[j], b.Low[j])
			}
			sides[j].high, _ = slices.BinarySearch(e.levels[j], b.High[j])
		}
		e.boxes = append(e.boxes, sides)
	}
	e.terms = make([]float64, len(e.boxes))
	for range e.boxes {
		e.factors = append(e.factors, make([]factor, len(e.levels)))
	}
	for _, levels := range e.levels {
		e.at = append(e.at, make([]moment, len(levels)))
	}
	return e
}

// Log is the logarithm of the expected improvement with the given mean and
// standard deviation (positive) of each objective. Its derivatives go to
// byMean and byDeviation, unless they are nil.
func (e *Improvement) Log(mean, deviation, byMean, byDeviation []float64) float64 {
	for j, levels := range e.levels {
		for k, level := range levels {
			e.at[j][k] = momentAt(level, mean[j], deviation[j])
		}
	}
	most := math.Inf(-1)
	for i, sides := range e.boxes {
		e.terms[i] = 0
		for j, s := range sides {
			f := e.factor(j, s, deviation[j])
			e.factors[i][j] = f
			e.terms[i] += f.log
		}
		most = math.Max(most, e.terms[i])
	}
	return e.sum(most, byMean, byDeviation)
}

// sum adds the terms up; most is the largest of their logarithms.
func (e *Improvement) sum(most float64, byMean, byDeviation []float64) float64 {
	clear(byMean)
	clear(byDeviation)
	if math.IsInf(most, -1) {
		return most
	}
	total := 0.0
	for i, term := range e.terms {
		weight := math.Exp(term - most)
		if weight == 0 {
			continue
		}
		total += weight
		for j := range byMean {
			byMean[j] += weight * e.factors[i][j].mean
		}
		for j := range byDeviation {
			byDeviation[j] += weight * e.factors[i][j].deviation
		}
	}
	for j := range byMean {
		byMean[j] /= total
	}
	for j := range byDeviation {
		byDeviation[j] /= total
	}
	return most + math.Log(total)
}

func (e *Improvement) factor(objective int, s side, deviation float64) factor {
	high := e.at[objective][s.high]
	if s.low < 0 {
		return factor{log: high.log, mean: -high.below / deviation, deviation: high.density / deviation}
	}
	low := e.at[objective][s.low]
	width := math.Min((e.levels[objective][s.high]-e.levels[objective][s.low])/deviation, 2*furthest)
	switch {
	case width*(1+math.Max(0, -low.z)) < 1e-2:
		return narrow((low.z+high.z)/2, width, deviation)
	case low.z >= 0:
		return upper(low.z, high.z, width, deviation)
	}
	ratio := math.Exp(low.log - high.log)
	rest := -math.Expm1(low.log - high.log)
	return factor{
		log:       high.log + math.Log(rest),
		mean:      -(high.below - ratio*low.below) / (rest * deviation),
		deviation: (high.density - ratio*low.density) / (rest * deviation),
	}
}

// moment is the one-dimensional expected improvement below a level.
type moment struct {
	z              float64 // how many standard deviations the level is above the mean
	log            float64 // of the expected improvement
	below, density float64 // at z, in units of the expected improvement of a standard normal
}

// furthest keeps the squares of z within a float64.
const furthest = 1e100

func momentAt(level, mean, deviation float64) moment {
	z := math.Max(-furthest, math.Min((level-mean)/deviation, furthest))
	log, below, density := normal.LogImprovement(z)
	return moment{z: z, log: log + math.Log(deviation), below: below, density: density}
}

// narrow is the factor of a side so short that the difference of two expected
// improvements would lose its digits: by the midpoint rule for the integral of
// the distribution function, with its second-order term.
func narrow(z, width, deviation float64) factor {
	lambda := math.Exp(normal.LogDensity(z) - normal.LogBelow(z))
	if z < -5 {
		lambda = 1 / normal.Mills(-z)
	}
	second := width * width / 24
	integral := 1 - second*z*lambda
	return factor{
		log:       math.Log(width) + math.Log(deviation) + normal.LogBelow(z) + math.Log(integral),
		mean:      -lambda * (1 + second*(z*z-1)) / (integral * deviation),
		deviation: -z * lambda * (1 + second*(z*z-3)) / (integral * deviation),
	}
}

// upper is the factor of a side above the mean, from the upper tails.
func upper(low, high, width, deviation float64) factor {
	tail := func(z float64) float64 {
		if z > 40 {
			return 0
		}
		return normal.Density(z) - z*normal.Below(-z)
	}
	integral := width - (tail(low) - tail(high))
	return factor{
		log:       math.Log(integral) + math.Log(deviation),
		mean:      -(normal.Below(-low) - normal.Below(-high)) / (integral * deviation),
		deviation: (normal.Density(high) - normal.Density(low)) / (integral * deviation),
	}
}
