// Package gp has Gaussian process regression over mixed spaces and the search
// for the point that is most worth trying next under it. The outcomes are
// losses: smaller is better.
package gp

import "github.com/vernier-ml/vernier/suggest/numeric/box"

// Layout says how the rows of a space become features, one for each dimension. An
// inactive coordinate (NaN) of a number lies in the middle of the active ones, and an
// inactive choice as far from each other choice: what a row is, its active coordinates
// say. A distance of its own between active and inactive ones would tell branches apart
// once more, by as many dimensions as depend on the branch, and what was learned in one
// branch would not count in the others.
type Layout struct {
	dims    []box.Dim
	numbers []int // dimensions of the features that are values; the trend sees these
	choices []int // dimensions of the features that follow
}

// NewLayout is for rows over the dimensions.
func NewLayout(dims []box.Dim) *Layout {
	l := &Layout{dims: dims}
	for d, dim := range dims {
		if dim.Kind == box.Choice {
			l.choices = append(l.choices, d)
		} else {
			l.numbers = append(l.numbers, d)
		}
	}
	return l
}

// Dims are the dimensions.
func (l *Layout) Dims() []box.Dim { return l.dims }

func (l *Layout) features() int { return len(l.numbers) + len(l.choices) }

// dimension of a feature.
func (l *Layout) dimension(f int) int {
	if f < len(l.numbers) {
		return l.numbers[f]
	}
	return l.choices[f-len(l.numbers)]
}

// inactive is the feature of an inactive choice.
const inactive = -1

// expand writes the features of a row, numbers in units of their lengthscales.
func (l *Layout) expand(row, inverse, features []float64) {
	for f, d := range l.numbers {
		x := row[d]
		if x != x {
			x = 0.5
		}
		features[f] = x * inverse[d]
	}
	features = features[len(l.numbers):]
	for f, d := range l.choices {
		features[f] = row[d]
		if row[d] != row[d] {
			features[f] = inactive
		}
	}
}

// apart is the squared distance of two features of a choice: choices are the corners of a
// simplex with edges of length 1, and inactive is its centre.
func (l *Layout) apart(d int, a, b float64) float64 {
	switch {
	case a == b:
		return 0
	case a == inactive || b == inactive:
		return (1 - 1/float64(l.dims[d].Count)) / 2
	}
	return 1
}
