package problem

import (
	"math"
	"sync"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/numeric/pareto"
)

// Front describes the answer of a problem with several objectives.
type Front struct {
	// Reference is worse than what counts, in each objective: hypervolume is
	// measured from it.
	Reference []float64
	// Constraints is how many there are.
	Constraints int
	// Volume is the hypervolume of the true front.
	Volume func() float64
}

// frontProblems are the suite S5. ZDT are of Zitzler, Deb and Thiele (2000), DTLZ
// of Deb et al. (2002), C2-DTLZ2 of Jain and Deb (2014), WFG of Huband et al.
// (2006), BNH of Binh and Korn (1997), OSY of Osyczka and Kundu (1995).
func frontProblems() []*Problem {
	line := func(f func(float64) float64) func(float64) []float64 {
		return func(x float64) []float64 { return []float64{x, f(x)} }
	}
	fronts := []*Problem{
		zdt("zdt1", 12, 5, zdt1, line(func(x float64) float64 { return 1 - math.Sqrt(x) })),
		zdt("zdt2", 12, 5, zdt2, line(func(x float64) float64 { return 1 - x*x })),
		zdt("zdt3", 12, 5, zdt3, line(func(x float64) float64 { return 1 - math.Sqrt(x) - x*math.Sin(10*math.Pi*x) })),
		zdt("zdt6", 10, 8, zdt6, func(x float64) []float64 {
			f := zdt6First(x)
			return []float64{f, 1 - f*f}
		}),
		several("dtlz2-7", unitBox(7), []float64{1.1, 1.1, 1.1}, 0, dtlz2Outcome, octantVolume),
		several("c2-dtlz2-6", unitBox(6), []float64{1.1, 1.1}, 1, constrainedDTLZ2, func() float64 { return sampledVolume(c2Front, []float64{1.1, 1.1}) }),
		several("dtlz7-6", unitBox(6), []float64{1.1, 10}, 0, dtlz7, func() float64 { return sampledVolume(dtlz7Front, []float64{1.1, 10}) }),
		several("wfg4-6", wfgBox(6), []float64{2.2, 4.4}, 0, wfg4, func() float64 { return sampledVolume(wfg4Front, []float64{2.2, 4.4}) }),
		bnh(), osy(),
	}
	for _, p := range fronts {
		p.Suite, p.Family, p.Optimum = MultiObjective, p.Name, 0
	}
	return fronts
}

func several(name string, parameters []suggest.ParameterSpec, reference []float64, constraints int, f func([]float64) Outcome, volume func() float64) *Problem {
	return &Problem{
		Name: name, Parameters: parameters,
		Truth: func(p suggest.Point) Outcome { return f(values(p)) },
		Front: &Front{Reference: reference, Constraints: constraints, Volume: sync.OnceValue(volume)},
	}
}

// zdt has two objectives and its front where all but the first coordinate are 0.
func zdt(name string, n int, worst float64, f func([]float64) Outcome, front func(x float64) []float64) *Problem {
	reference := []float64{1.1, worst}
	return several(sized(name, n), unitBox(n), reference, 0, f, func() float64 { return sampledVolume(front, reference) })
}

func unitBox(n int) []suggest.ParameterSpec {
	var out []suggest.ParameterSpec
	for i := range n {
		out = append(out, double(coordinate(i), 0, 1))
	}
	return out
}

// sampledVolume is the hypervolume of a curve with two objectives, from 50,001
// points of it.
func sampledVolume(front func(x float64) []float64, reference []float64) float64 {
	const n = 50_000
	points := make([][]float64, 0, n+1)
	for i := range n + 1 {
		if p := front(float64(i) / n); p != nil {
			points = append(points, p)
		}
	}
	return pareto.Hypervolume(points, reference)
}

func two(a, b float64) Outcome { return Outcome{Values: []float64{a, b}} }

func zdtRest(x []float64) float64 {
	return 1 + 9*sumOf(x[1:], func(v float64) float64 { return v })/float64(len(x)-1)
}

func zdt1(x []float64) Outcome {
	g := zdtRest(x)
	return two(x[0], g*(1-math.Sqrt(x[0]/g)))
}

func zdt2(x []float64) Outcome {
	g := zdtRest(x)
	return two(x[0], g*(1-square(x[0]/g)))
}

func zdt3(x []float64) Outcome {
	g := zdtRest(x)
	return two(x[0], g*(1-math.Sqrt(x[0]/g)-x[0]/g*math.Sin(10*math.Pi*x[0])))
}

func zdt6First(x float64) float64 {
	return 1 - math.Exp(-4*x)*math.Pow(math.Sin(6*math.Pi*x), 6)
}

func zdt6(x []float64) Outcome {
	f := zdt6First(x[0])
	g := 1 + 9*math.Pow((zdtRest(x)-1)/9, 0.25)
	return two(f, g*(1-square(f/g)))
}

// dtlz2 with m objectives.
func dtlz2(x []float64, m int) []float64 {
	g := sumOf(x[m-1:], func(v float64) float64 { return square(v - 0.5) })
	out := make([]float64, m)
	for i := range out {
		out[i] = 1 + g
		for j := range m - 1 - i {
			out[i] *= math.Cos(x[j] * math.Pi / 2)
		}
		if i > 0 {
			out[i] *= math.Sin(x[m-1-i] * math.Pi / 2)
		}
	}
	return out
}

func dtlz2Outcome(x []float64) Outcome { return Outcome{Values: dtlz2(x, 3)} }

// octantVolume is what lies between the unit sphere and the reference (1.1, 1.1,
// 1.1): a cube without an eighth of a ball.
func octantVolume() float64 { return 1.1*1.1*1.1 - math.Pi/6 }

