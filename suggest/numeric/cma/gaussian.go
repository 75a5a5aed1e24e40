package cma

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/lapack"
	"gonum.org/v1/gonum/lapack/lapack64"
)

// gaussian is a multivariate normal distribution that learns. Samples are
// mean + sigma*margin*y with y of covariance c, per dimension.
type gaussian struct {
	d         int
	separable bool
	mean      []float64
	sigma     float64
	margin    []float64 // widens ordered dimensions; 1 elsewhere
	c         []float64 // covariance, row-major; its diagonal when separable
	b, root   []float64 // eigenvectors as columns, row-major, and roots of the eigenvalues
	pathSigma []float64
	pathC     []float64
	updates   int
}

func newGaussian(mean []float64, sigma float64, covariance []float64, separable bool) *gaussian {
	d := len(mean)
	g := &gaussian{
		d: d, separable: separable, mean: slices.Clone(mean), sigma: sigma,
		margin: slices.Repeat([]float64{1}, d), pathSigma: make([]float64, d), pathC: make([]float64, d),
		root: make([]float64, d),
	}
	g.c = make([]float64, d)
	if !separable {
		g.c, g.b = make([]float64, d*d), make([]float64, d*d)
	}
	for i := range d {
		for j := range d {
			v := 0.0
			switch {
			case covariance != nil:
				v = covariance[i*d+j]
			case i == j:
				v = 1
			}
			if !separable {
				g.c[i*d+j] = v
			} else if i == j {
				g.c[i] = v
			}
		}
	}
	g.decompose()
	return g
}

func (g *gaussian) clone() *gaussian {
	c := *g
	for _, s := range []*[]float64{&c.mean, &c.margin, &c.c, &c.b, &c.root, &c.pathSigma, &c.pathC} {
		*s = slices.Clone(*s)
	}
	return &c
}

// variance of dimension i, without sigma and margin.
func (g *gaussian) variance(i int) float64 {
	if g.separable {
		return g.c[i]
	}
	return g.c[i*g.d+i]
}

// deviation is the standard deviation of the samples in dimension i.
func (g *gaussian) deviation(i int) float64 {
	return g.sigma * g.margin[i] * math.Sqrt(g.variance(i))
}

// least bounds the eigenvalues from below, in parts of the largest one, where
// rounding made them negative.
const least = 1e-16

// decompose renews the eigenvectors and eigenvalues.
func (g *gaussian) decompose() {
	if g.separable {
		for i, v := range g.c {
			g.root[i] = math.Sqrt(math.Max(v, math.SmallestNonzeroFloat64))
		}
		return
	}
	copy(g.b, g.c)
	a := blas64.Symmetric{N: g.d, Stride: g.d, Uplo: blas.Upper, Data: g.b}
	work := make([]float64, 1)
	lapack64.Syev(lapack.EVCompute, a, g.root, work, -1)
	work = make([]float64, int(work[0]))
	if !lapack64.Syev(lapack.EVCompute, a, g.root, work, len(work)) {
		g.forget()
		return
	}
	floor := least * math.Max(g.root[g.d-1], math.SmallestNonzeroFloat64/least)
	for i, v := range g.root {
		g.root[i] = math.Sqrt(math.Max(v, floor))
	}
}

// forget makes the covariance the identity: what is left when it is not finite.
func (g *gaussian) forget() {
	clear(g.c)
	clear(g.b)
	for i := range g.d {
		g.root[i] = 1
		if g.separable {
			g.c[i] = 1
		} else {
			g.c[i*g.d+i], g.b[i*g.d+i] = 1, 1
		}
	}
}

// colour turns standard normals z into a vector of covariance c.
func (g *gaussian) colour(z, y []float64) {
	if g.separable {
		for i := range y {
			y[i] = g.root[i] * z[i]
		}
		return
	}
	clear(y)
	for k := range z {
		z[k] *= g.root[k]
	}
	for i := range y {
		y[i] = floats.Dot(g.b[i*g.d:(i+1)*g.d], z)
	}
}

// whiten is c^(-1/2) y. scratch has d numbers.
func (g *gaussian) whiten(y, scratch, z []float64) {
	if g.separable {
		for i := range z {
			z[i] = y[i] / g.root[i]
		}
		return
	}
	g.turn(y, scratch)
	for i := range z {
		z[i] = floats.Dot(g.b[i*g.d:(i+1)*g.d], scratch)
	}
}

// turn is y in the eigenvectors' coordinates, in standard deviations.
func (g *gaussian) turn(y, out []float64) {
	clear(out)
	for i, v := range y {
		for k, b := range g.b[i*g.d : (i+1)*g.d] {
			out[k] += b * v
		}
	}
	for k := range out {
		out[k] /= g.root[k]
	}
}

