package problem

import (
	"math"

	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

// The functions of this file follow the public definitions of Hansen, Finck,
// Ros and Auger, "Real-parameter black-box optimization benchmarking 2009:
// noiseless functions definitions" (INRIA RR-6829), with rotations and optima
// of our own: they are not COCO's instances. The box is [-5, 5]^n and the
// minimum is 0.

// bbob is one function in one dimension.
type bbob struct {
	n       int
	optimum []float64
	r, q    [][]float64
}

// bbobFunction builds a function and says where its optimum is.
type bbobFunction struct {
	name  string
	build func(b *bbob, stream *rng.Stream) func(x []float64) float64
}

func bbobFunctions() []bbobFunction {
	return []bbobFunction{
		{"f1", bbobSphere}, {"f2", bbobEllipsoid}, {"f6", bbobSector}, {"f8", bbobRosenbrock},
		{"f10", bbobRotatedEllipsoid}, {"f12", bbobCigar}, {"f15", bbobRastrigin}, {"f16", bbobWeierstrass},
		{"f17", bbobSchaffers}, {"f20", bbobSchwefel}, {"f21", bbobPeaks101}, {"f22", bbobPeaks21},
	}
}

func bbobProblems() []*Problem {
	var out []*Problem
	for _, f := range bbobFunctions() {
		for _, n := range []int{3, 10} {
			out = append(out, bbobProblem(f, n))
		}
	}
	return out
}

func bbobProblem(f bbobFunction, n int) *Problem {
	draw := func(stream *rng.Stream) *Problem { return bbobDrawn(f, n, stream) }
	p := draw(rng.New(0, "problem", n, "bbob "+f.name))
	p.drawn = draw
	return p
}

// bbobDrawn draws the place of the optimum, in the central 80 % of the box, and the rotations.
func bbobDrawn(f bbobFunction, n int, stream *rng.Stream) *Problem {
	b := &bbob{n: n, optimum: make([]float64, n)}
	for i := range b.optimum {
		b.optimum[i] = 8*stream.Float64() - 4
	}
	b.r, b.q = rotation(n, stream), rotation(n, stream)
	loss := f.build(b, stream)
	return real{name: sized("bbob-"+f.name, n), family: "bbob-" + f.name, n: n, low: -5, high: 5, f: loss, solution: b.optimum}.problem(Continuous)
}

// rotation is a random orthogonal matrix: normals, orthogonalised row by row.
func rotation(n int, stream *rng.Stream) [][]float64 {
	m := make([][]float64, n)
	for i := range m {
		row := make([]float64, n)
		for j := range row {
			row[j] = stream.NormFloat64()
		}
		for range 2 { // twice is enough for orthogonality to rounding
			for _, other := range m[:i] {
				d := dot(row, other)
				for j := range row {
					row[j] -= d * other[j]
				}
			}
		}
		scale := 1 / math.Sqrt(dot(row, row))
		for j := range row {
			row[j] *= scale
		}
		m[i] = row
	}
	return m
}

func dot(a, b []float64) float64 {
	sum := 0.0
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

func times(m [][]float64, x []float64) []float64 {
	out := make([]float64, len(m))
	for i := range m {
		out[i] = dot(m[i], x)
	}
	return out
}

// from is x seen from the optimum.
func (b *bbob) from(x []float64) []float64 {
	z := make([]float64, b.n)
	for i := range z {
		z[i] = x[i] - b.optimum[i]
	}
	return z
}

// part is i/(n-1), the exponent of what grows along the coordinates.
func (b *bbob) part(i int) float64 { return float64(i) / float64(b.n-1) }

// lambda is the diagonal matrix with condition alpha, applied to z.
func (b *bbob) lambda(alpha float64, z []float64) []float64 {
	for i := range z {
		z[i] *= math.Pow(alpha, b.part(i)/2)
	}
	return z
}

// oscillate is T_osz: smooth, local irregularities.
func oscillate(z []float64) []float64 {
	for i := range z {
		z[i] = oscillated(z[i])
	}
	return z
}

func oscillated(x float64) float64 {
	if x == 0 {
		return 0
	}
	c1, c2 := 5.5, 3.1
	if x > 0 {
		c1, c2 = 10, 7.9
	}
	h := math.Log(math.Abs(x))
	return math.Copysign(math.Exp(h+0.049*(math.Sin(c1*h)+math.Sin(c2*h))), x)
}

// tilt is T_asy with the parameter beta: it breaks the symmetry.
func (b *bbob) tilt(beta float64, z []float64) []float64 {
	for i := range z {
		if z[i] > 0 {
			z[i] = math.Pow(z[i], 1+beta*b.part(i)*math.Sqrt(z[i]))
		}
	}
	return z
}

func bbobSphere(b *bbob, _ *rng.Stream) func([]float64) float64 {
	return func(x []float64) float64 { return sphere(b.from(x)) }
}

func (b *bbob) ellipsoid(z []float64) float64 {
	sum := 0.0
	for i, v := range z {
		sum += math.Pow(1e6, b.part(i)) * v * v
	}
	return sum
}

func bbobEllipsoid(b *bbob, _ *rng.Stream) func([]float64) float64 {
	return func(x []float64) float64 { return b.ellipsoid(oscillate(b.from(x))) }
}

func bbobRotatedEllipsoid(b *bbob, _ *rng.Stream) func([]float64) float64 {
	return func(x []float64) float64 { return b.ellipsoid(oscillate(times(b.r, b.from(x)))) }
}

func bbobSector(b *bbob, _ *rng.Stream) func([]float64) float64 {
	return func(x []float64) float64 {
		sum := 0.0
		for i, v := range times(b.q, b.lambda(10, times(b.r, b.from(x)))) {
			if v*b.optimum[i] > 0 {
				v *= 100
			}
			sum += v * v
		}
		return math.Pow(oscillated(sum), 0.9)
	}
}

func bbobRosenbrock(b *bbob, _ *rng.Stream) func([]float64) float64 {
	for i := range b.optimum {
		b.optimum[i] *= 0.75
	}
	scale := math.Max(1, math.Sqrt(float64(b.n))/8)
	return func(x []float64) float64 {
		z := b.from(x)
		for i := range z {
			z[i] = scale*z[i] + 1
		}
		return rosenbrock(z)
	}
}

func bbobCigar(b *bbob, _ *rng.Stream) func([]float64) float64 {
	return func(x []float64) float64 {
		z := times(b.r, b.tilt(0.5, times(b.r, b.from(x))))
		return z[0]*z[0] + 1e6*sphere(z[1:])
	}
}

func bbobRastrigin(b *bbob, _ *rng.Stream) func([]float64) float64 {
	return func(x []float64) float64 {
		z := b.tilt(0.2, oscillate(times(b.r, b.from(x))))
		return rastrigin(times(b.r, b.lambda(10, times(b.q, z))))
	}
}
