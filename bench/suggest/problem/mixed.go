package problem

import (
	"math"
	"slices"
	"strconv"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

// mixedProblems are the suite S2: what real search spaces have and continuous
// test functions do not.
func mixedProblems() []*Problem {
	out := []*Problem{
		weightedChoices(), network(), batchSizes(), steppedRosenbrock(), wholeRastrigin(),
		switches(), picks(), pairs(), satisfiability(), pests(), tree(),
		hidden(),
		quantised("quantised-hartmann-6", hartmann6Problem(), 200, 3.4),
		quantised("quantised-ackley-5", ackley5Problem(), 200, 22),
		crashing("crashing-branin-2", braninProblem(Mixed), nearBranin),
		crashing("crashing-hartmann-6", hartmann6Problem(), nearHartmann),
	}
	for _, p := range out {
		p.Suite = Mixed
	}
	return out
}

// weightedChoices has three categoricals, three whole numbers on a log scale and
// two coupled numbers.
func weightedChoices() *Problem {
	weights := [3][5]float64{
		{0, 0.7036105028661575, 0.3621009420669363, 0.647156888456984, 0.9016812226226455},
		{0.46644473705067213, 0.42906933030017635, 0, 0.19638784674210963, 0.4278313674657984},
		{0.6132936492150354, 0.7378026891984704, 0.3150047862426333, 0, 0.22220925240208844},
	}
	parameters := []suggest.ParameterSpec{
		choice("a", letters(5)...), choice("b", letters(5)...), choice("c", letters(5)...),
		wholeLog("layers", 1, 64), wholeLog("width", 1, 64), wholeLog("batch", 1, 64),
		double("lr", -5, 0), double("momentum", 0, 1),
	}
	return &Problem{
		Name: "mixed-8", Family: "mixed", Parameters: parameters, Optimum: 0,
		At: assignments(parameters, "a", "c", "d", "4", "16", "32", "-2.3", "0.63"),
		Truth: single(func(p suggest.Point) float64 {
			sum := 0.0
			for i := range 3 {
				sum += weights[i][choiceIndex(p[i])]
			}
			for i, best := range []float64{2, 4, 5} {
				sum += 0.1 * square(math.Log2(p[3+i].Float())-best)
			}
			lr, momentum := p[6].Float()+2.3, p[7].Float()-0.63
			return sum + 0.2*lr*lr + 2*momentum*momentum + 0.5*math.Abs(lr)*math.Abs(momentum)
		}),
	}
}

// network looks like the settings of a training run: the best learning rate
// goes down with the width and up with the batch, and differs by optimizer.
func network() *Problem {
	parameters := []suggest.ParameterSpec{
		logarithmic("lr", 1e-6, 1), wholeLog("width", 8, 2048), wholeLog("batch", 8, 1024),
		whole("layers", 1, 10), double("dropout", 0, 0.8), logarithmic("decay", 1e-8, 0.1),
		choice("optimizer", "sgd", "adam", "adamw", "rmsprop", "adagrad"),
	}
	parameters[4].Step = "0.05"
	shift := []float64{1.2, 0, 0, 0.3, 0.8}
	handicap := []float64{0.15, 0.05, 0, 0.1, 0.4}
	return &Problem{
		Name: "network-7", Family: "network", Parameters: parameters, Optimum: 0,
		At: assignments(parameters, "0.001", "256", "64", "4", "0.3", "0.0001", "adamw"),
		Truth: single(func(p suggest.Point) float64 {
			width, batch := math.Log2(p[1].Float())-8, math.Log2(p[2].Float())-6
			k := choiceIndex(p[6])
			lr := math.Log10(p[0].Float()) + 3 - shift[k] + 0.15*width - 0.1*batch
			layers, dropout := p[3].Float()-4, p[4].Float()-0.3
			decay := math.Log10(p[5].Float()) + 4
			return handicap[k] + 1 - math.Exp(-lr*lr/2) + 0.03*lr*lr + 0.02*square(width-0.5*layers) +
				0.01*square(batch) + 0.03*square(layers) + square(dropout) + 0.02*square(decay+2*dropout)
		}),
	}
}

// batchSizes has numbers from lists whose steps are uneven.
func batchSizes() *Problem {
	parameters := []suggest.ParameterSpec{
		ordinal("batch", "16", "32", "48", "64", "96", "128", "256", "512", "1024"),
		ordinal("depth", "6", "10", "14", "18", "34", "50", "101", "152"),
		ordinal("temperature", "0.1", "0.2", "0.5", "0.7", "1", "1.5", "2", "5", "10"),
		ordinal("patience", "1", "2", "3", "5", "8", "13", "21", "34"),
		double("mix", 0, 1),
	}
	return &Problem{
		Name: "ordinal-5", Family: "ordinal", Parameters: parameters, Optimum: 0,
		At: assignments(parameters, "128", "34", "0.7", "8", "0.35"),
		Truth: single(func(p suggest.Point) float64 {
			batch, depth := math.Log2(p[0].Float()/128), math.Log2(p[1].Float()/34)
			temperature, patience := math.Log2(p[2].Float()/0.7), math.Log2(p[3].Float()/8)
			mix := p[4].Float() - 0.35
			return 0.2*square(batch+0.7*depth) + 0.1*square(depth) + 0.15*square(temperature) +
				0.05*math.Abs(patience) + square(mix) + 0.3*math.Abs(mix*batch)
		}),
	}
}

// steppedRosenbrock is on a grid that holds the optimum.
func steppedRosenbrock() *Problem {
	p := real{"stepped-rosenbrock-4", "stepped", 4, -5, 10, rosenbrock, 0, same(4, 1)}.problem(Mixed)
	for i := range p.Parameters {
		p.Parameters[i].Step = "0.25"
	}
	return p
}

// wholeRastrigin is a rotated bowl with ripples, over whole numbers.
func wholeRastrigin() *Problem {
	const n = 8
	turn := rotation(n, rng.New(0, "problem", n, "whole-rastrigin"))
	best := []float64{3, -4, 7, 0, -8, 5, 1, -2}
	p := &Problem{Name: "whole-rastrigin-8", Family: "whole", Optimum: 0}
	var at []string
	for i, b := range best {
		p.Parameters = append(p.Parameters, whole(coordinate(i), -10, 10))
		at = append(at, strconv.Itoa(int(b)))
	}
	p.At = assignments(p.Parameters, at...)
	p.Truth = single(func(point suggest.Point) float64 {
		z := values(point)
		for i := range z {
			z[i] -= best[i]
		}
		return sumOf(times(turn, z), func(v float64) float64 { return v*v + 5*(1-math.Cos(math.Pi*v/2)) })
	})
	return p
}

// switches has 20 categoricals of two and three numbers: Ackley's function of
// how many switches are wrong and how far the numbers are off, after the
// Ackley53 of Wan et al. (ICML 2021).
func switches() *Problem {
	const count = 20
	stream := rng.New(0, "problem", count, "switches")
	p := &Problem{Name: "switches-23", Family: "switches", Optimum: 0}
	var right []int
	var at []string
	for i := range count {
		k := int(stream.Uint64N(2))
		right = append(right, k)
		at = append(at, []string{"off", "on"}[k])
		p.Parameters = append(p.Parameters, choice("switch"+strconv.Itoa(i), "off", "on"))
	}
	for i := range 3 {
		p.Parameters = append(p.Parameters, double(coordinate(i), -1, 1))
		at = append(at, "0.3")
	}
	p.At = assignments(p.Parameters, at...)
	p.Truth = single(func(point suggest.Point) float64 {
		z := make([]float64, len(point))
		for i, v := range point {
			switch {
			case i >= count:
				z[i] = v.Float() - 0.3
			case choiceIndex(v) != right[i]:
				z[i] = 1
			}
		}
		return ackley(z)
	})
	return p
}

// picks lets one categorical choose among twelve bowls of different depth and
// place, and a second one turn the axes.
func picks() *Problem {
	const kinds, n = 12, 3
	stream := rng.New(0, "problem", kinds, "picks")
	var depth [kinds]float64
	var centre [kinds][]float64
	for k := range kinds {
		depth[k] = 0.1 + 0.9*stream.Float64()
		for range n {
			centre[k] = append(centre[k], 1.6*stream.Float64()-0.8)
		}
	}
	depth[7] = 0
	parameters := []suggest.ParameterSpec{choice("kind", letters(kinds)...), choice("turn", letters(6)...)}
	at := []string{"h", "a"}
	for i := range n {
		parameters = append(parameters, double(coordinate(i), -1, 1))
		at = append(at, number(centre[7][i]))
	}
	orders := [6][3]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}
	return &Problem{
		Name: "picks-5", Family: "picks", Parameters: parameters, Optimum: 0, At: assignments(parameters, at...),
		Truth: single(func(p suggest.Point) float64 {
			k, turn := choiceIndex(p[0]), choiceIndex(p[1])
			sum := depth[k] + 0.05*float64(turn)
			for i, from := range orders[turn] {
				sum += float64(i+1) * square(p[2+from].Float()-centre[k][i])
			}
			return sum
		}),
	}
}

