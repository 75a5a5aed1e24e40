package cma

import (
	"math"
	"slices"

	"github.com/vernier-ml/vernier/suggest/numeric/box"
)

// WarmStart is where to begin after a search whose best rows, a tenth of all,
// are given (Nomura, Watanabe, Akimoto, Ozaki and Onishi, "Warm starting CMA-ES
// for hyperparameter optimization", 2021, section 4): their mean, and their
// covariance plus 0.1 squared in each direction. Of a single row, only the mean
// is known. NaN is taken as the mean of the others, or the middle.
func WarmStart(dims []box.Dim, rows [][]float64) *Start {
	s := &Start{Mean: make([]float64, len(dims))}
	var numbers []int
	for i, dim := range dims {
		s.Mean[i] = average(rows, i)
		switch {
		case constant(dim): // no model has it
		case dim.Kind != box.Choice:
			numbers = append(numbers, i)
		default:
			s.Probabilities = append(s.Probabilities, frequencies(rows, i, dim.Count))
		}
	}
	if len(rows) > 1 && len(numbers) > 0 {
		s.spread(rows, numbers)
	}
	return s
}

func average(rows [][]float64, i int) float64 {
	sum, n := 0.0, 0
	for _, row := range rows {
		if !math.IsNaN(row[i]) {
			sum += row[i]
			n++
		}
	}
	if n == 0 {
		return 0.5
	}
	return sum / float64(n)
}

// frequencies of the choices, with one more row that has all equally.
func frequencies(rows [][]float64, i, count int) []float64 {
	q := slices.Repeat([]float64{1 / float64(count)}, count)
	total := 1.0
	for _, row := range rows {
		if v := row[i]; v >= 0 && v < float64(count) {
			q[int(v)]++
			total++
		}
	}
	for k := range q {
		q[k] /= total
	}
	return q
}

// spread sets Sigma and Covariance, of determinant 1.
func (s *Start) spread(rows [][]float64, numbers []int) {
	const alpha = 0.1
	d := len(numbers)
	s.Covariance = make([]float64, d*d)
	for _, row := range rows {
		for a, i := range numbers {
			for b, j := range numbers {
				x, y := row[i]-s.Mean[i], row[j]-s.Mean[j]
				if !math.IsNaN(x) && !math.IsNaN(y) {
					s.Covariance[a*d+b] += x * y / float64(len(rows))
				}
			}
		}
	}
	for a := range d {
		s.Covariance[a*d+a] += alpha * alpha
	}
	g := newGaussian(make([]float64, d), 1, s.Covariance, false)
	logs := 0.0
	for _, root := range g.root {
		logs += math.Log(root)
	}
	s.Sigma = math.Exp(logs / float64(d))
	for k := range s.Covariance {
		s.Covariance[k] /= s.Sigma * s.Sigma
	}
}