// constrainedDTLZ2 allows only what is near the ends and the middle of the
// front.
func constrainedDTLZ2(x []float64) Outcome {
	const r = 0.2
	f := dtlz2(x, 2)
	ends := math.Min(square(f[0]-1)+f[1]*f[1], square(f[1]-1)+f[0]*f[0]) - r*r
	middle := square(f[0]-math.Sqrt(0.5)) + square(f[1]-math.Sqrt(0.5)) - r*r
	return Outcome{Values: f, Constraints: []float64{math.Min(ends, middle)}}
}

// c2Front is the part of DTLZ2's front that is allowed. Behind the gaps there is
// nothing: seen from the origin, what is allowed is widest on the front itself.
func c2Front(x float64) []float64 {
	o := constrainedDTLZ2([]float64{x, 0.5, 0.5, 0.5, 0.5, 0.5})
	if o.Constraints[0] > 0 {
		return nil
	}
	return o.Values
}

func dtlz7(x []float64) Outcome {
	g := 1 + 9*sumOf(x[1:], func(v float64) float64 { return v })/float64(len(x)-1)
	h := 2 - x[0]/(1+g)*(1+math.Sin(3*math.Pi*x[0]))
	return two(x[0], (1+g)*h)
}

func dtlz7Front(x float64) []float64 { return dtlz7([]float64{x, 0, 0, 0, 0, 0}).Values }

// wfgBox has coordinates from 0 to 2i.
func wfgBox(n int) []suggest.ParameterSpec {
	var out []suggest.ParameterSpec
	for i := range n {
		out = append(out, double(coordinate(i), 0, float64(2*(i+1))))
	}
	return out
}

// wfg4 has two objectives and two position parameters.
func wfg4(x []float64) Outcome {
	const positions = 2
	mean := func(from, to int) float64 {
		sum := 0.0
		for i := from; i < to; i++ {
			sum += multimodal(x[i] / float64(2*(i+1)))
		}
		return sum / float64(to-from)
	}
	position, distance := mean(0, positions), mean(positions, len(x))
	return two(distance+2*math.Sin(position*math.Pi/2), distance+4*math.Cos(position*math.Pi/2))
}

// multimodal is the transformation s_multi with A = 30, B = 10 and C = 0.35.
func multimodal(y float64) float64 {
	const a, b, c = 30, 10, 0.35
	t := math.Abs(y-c) / (2 * (math.Floor(c-y) + c))
	return (1 + math.Cos((4*a+2)*math.Pi*(0.5-t)) + 4*b*t*t) / (b + 2)
}

func wfg4Front(x float64) []float64 {
	return []float64{2 * math.Sin(x*math.Pi/2), 4 * math.Cos(x*math.Pi/2)}
}

func bnh() *Problem {
	box := []suggest.ParameterSpec{double("x00", 0, 5), double("x01", 0, 3)}
	f := func(x []float64) Outcome {
		o := two(4*x[0]*x[0]+4*x[1]*x[1], square(x[0]-5)+square(x[1]-5))
		o.Constraints = []float64{square(x[0]-5) + x[1]*x[1] - 25, 7.7 - square(x[0]-8) - square(x[1]+3)}
		return o
	}
	// The front: x1 = x2 up to 3, then x2 = 3.
	front := func(t float64) []float64 { return f([]float64{5 * t, math.Min(5*t, 3)}).Values }
	reference := []float64{140, 50}
	return several("bnh-2", box, reference, 2, f, func() float64 { return sampledVolume(front, reference) })
}

func osy() *Problem {
	box := []suggest.ParameterSpec{double("x00", 0, 10), double("x01", 0, 10), double("x02", 1, 5), double("x03", 0, 6), double("x04", 1, 5), double("x05", 0, 10)}
	f := func(x []float64) Outcome {
		o := two(-25*square(x[0]-2)-square(x[1]-2)-square(x[2]-1)-square(x[3]-4)-square(x[4]-1), sphere(x))
		o.Constraints = []float64{
			2 - x[0] - x[1], x[0] + x[1] - 6, x[1] - x[0] - 2, x[0] - 3*x[1] - 2,
			square(x[2]-3) + x[3] - 4, 4 - square(x[4]-3) - x[5],
		}
		return o
	}
	reference := []float64{0, 80}
	return several("osy-6", box, reference, 6, f, func() float64 { return sampledVolume(osyFront, reference) })
}

// osyFront goes along the five pieces of the front that Deb gives ("Multi-Objective
// Optimization using Evolutionary Algorithms", 2001, table 24), with x4 = x6 = 0.
func osyFront(t float64) []float64 {
	pieces := []func(u float64) [4]float64{ // x1, x2, x3, x5
		func(u float64) [4]float64 { return [4]float64{5, 1, 1 + 4*u, 5} },
		func(u float64) [4]float64 { return [4]float64{5, 1, 1 + 4*u, 1} },
		func(u float64) [4]float64 { x := 4.056 + 0.944*u; return [4]float64{x, (x - 2) / 3, 1, 1} },
		func(u float64) [4]float64 { return [4]float64{0, 2, 1 + 2.732*u, 1} },
		func(u float64) [4]float64 { return [4]float64{u, 2 - u, 1, 1} },
	}
	at := math.Min(t*float64(len(pieces)), float64(len(pieces))-1e-9)
	x := pieces[int(at)](at - math.Floor(at))
	full := []float64{x[0], x[1], x[2], 0, x[3], 0}
	return two(-25*square(full[0]-2)-square(full[1]-2)-square(full[2]-1)-square(full[3]-4)-square(full[4]-1), sphere(full)).Values
}