// pairs is purely categorical: each choice has a cost and each pair of choices
// another one. All points were weighed to find the optimum; a test repeats it.
func pairs() *Problem {
	sizes := []int{8, 7, 6, 5, 5, 6}
	stream := rng.New(0, "problem", len(sizes), "pairs")
	p := &Problem{Name: "pairs-6", Family: "pairs", Optimum: pairsMinimum}
	alone := make([][]float64, len(sizes))
	both := map[[2]int][]float64{}
	for i, n := range sizes {
		p.Parameters = append(p.Parameters, choice("c"+strconv.Itoa(i), letters(n)...))
		alone[i] = uniform(n, stream)
		for j := range i {
			both[[2]int{i, j}] = uniform(n*sizes[j], stream)
		}
	}
	p.Truth = single(func(point suggest.Point) float64 {
		sum := 0.0
		for i := range sizes {
			sum += alone[i][choiceIndex(point[i])]
			for j := range i {
				sum += both[[2]int{i, j}][choiceIndex(point[i])*sizes[j]+choiceIndex(point[j])] / 2
			}
		}
		return sum
	})
	return p
}

func uniform(n int, stream *rng.Stream) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = stream.Float64()
	}
	return out
}

// satisfiability asks for the truth of 20 words so that little weight of broken
// clauses of three is left: none, in the planted solution.
func satisfiability() *Problem {
	const words, clauses = 20, 90
	stream := rng.New(0, "problem", words, "satisfiability")
	p := &Problem{Name: "clauses-20", Family: "clauses", Optimum: 0}
	planted := make([]int, words)
	var at []string
	for i := range words {
		planted[i] = int(stream.Uint64N(2))
		p.Parameters = append(p.Parameters, choice("word"+strconv.Itoa(i), "false", "true"))
		at = append(at, []string{"false", "true"}[planted[i]])
	}
	p.At = assignments(p.Parameters, at...)
	type clause struct {
		word, want [3]int
		weight     float64
	}
	list := make([]clause, 0, clauses)
	for len(list) < clauses {
		c := clause{weight: 0.2 + stream.Float64()}
		holds := false
		for i := range 3 {
			c.word[i], c.want[i] = int(stream.Uint64N(words)), int(stream.Uint64N(2))
			holds = holds || planted[c.word[i]] == c.want[i]
		}
		if holds {
			list = append(list, c)
		}
	}
	p.Truth = single(func(point suggest.Point) float64 {
		sum := 0.0
		for _, c := range list {
			if !slices.ContainsFunc([]int{0, 1, 2}, func(i int) bool { return choiceIndex(point[c.word[i]]) == c.want[i] }) {
				sum += c.weight
			}
		}
		return sum
	})
	return p
}
