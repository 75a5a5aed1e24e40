package cma

import "math"

// Parameters are the constants of the strategy, which depend on the number of
// dimensions and the population alone (Hansen, "The CMA evolution strategy: a
// tutorial", arXiv 1604.00772, table 1).
type Parameters struct {
	// Population is how many results make a generation, Parents how many of
	// them move the mean.
	Population, Parents int
	// Weights of the results, best first: the first Parents sum to 1, the last
	// ones are negative and shrink the variance where results were poor.
	Weights []float64
	// MuEff is the variance-effective number of parents.
	MuEff float64
	// Learning rates: of the step size's path and its damping, of the
	// covariance's path, of the rank-one and the rank-mu update.
	CSigma, DSigma, CC, C1, CMu float64
	// Chi is the mean length of a standard normal vector.
	Chi float64
}

// DefaultPopulation is 4 + 3 log d, rounded down.
func DefaultPopulation(dimensions int) int {
	return 4 + int(3*math.Log(float64(max(1, dimensions))))
}

// NewParameters gives the constants. Both numbers must be positive; a
// population below 2 is taken as 2. A separable strategy learns (d+2)/3 times
// faster, as it has fewer variances to learn (Ros and Hansen, "A simple
// modification in CMA-ES achieving linear time and space complexity", 2008).
func NewParameters(dimensions, population int, separable bool) Parameters {
	population = max(2, population)
	d, parents := float64(dimensions), population/2
	raw := make([]float64, population)
	for i := range raw {
		raw[i] = math.Log((float64(population)+1)/2) - math.Log(float64(i+1))
	}
	effective := func(w []float64) float64 {
		sum, squares := 0.0, 0.0
		for _, v := range w {
			sum += v
			squares += v * v
		}
		if squares == 0 {
			return 1
		}
		return sum * sum / squares
	}
	mu, muMinus := effective(raw[:parents]), effective(raw[parents:])
	p := Parameters{Population: population, Parents: parents, Weights: raw, MuEff: mu}
	p.C1 = 2 / ((d+1.3)*(d+1.3) + mu)
	p.CMu = 2 * (mu - 2 + 1/mu) / ((d+2)*(d+2) + mu)
	if separable {
		p.C1, p.CMu = math.Min(0.5, p.C1*(d+2)/3), p.CMu*(d+2)/3
	}
	p.CMu = math.Max(0, math.Min(1-p.C1-1e-8, p.CMu))
	p.CSigma = (mu + 2) / (d + mu + 5)
	p.DSigma = 1 + 2*math.Max(0, math.Sqrt((mu-1)/(d+1))-1) + p.CSigma
	p.CC = (4 + mu/d) / (d + 4 + 2*mu/d)
	p.Chi = math.Sqrt(d) * (1 - 1/(4*d) + 1/(21*d*d))
	p.scale(muMinus, d)
	return p
}

// scale makes the positive weights sum to 1, and the negative ones to what
// keeps the covariance positive definite (tutorial, equations 49 to 53).
func (p *Parameters) scale(muMinus, d float64) {
	negative := 1 + 2*muMinus/(p.MuEff+2)
	if p.CMu > 0 {
		negative = math.Min(negative, math.Min(1+p.C1/p.CMu, (1-p.C1-p.CMu)/(d*p.CMu)))
	}
	above, below := 0.0, 0.0
	for _, w := range p.Weights {
		above += math.Max(0, w)
		below += math.Max(0, -w)
	}
	for i, w := range p.Weights {
		if w >= 0 {
			p.Weights[i] = w / above
		} else {
			p.Weights[i] = negative * w / below
		}
	}
}
