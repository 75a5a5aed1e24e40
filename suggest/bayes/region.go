package bayes

import (
	"math"

	"github.com/vernier-ml/vernier/suggest/numeric/box"
	"github.com/vernier-ml/vernier/suggest/numeric/gp"
)

// A trust region (TuRBO: Eriksson et al., "Scalable global optimization via
// local Bayesian optimization", NeurIPS 2019) holds each second trial in many
// dimensions near the best one.
const (
	regionDims    = 20  // above so many numeric dimensions
	regionStart   = 0.8 // side lengths, of the whole range
	regionLargest = 1.6
	regionLeast   = 1.0 / 128
	regionBetter  = 3 // improvements in a row that double it
)

// region is the box around the centre for the trial with the given number; nil
// when the whole space should be searched.
func region(number int, dims []box.Dim, theta gp.Theta, centre, losses []float64) (low, high []float64) {
	numeric, logs := 0, 0.0
	for d := range dims {
		if dims[d].Kind != box.Choice {
			numeric++
			logs += theta[d]
		}
	}
	if numeric <= regionDims || number/2%2 == 1 {
		return nil, nil
	}
	side := regionSide(losses, numeric)
	low, high = make([]float64, len(dims)), make([]float64, len(dims))
	for d, x := range centre {
		low[d], high[d] = 0, 1
		if dims[d].Kind != box.Choice && x == x {
			half := side / 2 * math.Exp(theta[d]-logs/float64(numeric))
			low[d], high[d] = math.Max(0, x-half), math.Min(1, x+half)
		}
	}
	return low, high
}

// regionSide follows the losses in order of the trials: longer after a run of
// improvements, shorter after a run of none, and from the start when it has
// become too short.
func regionSide(losses []float64, dims int) float64 {
	patience := max(5, dims/4)
	side, best := regionStart, math.Inf(1)
	better, worse := 0, 0
	for _, loss := range losses {
		if loss < best-1e-3*math.Abs(best) || math.IsInf(best, 1) {
			better, worse = better+1, 0
		} else {
			better, worse = 0, worse+1
		}
		best = math.Min(best, loss)
		switch {
		case better == regionBetter:
			side, better = math.Min(2*side, regionLargest), 0
		case worse == patience:
			side, worse = side/2, 0
		}
		if side < regionLeast {
			side = regionStart
		}
	}
	return side
}
