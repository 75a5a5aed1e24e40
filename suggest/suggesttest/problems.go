package suggesttest

import (
	"context"
	"math"

	"github.com/vernier-ml/vernier/suggest"
)

// Problem is a function to minimise whose minimum is known.
type Problem struct {
	// Name of the function.
	Name string
	// Parameters of its space.
	Parameters []suggest.ParameterSpec
	// Loss at a point of the space.
	Loss func(suggest.Point) float64
	// Minimum of the loss, and the values of a point that has it (rounded).
	Minimum float64
	At      []string
}

// Problems are the functions, easy ones first. Their formulas and minima are
// those of Surjanovic and Bingham's Virtual Library of Simulation Experiments,
// except for mixed, which is ours.
func Problems() []Problem {
	return []Problem{
		{"sphere", reals(4, "-5", "6"), overFloats(sphere), 0, []string{"0", "0", "0", "0"}},
		{"branin", []suggest.ParameterSpec{double("x0", "-5", "10"), double("x1", "0", "15")}, overFloats(branin), 0.39788735772973816, []string{"3.141592653589793", "2.275"}},
		{"hartmann6", reals(6, "0", "1"), overFloats(hartmann6), -3.322368011415515, []string{"0.20169", "0.150011", "0.476874", "0.275332", "0.311652", "0.6573"}},
		{"ackley", reals(5, "-20", "30"), overFloats(ackley), 0, []string{"0", "0", "0", "0", "0"}},
		{"rosenbrock", reals(4, "-5", "10"), overFloats(rosenbrock), 0, []string{"1", "1", "1", "1"}},
		{"mixed", mixedParameters(), mixedLoss, 0, []string{"0.01", "32", "adam", "0.1", "0.3"}},
	}
}

// Best plays the problem and gives the distance to its minimum of the best
// trial among the first 1, 2, ... n. Fewer come when the space was exhausted.
func (p Problem) Best(ctx context.Context, build suggest.New, settings suggest.Settings, seed uint64, n, parallel int) ([]float64, error) {
	space, err := suggest.NewSpace(p.Parameters)
	if err != nil {
		return nil, err
	}
	a, err := build(space, settings)
	if err != nil {
		return nil, err
	}
	player := Player{
		Algorithm: a, Study: NewStudy(space, seed), Parallel: parallel,
		Objective: func(_ int, point suggest.Point) float64 { return p.Loss(point) },
	}
	player.Study.Budget = n
	if err := player.Play(ctx, n); err != nil && len(player.Study.Trials) == 0 {
		return nil, err
	}
	best, out := math.Inf(1), make([]float64, 0, n)
	for _, t := range player.Study.Trials {
		if len(t.Values) > 0 {
			best = math.Min(best, t.Values[0]-p.Minimum)
		}
		out = append(out, best)
	}
	return out, nil
}

func double(name, min, max string) suggest.ParameterSpec {
	return suggest.ParameterSpec{Name: name, Kind: suggest.Double, Min: min, Max: max}
}

func reals(n int, min, max string) []suggest.ParameterSpec {
	out := make([]suggest.ParameterSpec, n)
	for i := range out {
		out[i] = double(string(rune('a'+i)), min, max)
	}
	return out
}

func overFloats(f func([]float64) float64) func(suggest.Point) float64 {
	return func(p suggest.Point) float64 {
		x := make([]float64, len(p))
		for i, v := range p {
			x[i] = v.Float()
		}
		return f(x)
	}
}

func sphere(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v * v
	}
	return sum
}

func branin(x []float64) float64 {
	const b, c, r, s, t = 5.1 / (4 * math.Pi * math.Pi), 5 / math.Pi, 6, 10, 1 / (8 * math.Pi)
	q := x[1] - b*x[0]*x[0] + c*x[0] - r
	return q*q + s*(1-t)*math.Cos(x[0]) + s
}

func hartmann6(x []float64) float64 {
	alpha := [4]float64{1, 1.2, 3, 3.2}
	a := [4][6]float64{
		{10, 3, 17, 3.5, 1.7, 8},
		{0.05, 10, 17, 0.1, 8, 14},
		{3, 3.5, 1.7, 10, 17, 8},
		{17, 8, 0.05, 10, 0.1, 14},
	}
	centre := [4][6]float64{
		{0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886},
		{0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991},
		{0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650},
		{0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381},
	}
	sum := 0.0
	for i := range alpha {
		inner := 0.0
		for j, v := range x {
			inner += a[i][j] * (v - centre[i][j]) * (v - centre[i][j])
		}
		sum -= alpha[i] * math.Exp(-inner)
	}
	return sum
}

func ackley(x []float64) float64 {
	cosines, n := 0.0, float64(len(x))
	for _, v := range x {
		cosines += math.Cos(2 * math.Pi * v)
	}
	return 20 + math.E - 20*math.Exp(-0.2*math.Sqrt(sphere(x)/n)) - math.Exp(cosines/n)
}

func rosenbrock(x []float64) float64 {
	sum := 0.0
	for i := range len(x) - 1 {
		d := x[i+1] - x[i]*x[i]
		sum += 100*d*d + (1-x[i])*(1-x[i])
	}
	return sum
}

// mixedParameters look like those of a training run.
func mixedParameters() []suggest.ParameterSpec {
	return []suggest.ParameterSpec{
		{Name: "lr", Kind: suggest.Double, Min: "1e-5", Max: "1", Distribution: suggest.LogUniform},
		{Name: "width", Kind: suggest.Int, Min: "4", Max: "256", Distribution: suggest.LogUniform},
		{Name: "optimizer", Kind: suggest.Categorical, List: []string{"sgd", "adam", "ftrl"}},
		{Name: "decay", Kind: suggest.Discrete, List: []string{"0", "0.1", "0.2", "0.5"}},
		{Name: "dropout", Kind: suggest.Double, Min: "0", Max: "0.9", Step: "0.05"},
	}
}

// mixedLoss has its best learning rate elsewhere for each optimizer, and one
// optimizer that is better by a little.
func mixedLoss(p suggest.Point) float64 {
	optimum := map[string]float64{"sgd": -1, "adam": -2, "ftrl": -1.5}[p[2].String()]
	handicap := map[string]float64{"sgd": 0.1, "adam": 0, "ftrl": 0.3}[p[2].String()]
	lr := math.Log10(p[0].Float()) - optimum
	width := math.Log2(p[1].Float()) - 5
	return handicap + lr*lr/4 + width*width/16 + math.Abs(p[3].Float()-0.1) + 2*(p[4].Float()-0.3)*(p[4].Float()-0.3)
}
