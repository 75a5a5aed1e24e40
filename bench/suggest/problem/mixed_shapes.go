package problem

import (
	"math"
	"strconv"

	"github.com/vernier-ml/vernier/suggest"
)

// pests chooses a pesticide, or none, at each of eight stations that a pest
// passes; prices fall with use and the pest grows resistant. The idea is that
// of the pest control problem of Oh et al. (NeurIPS 2019), with a deterministic
// spread of our own. All points were weighed to find the optimum.
func pests() *Problem {
	const stations = 8
	p := &Problem{Name: "pests-8", Family: "pests", Optimum: pestsMinimum}
	for i := range stations {
		p.Parameters = append(p.Parameters, choice("station"+strconv.Itoa(i), letters(5)...))
	}
	price := []float64{0, 1, 0.8, 0.7, 0.5}
	discount := []float64{0, 0.2, 0.3, 0.3, 0}
	control := []float64{0, 0.9, 0.75, 0.6, 0.5}
	resistance := []float64{0, 0.3, 0.15, 0.1, 0.05}
	spread := []float64{0.08, 0.12, 0.05, 0.16, 0.1, 0.07, 0.14, 0.09}
	p.Truth = single(func(point suggest.Point) float64 {
		pest, cost := 0.2, 0.0
		var used [5]float64
		for i := range stations {
			k := choiceIndex(point[i])
			if k > 0 {
				effect := control[k] * math.Pow(1-resistance[k], used[k])
				pest *= 1 - effect
				cost += 0.1 * price[k] * math.Max(0.5, 1-discount[k]*used[k]/float64(stations))
				used[k]++
			}
			pest = math.Min(1, pest+spread[i]*(1+pest))
			cost += math.Max(0, pest-0.1)
		}
		return cost
	})
	return p
}

// tree chooses a model first; each model has parameters of its own, and the
// network's layers have theirs. The losses look like those of a small data set.
func tree() *Problem {
	parameters := []suggest.ParameterSpec{
		choice("model", "svm", "mlp", "forest"),
		when(logarithmic("c", 1e-3, 1e3), "model", "svm"),
		when(choice("kernel", "linear", "rbf", "poly"), "model", "svm"),
		when(logarithmic("gamma", 1e-5, 10), "kernel", "rbf"),
		when(logarithmic("lr", 1e-5, 0.1), "model", "mlp"),
		when(whole("layers", 1, 3), "model", "mlp"),
		when(wholeLog("units1", 4, 512), "model", "mlp"),
		when(wholeLog("units2", 4, 512), "layers", "2", "3"),
		when(wholeLog("units3", 4, 512), "layers", "3"),
		when(wholeLog("trees", 10, 500), "model", "forest"),
		when(whole("depth", 1, 20), "model", "forest"),
		when(double("features", 0.05, 1), "model", "forest"),
	}
	return &Problem{
		Name: "tree-12", Family: "tree", Parameters: parameters, Optimum: 0.05,
		At:    assignments(parameters, "mlp", "", "", "", "0.003", "2", "128", "32"),
		Truth: single(treeLoss),
	}
}

func treeLoss(p suggest.Point) float64 {
	decades := func(i int, best float64) float64 { return math.Log10(p[i].Float() / best) }
	octaves := func(i int, best float64) float64 { return math.Log2(p[i].Float() / best) }
	switch choiceIndex(p[0]) {
	case 0:
		loss := 0.11 + 0.02*square(decades(1, 10))
		switch choiceIndex(p[2]) {
		case 0:
			return loss + 0.08
		case 1:
			return loss - 0.03 + 0.05*square(decades(3, 0.01)+0.5*decades(1, 10))
		}
		return loss + 0.04
	case 1:
		lr := decades(4, 0.003)
		loss := 0.05 + 0.1*(1-math.Exp(-lr*lr)) + 0.02*lr*lr + 0.003*square(octaves(6, 128))
		layers := p[5].Float()
		if layers >= 2 {
			loss += 0.002 * square(octaves(7, 32))
		}
		if layers >= 3 {
			loss += 0.01 + 0.002*square(octaves(8, 16))
		}
		return loss + 0.02*math.Max(0, 2-layers)
	}
	return 0.07 + 0.03*math.Exp(-p[9].Float()/60) + 0.002*square(p[10].Float()-14)/4 + 0.1*square(p[11].Float()-0.3)
}

// hidden is Branin's function with 23 parameters that change nothing.
func hidden() *Problem {
	const n = 25
	p := &Problem{Name: "branin-25", Family: "hidden", Optimum: braninMinimum}
	var at []string
	for i := range n {
		p.Parameters = append(p.Parameters, double(coordinate(i), 0, 1))
		at = append(at, "0.5")
	}
	first, second := n/3, 2*n/3
	at[first], at[second] = "0.5427728435726529", "0.15166666666666667" // (pi+5)/15 and 2.275/15
	p.At = assignments(p.Parameters, at...)
	p.Truth = single(func(point suggest.Point) float64 {
		return branin(15*point[first].Float()-5, 15*point[second].Float())
	})
	return p
}

func hartmann6Problem() *Problem { return classics()[0].problem(Mixed) }

func ackley5Problem() *Problem {
	return real{"ackley-5", "ackley", 5, -32.768, 32.768, moved(ackley, same(5, 3.1)), 0, same(5, 3.1)}.problem(Mixed)
}

// quantised rounds the loss up to one of about levels values over the range, as
// an accuracy on that many samples is.
func quantised(name string, p *Problem, levels int, width float64) *Problem {
	step := width / float64(levels)
	f := p.Truth
	q := *p
	q.drawn = nil
	q.Name, q.Family = name, name
	q.Optimum = step * math.Ceil(p.Optimum/step)
	q.Truth = single(func(point suggest.Point) float64 {
		return step * math.Ceil(f(point).Values[0]/step-1e-9) // the optimum is there to rounding
	})
	return &q
}

// crashing fails where crash holds.
func crashing(name string, p *Problem, crash func(x []float64) bool) *Problem {
	f := p.Truth
	q := *p
	q.drawn = nil
	q.Name, q.Family = name, name
	q.Truth = func(point suggest.Point) Outcome {
		if crash(values(point)) {
			return Outcome{Failed: true}
		}
		return f(point)
	}
	return &q
}

// nearBranin is two sides of the box and a disc: it goes past all three
// minima, two of which it takes. A third of the box fails.
func nearBranin(x []float64) bool {
	return x[1] > 12 || x[0] > 8 || square(x[0])+square(x[1]-4) < 6
}

// nearHartmann is a third of the cube, beside the best minimum and over the
// second one.
func nearHartmann(x []float64) bool {
	return x[0]+x[3] > 1.15 || x[1] > 0.8 && x[4] > 0.1
}
