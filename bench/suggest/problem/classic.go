package problem

import (
	"fmt"
	"math"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

// The formulas of this file are those of Surjanovic and Bingham's Virtual
// Library of Simulation Experiments. Functions that have their optimum in the
// middle of the box are moved, so that a first guess in the middle gains
// nothing.

// continuousProblems are the suite S1.
func continuousProblems() []*Problem {
	var out []*Problem
	for _, r := range classics() {
		p := r.problem(Continuous)
		if r.solution != nil {
			p.drawn = r.placed
		}
		out = append(out, p)
	}
	out = append(out, braninProblem(Continuous))
	return append(out, bbobProblems()...)
}

func braninProblem(suite string) *Problem {
	parameters := []suggest.ParameterSpec{double("x00", -5, 10), double("x01", 0, 15)}
	return &Problem{
		Name: "branin-2", Suite: suite, Family: "branin", Parameters: parameters,
		Truth:   single(func(p suggest.Point) float64 { return branin(p[0].Float(), p[1].Float()) }),
		Optimum: braninMinimum, At: assignments(parameters, "3.141592653589793", "2.275"),
	}
}

func classics() []real {
	out := []real{
		{"hartmann-6", "hartmann", 6, 0, 1, hartmann6, -3.322368011415515, []float64{0.20168951, 0.15001069, 0.47687398, 0.27533243, 0.31165162, 0.65730053}},
		{"griewank-6", "griewank", 6, -600, 600, moved(griewank, drawnShift("griewank", 6, 240)), 0, drawnShift("griewank", 6, 240)},
		{"rastrigin-5", "rastrigin", 5, -5.12, 5.12, moved(rastrigin, drawnShift("rastrigin", 5, 2)), 0, drawnShift("rastrigin", 5, 2)},
		{"michalewicz-10", "michalewicz", 10, 0, math.Pi, michalewicz, -9.6601517156413, nil},
		{"styblinski-8", "styblinski", 8, -5, 5, styblinski, -8 * 39.16616570377142, same(8, -2.9035340276126953)},
		{"sphere-10", "sphere", 10, -5, 5, moved(sphere, same(10, 1)), 0, same(10, 1)},
	}
	for _, n := range []int{2, 10, 20} {
		out = append(out, real{sized("ackley", n), "ackley", n, -32.768, 32.768, moved(ackley, same(n, 3.1)), 0, same(n, 3.1)})
	}
	for _, n := range []int{4, 8, 20} {
		out = append(out, real{sized("levy", n), "levy", n, -10, 10, levy, 0, same(n, 1)})
	}
	for _, n := range []int{2, 5, 10} {
		out = append(out, real{sized("rosenbrock", n), "rosenbrock", n, -5, 10, rosenbrock, 0, same(n, 1)})
	}
	return out
}

func sized(name string, n int) string { return fmt.Sprintf("%s-%d", name, n) }

func same(n int, x float64) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = x
	}
	return out
}

// moved is f with its origin at shift.
func moved(f func([]float64) float64, shift []float64) func([]float64) float64 {
	return func(x []float64) float64 {
		z := make([]float64, len(x))
		for i := range x {
			z[i] = x[i] - shift[i]
		}
		return f(z)
	}
}

// placed is the problem with its optimum at a random place in the central 80 % of the box.
// The functions are defined beyond it.
func (r real) placed(stream *rng.Stream) *Problem {
	shift := make([]float64, r.n)
	solution := make([]float64, r.n)
	for i := range solution {
		solution[i] = r.low + (r.high-r.low)*(0.1+0.8*stream.Float64())
		shift[i] = solution[i] - r.solution[i]
	}
	r.f, r.solution = moved(r.f, shift), solution
	return r.problem(Continuous)
}

// drawnShift is a fixed point whose coordinates are uniform in [-size, size].
func drawnShift(name string, n int, size float64) []float64 {
	stream := rng.New(0, "problem", n, name)
	out := make([]float64, n)
	for i := range out {
		out[i] = size * (2*stream.Float64() - 1)
	}
	return out
}

const braninMinimum = 0.39788735772973816

func branin(x, y float64) float64 {
	q := y - 5.1/(4*math.Pi*math.Pi)*x*x + 5/math.Pi*x - 6
	return q*q + 10*(1-1/(8*math.Pi))*math.Cos(x) + 10
}

func hartmann6(x []float64) float64 {
	return hartmann(x, [][]float64{
		{10, 3, 17, 3.5, 1.7, 8},
		{0.05, 10, 17, 0.1, 8, 14},
		{3, 3.5, 1.7, 10, 17, 8},
		{17, 8, 0.05, 10, 0.1, 14},
	}, [][]float64{
		{0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886},
		{0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991},
		{0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650},
		{0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381},
	})
}

func hartmann(x []float64, a, centre [][]float64) float64 {
	sum := 0.0
	for i, alpha := range []float64{1, 1.2, 3, 3.2} {
		inner := 0.0
		for j, v := range x {
			inner += a[i][j] * square(v-centre[i][j])
		}
		sum -= alpha * math.Exp(-inner)
	}
	return sum
}

func sphere(x []float64) float64 { return sumOf(x, square) }

func ackley(x []float64) float64 {
	n := float64(len(x))
	cosines := sumOf(x, func(v float64) float64 { return math.Cos(2 * math.Pi * v) })
	return 20 + math.E - 20*math.Exp(-0.2*math.Sqrt(sphere(x)/n)) - math.Exp(cosines/n)
}

func levy(x []float64) float64 {
	w := func(i int) float64 { return 1 + (x[i]-1)/4 }
	last := w(len(x) - 1)
	sum := square(math.Sin(math.Pi*w(0))) + square(last-1)*(1+square(math.Sin(2*math.Pi*last)))
	for i := range len(x) - 1 {
		sum += square(w(i)-1) * (1 + 10*square(math.Sin(math.Pi*w(i)+1)))
	}
	return sum
}

func rosenbrock(x []float64) float64 {
	sum := 0.0
	for i := range len(x) - 1 {
		sum += 100*square(x[i+1]-x[i]*x[i]) + square(1-x[i])
	}
	return sum
}

func rastrigin(x []float64) float64 {
	return sumOf(x, func(v float64) float64 { return 10 + v*v - 10*math.Cos(2*math.Pi*v) })
}

func griewank(x []float64) float64 {
	product := 1.0
	for i, v := range x {
		product *= math.Cos(v / math.Sqrt(float64(i+1)))
	}
	return sphere(x)/4000 - product + 1
}

func michalewicz(x []float64) float64 {
	sum := 0.0
	for i, v := range x {
		sum -= math.Sin(v) * math.Pow(math.Sin(float64(i+1)*v*v/math.Pi), 20)
	}
	return sum
}

func styblinski(x []float64) float64 {
	return sumOf(x, func(v float64) float64 { return (v*v*v*v - 16*v*v + 5*v) / 2 })
}
