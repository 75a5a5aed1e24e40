package problem

import (
	"math"

	"github.com/vernier-ml/vernier/suggest"
)

// Curve is how a training comes to its loss.
type Curve struct {
	// Steps of a full training. The loss of the last one is the problem's Truth.
	Steps int
	// At is the loss after a step, from 1 to Steps, without noise; NaN once the
	// training has diverged. Nil for a real training, whose Outcome has the curve.
	At func(p suggest.Point, step int) float64
	// Sigma is the standard deviation of the noise of each step.
	Sigma float64
}

// curveSteps is the length of a full training: with a factor of three between
// rungs, they are whole numbers.
const curveSteps = 81

// fidelityProblems are the suite S4. A curve falls from y0 to f(x) as a power of
// the step, y(x, t) = f(x) + (y0-f(x)) g(t), g(t) = (t0/(t+t0))^alpha(x) brought
// to be 0 at the last step, so that the optimum is that of f.
func fidelityProblems() []*Problem {
	mixed, net := weightedChoices(), network()
	return []*Problem{
		// The rate is the same everywhere: the order is seen early.
		withCurve("curve-branin-2", squashed(braninProblem(Fidelity), 20), func(suggest.Point, float64) float64 { return 0.8 }, nil),
		withCurve("curve-hartmann-6", squashed(hartmann6Problem(), 2), func(suggest.Point, float64) float64 { return 0.8 }, nil),
		// Good points are slow: their curves cross those of bad ones.
		withCurve("curve-crossing-6", squashed(hartmann6Problem(), 2), func(_ suggest.Point, f float64) float64 { return 0.3 + f }, nil),
		// A high learning rate is fast at first.
		withCurve("curve-network-7", squashed(net, 1), func(p suggest.Point, _ float64) float64 {
			return math.Min(2, math.Max(0.2, 1.1+0.3*(math.Log10(p[0].Float())+3)))
		}, nil),
		// Where the first coordinate is high, the training diverges, the sooner
		// the higher.
		withCurve("curve-diverging-8", squashed(mixed, 1.5), func(_ suggest.Point, f float64) float64 { return 0.6 + 0.5*f }, func(p suggest.Point) float64 {
			return (p[6].Float() + 1.5) / 1.5 // a rate above 10^-1.5
		}),
	}
}

// squashed brings a loss to a range from 0 to 1, with the optimum at 0.
func squashed(p *Problem, scale float64) *Problem {
	f, optimum := p.Truth, p.Optimum
	q := *p
	q.drawn = nil
	q.Optimum = 0
	q.Truth = single(func(point suggest.Point) float64 {
		return -math.Expm1(-(f(point).Values[0] - optimum) / scale)
	})
	return &q
}

// withCurve makes a problem's loss the end of a curve; over says how far a point
// is in the region that diverges, from 0 to 1, below 0 outside of it.
func withCurve(name string, p *Problem, rate func(p suggest.Point, f float64) float64, over func(suggest.Point) float64) *Problem {
	const start, t0 = 1.5, 2
	f := p.Truth
	diverges := func(point suggest.Point, step int) bool {
		return over != nil && over(point) > 0 && float64(step) > curveSteps*(0.5-0.45*over(point))
	}
	q := *p
	q.Name, q.Family, q.Suite = name, name, Fidelity
	q.Curve = &Curve{Steps: curveSteps, Sigma: 0.005, At: func(point suggest.Point, step int) float64 {
		if diverges(point, step) {
			return math.NaN()
		}
		end := f(point).Values[0]
		alpha := rate(point, end)
		g := func(t float64) float64 { return math.Pow(t0/(t+t0), alpha) }
		last := g(curveSteps)
		return end + (start-end)*(g(float64(step))-last)/(1-last)
	}}
	q.Truth = func(point suggest.Point) Outcome {
		if diverges(point, curveSteps) {
			return Outcome{Failed: true}
		}
		return f(point)
	}
	return &q
}