// length is the Mahalanobis length of y.
func (g *gaussian) length(y, scratch []float64) float64 {
	if g.separable {
		for i := range y {
			scratch[i] = y[i] / g.root[i]
		}
	} else {
		g.turn(y, scratch)
	}
	return math.Sqrt(floats.Dot(scratch, scratch))
}

// step is one result: y of a sample, best first, and its weights.
type step struct {
	y []float64
	// mean is the weight in the mean's move, covariance that in the covariance's.
	mean, covariance float64
}

// update moves the distribution towards the better results (tutorial, section
// 5, equations 41 to 47).
func (g *gaussian) update(steps []step, p Parameters) {
	g.updates++
	move, scratch, white := make([]float64, g.d), make([]float64, g.d), make([]float64, g.d)
	for _, s := range steps {
		for i := range move {
			move[i] += s.mean * s.y[i]
		}
	}
	for i := range g.mean {
		g.mean[i] += g.sigma * g.margin[i] * move[i]
	}
	g.whiten(move, scratch, white)
	keep, add := 1-p.CSigma, math.Sqrt(p.CSigma*(2-p.CSigma)*p.MuEff)
	for i := range g.pathSigma {
		g.pathSigma[i] = keep*g.pathSigma[i] + add*white[i]
	}
	norm := math.Sqrt(floats.Dot(g.pathSigma, g.pathSigma))
	h := 0.0 // stalls the covariance's path while the step size grows fast
	if norm/math.Sqrt(1-math.Pow(keep, 2*float64(g.updates+1))) < (1.4+2/(float64(g.d)+1))*p.Chi {
		h = 1
	}
	add = h * math.Sqrt(p.CC*(2-p.CC)*p.MuEff)
	for i := range g.pathC {
		g.pathC[i] = (1-p.CC)*g.pathC[i] + add*move[i]
	}
	g.learn(steps, p, (1-h)*p.CC*(2-p.CC), scratch)
	// At most e a generation, also with foreign results (Hansen, "Injecting
	// external solutions into CMA-ES", arXiv 1110.4181, equation 8).
	g.sigma *= math.Exp(math.Min(1, p.CSigma/p.DSigma*(norm/p.Chi-1)))
	g.tame()
}

// widen is for a generation that says nothing, as all results are equally good. Steps that
// cancel out would look too long, and the search would stay where it began (tutorial, appendix
// B.4: flat fitness). No standard deviation comes above most.
func (g *gaussian) widen(p Parameters, most float64) {
	wider := g.sigma * math.Exp(0.2+p.CSigma/p.DSigma)
	g.sigma = math.Max(g.sigma, math.Min(wider, most/slices.Max(g.root)))
	g.tame()
}

// learn updates the covariance; stalled makes up for a stalled path.
func (g *gaussian) learn(steps []step, p Parameters, stalled float64, scratch []float64) {
	sum := 0.0
	scaled := make([]float64, len(steps))
	for k, s := range steps {
		sum += s.covariance
		scaled[k] = p.CMu * s.covariance
		if s.covariance < 0 {
			length := g.length(s.y, scratch)
			scaled[k] *= float64(g.d) / (length*length + 1e-8)
		}
	}
	keep := 1 + p.C1*stalled - p.C1 - p.CMu*sum
	if g.separable {
		for i := range g.c {
			g.c[i] = keep*g.c[i] + p.C1*g.pathC[i]*g.pathC[i]
			for k, s := range steps {
				g.c[i] += scaled[k] * s.y[i] * s.y[i]
			}
		}
		return
	}
	for i := range g.d {
		row := g.c[i*g.d : (i+1)*g.d]
		one := p.C1 * g.pathC[i]
		for j := i; j < g.d; j++ {
			row[j] = keep*row[j] + one*g.pathC[j]
		}
		for k, s := range steps {
			w := scaled[k] * s.y[i]
			for j := i; j < g.d; j++ {
				row[j] += w * s.y[j]
			}
		}
		for j := i + 1; j < g.d; j++ {
			g.c[j*g.d+i] = row[j]
		}
	}
}

// tame keeps the distribution within a box of side 1: no standard deviation
// above 1, none that is lost beside the mean, and all finite.
func (g *gaussian) tame() {
	g.decompose()
	most := slices.Max(g.root)
	if math.IsNaN(most) || math.IsInf(most, 0) || most == 0 {
		g.forget()
		most = 1
	}
	g.sigma = math.Max(1e-20/most, math.Min(g.sigma, 1/most))
}
