package gp

import (
	"math"

	"gonum.org/v1/gonum/floats"

	"github.com/vernier-ml/vernier/suggest/numeric/normal"
)

// Utility is what a point is worth, from the posteriors of some models there:
// larger is better. The derivatives are written to dMean and dVariance.
type Utility interface {
	Value(mean, variance, dMean, dVariance []float64) float64
}

// Predictor predicts outcomes at rows: a Model, or another kind of model in its place.
type Predictor interface {
	Predict(rows [][]float64, gradient bool) Prediction
}

// Acquisition is a utility over the posteriors of models.
type Acquisition struct {
	// Models, one for each mean that the utility wants.
	Models []Predictor
	// Utility of their posteriors.
	Utility Utility
	// Offset is added to the mean of the first model, unless it is nil: a prior
	// mean. It gives the values at rows, and their gradients when asked for.
	Offset func(rows [][]float64, gradient bool) (values, gradients []float64)
}

// Values of rows, and, when asked for, their gradients: one element for each
// row and dimension.
func (a *Acquisition) Values(rows [][]float64, gradient bool) (values, gradients []float64) {
	predictions := make([]Prediction, len(a.Models))
	for i, m := range a.Models {
		predictions[i] = m.Predict(rows, gradient)
	}
	if a.Offset != nil {
		offsets, slopes := a.Offset(rows, gradient)
		floats.Add(predictions[0].Mean, offsets)
		if gradient {
			floats.Add(predictions[0].MeanGradient, slopes)
		}
	}
	count := len(a.Models)
	buf := make([]float64, 4*count)
	mean, variance, dMean, dVariance := buf[:count], buf[count:2*count], buf[2*count:3*count], buf[3*count:]
	values = make([]float64, len(rows))
	dims := 0
	if gradient && len(rows) > 0 {
		dims = len(rows[0])
		gradients = make([]float64, len(rows)*dims)
	}
	for i := range rows {
		for k, p := range predictions {
			mean[k], variance[k] = p.Mean[i], p.Variance[i]
		}
		clear(dMean)
		clear(dVariance)
		values[i] = a.Utility.Value(mean, variance, dMean, dVariance)
		if !gradient {
			continue
		}
		out := gradients[i*dims : (i+1)*dims]
		for k, p := range predictions {
			for d := range out {
				out[d] += dMean[k]*p.MeanGradient[i*dims+d] + dVariance[k]*p.VarianceGradient[i*dims+d]
			}
		}
	}
	return values, gradients
}

// Improvement is the logarithm of the expected improvement over the Best value
// (Ament et al., "Unexpected improvements to expected improvement", NeurIPS
// 2023).
type Improvement struct{ Best float64 }

// Value implements Utility for one model.
func (u Improvement) Value(mean, variance, dMean, dVariance []float64) float64 {
	s := math.Sqrt(variance[0])
	logH, below, density := normal.LogImprovement((u.Best - mean[0]) / s)
	dMean[0] = -below / s
	dVariance[0] = density / (2 * variance[0])
	return logH + math.Log(s)
}

// ProbableImprovement is the logarithm of the probability of a value below
// Best.
type ProbableImprovement struct{ Best float64 }

// Value implements Utility for one model.
func (u ProbableImprovement) Value(mean, variance, dMean, dVariance []float64) float64 {
	return logProbability(u.Best, 0, mean, variance, dMean, dVariance)
}

// LowerBound is the confidence bound: how low the value may be, Beta standard
// deviations below the mean.
type LowerBound struct{ Beta float64 }

// Value implements Utility for one model.
func (u LowerBound) Value(mean, variance, dMean, dVariance []float64) float64 {
	s := math.Sqrt(variance[0])
	dMean[0] = -1
	dVariance[0] = u.Beta / (2 * s)
	return u.Beta*s - mean[0]
}

// Exploration looks for the largest standard deviation among points that may
// be good: it takes 10 off for each unit by which the lower bound is above
// Threshold (pure exploration as in Song et al., arXiv 2408.11527, section
// 3.5).
type Exploration struct{ Threshold float64 }

// Value implements Utility for one model.
func (u Exploration) Value(mean, variance, dMean, dVariance []float64) float64 {
	const penalty, width = 10, 0.5
	s := math.Sqrt(variance[0])
	dVariance[0] = 1 / (2 * s)
	over := mean[0] - width*s - u.Threshold
	if over <= 0 {
		return s
	}
	dMean[0] = -penalty
	dVariance[0] += penalty * width / (2 * s)
	return s - penalty*over
}

// Bounded adds to the utility of the first models the logarithms of the
// probabilities that the others are at most their limit: constrained expected
// improvement (Gardner et al., "Bayesian optimization with inequality
// constraints", ICML 2014), and the chance that a trial does not fail.
type Bounded struct {
	// Utility of the first models; nil: none, while nothing is known that holds
	// the limits.
	Utility Utility
	// Limits of the last models.
	Limits []float64
	// Blurs are variances that are added to those of the last models.
	Blurs []float64
	// Weights multiply the logarithms of the probabilities.
	Weights []float64
}

// Value implements Utility.
func (u Bounded) Value(mean, variance, dMean, dVariance []float64) float64 {
	value, first := 0.0, len(mean)-len(u.Limits)
	if u.Utility != nil {
		value = u.Utility.Value(mean[:first], variance[:first], dMean[:first], dVariance[:first])
	}
	for i, limit := range u.Limits {
		k := first + i
		value += u.Weights[i] * logProbability(limit, u.Blurs[i], mean[k:], variance[k:], dMean[k:], dVariance[k:])
		dMean[k] *= u.Weights[i]
		dVariance[k] *= u.Weights[i]
	}
	return value
}

// PerCost takes from a utility that is a logarithm the expected logarithm of the cost, of
// which the last model is one: expected improvement per second (Snoek, Larochelle and
// Adams, "Practical Bayesian optimization of machine learning algorithms", NIPS 2012,
// section 3.2).
type PerCost struct {
	// Utility of the other models.
	Utility Utility
	// Scale is what the model's unit is in the logarithm of the cost.
	Scale float64
}

// Value implements Utility.
func (u PerCost) Value(mean, variance, dMean, dVariance []float64) float64 {
	last := len(mean) - 1
	dMean[last] = -u.Scale
	return u.Utility.Value(mean[:last], variance[:last], dMean[:last], dVariance[:last]) - u.Scale*mean[last]
}

// logProbability of the first mean being below a limit.
func logProbability(limit, blur float64, mean, variance, dMean, dVariance []float64) float64 {
	v := variance[0] + blur
	s := math.Sqrt(v)
	z := (limit - mean[0]) / s
	logP := normal.LogBelow(z)
	slope := math.Exp(normal.LogDensity(z) - logP)
	dMean[0] = -slope / s
	dVariance[0] = -slope * z / (2 * v)
	return logP
}
