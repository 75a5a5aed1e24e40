package lstm

import (
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
)

// Sample is a sequence of choices that was made, and what it was worth.
type Sample struct {
	// Choices of each step; negative where none was made.
	Choices []int
	// Advantage of the sequence: above 0 when it was better than expected.
	Advantage float64
}

// Loss is what training minimises, summed over a batch of samples:
//
//	-advantage * log probability - Entropy * entropy + Skip * divergence.
type Loss struct {
	// Entropy is the weight of the entropy of the choices, which keeps the
	// network from making up its mind too soon.
	Entropy float64
	// Skip is the weight of the Kullback-Leibler divergence of the choices from
	// Target.
	Skip float64
	// Target is the wanted probability of the second choice of a step that has
	// two; 0 where none is wanted. Nil: nowhere.
	Target []float64
}

// pass holds what the way back needs from the way there, for a batch.
type pass struct {
	n       *Network
	batch   int
	inputs  [][]float64 // of each step: batch rows of input and state
	gates   [][]float64
	cells   [][]float64 // one more than there are steps
	tanhs   [][]float64 // of the cells after each step
	squash  [][]float64 // logits after squash
	chances [][]float64
}

func (n *Network) forward(samples []Sample) *pass {
	h, batch := n.Hidden, len(samples)
	p := &pass{n: n, batch: batch, cells: [][]float64{make([]float64, batch*h)}}
	state := make([]float64, batch*h)
	for t, count := range n.Counts {
		in, gates := make([]float64, batch*2*h), make([]float64, batch*4*h)
		for b, s := range samples {
			before := 0
			if t > 0 {
				before = s.Choices[t-1]
			}
			copy(in[b*2*h:b*2*h+h], n.inputOf(t-1, before))
			copy(in[b*2*h+h:(b+1)*2*h], state[b*h:(b+1)*h])
			copy(gates[b*4*h:(b+1)*4*h], n.Weights[n.bias:n.bias+4*h])
		}
		blas64.Gemm(blas.NoTrans, blas.Trans, 1, general(batch, 2*h, in), general(4*h, 2*h, n.Weights[n.cell:]), 1, general(batch, 4*h, gates))
		cell, tanh := make([]float64, batch*h), make([]float64, batch*h)
		for b := range samples {
			g, last := gates[b*4*h:(b+1)*4*h], p.cells[t][b*h:]
			gate(g, h)
			for i := range h {
				at := b*h + i
				cell[at] = g[h+i]*last[i] + g[i]*g[3*h+i]
				tanh[at] = math.Tanh(cell[at])
				state[at] = g[2*h+i] * tanh[at]
			}
		}
		logits := make([]float64, batch*count)
		n.logits(t, state, batch, logits)
		n.squash(logits)
		chances := append([]float64(nil), logits...)
		for b := range samples {
			softmax(chances[b*count : (b+1)*count])
		}
		p.inputs, p.gates, p.cells = append(p.inputs, in), append(p.gates, gates), append(p.cells, cell)
		p.tanhs = append(p.tanhs, tanh)
		p.squash, p.chances = append(p.squash, logits), append(p.chances, chances)
	}
	return p
}

// Gradient adds the gradient of the loss by the weights to gradient, which is as
// long as Weights, and gives the loss.
func (n *Network) Gradient(loss Loss, samples []Sample, gradient []float64) float64 {
	p := n.forward(samples)
	h, batch, total := n.Hidden, len(samples), 0.0
	dState, dCell := make([]float64, batch*h), make([]float64, batch*h)
	dGates, dIn := make([]float64, batch*4*h), make([]float64, batch*2*h)
	state := make([]float64, batch*h)
	for t := len(n.Counts) - 1; t >= 0; t-- {
		count := n.Counts[t]
		dLogits := make([]float64, batch*count)
		for b, s := range samples {
			row := dLogits[b*count : (b+1)*count]
			total += loss.step(t, s, p.chances[t][b*count:(b+1)*count], row)
			n.unsquash(p.squash[t][b*count:(b+1)*count], row)
			for i := range h {
				state[b*h+i] = p.gates[t][b*4*h+2*h+i] * p.tanhs[t][b*h+i]
			}
		}
		n.headBack(t, state, dLogits, dState, gradient)
		p.cellBack(t, dState, dCell, dGates)
		blas64.Gemm(blas.Trans, blas.NoTrans, 1, general(batch, 4*h, dGates), general(batch, 2*h, p.inputs[t]), 1, general(4*h, 2*h, gradient[n.cell:]))
		blas64.Gemm(blas.NoTrans, blas.NoTrans, 1, general(batch, 4*h, dGates), general(4*h, 2*h, n.Weights[n.cell:]), 0, general(batch, 2*h, dIn))
		for b, s := range samples {
			add(gradient[n.bias:], dGates[b*4*h:(b+1)*4*h])
			copy(dState[b*h:(b+1)*h], dIn[b*2*h+h:(b+1)*2*h])
			switch {
			case t == 0:
				add(gradient[n.start:], dIn[b*2*h:b*2*h+h])
			case s.Choices[t-1] >= 0:
				add(gradient[n.embedding[t-1]+s.Choices[t-1]*h:], dIn[b*2*h:b*2*h+h])
			}
		}
	}
	return total
}

// headBack goes back through a step's head: it adds to the gradient and to the
// derivatives by the state.
func (n *Network) headBack(t int, state, dLogits, dState, gradient []float64) {
	h, count, batch := n.Hidden, n.Counts[t], len(dState)/n.Hidden
	from := n.head[t]
	d := general(batch, count, dLogits)
	blas64.Gemm(blas.Trans, blas.NoTrans, 1, d, general(batch, h, state), 1, general(count, h, gradient[from:]))
	blas64.Gemm(blas.NoTrans, blas.NoTrans, 1, d, general(count, h, n.Weights[from:]), 1, general(batch, h, dState))
	for b := range batch {
		add(gradient[from+count*h:], dLogits[b*count:(b+1)*count])
	}
}

// cellBack goes back through the cell of a step: from the derivatives by its
// state and cell to those by its gates, before their nonlinearities, and by the
// cell before.
func (p *pass) cellBack(t int, dState, dCell, dGates []float64) {
	h := p.n.Hidden
	for b := range p.batch {
		g, d := p.gates[t][b*4*h:(b+1)*4*h], dGates[b*4*h:(b+1)*4*h]
		for i := range h {
			in, forget, out, candidate := g[i], g[h+i], g[2*h+i], g[3*h+i]
			tanh := p.tanhs[t][b*h+i]
			dc := dCell[b*h+i] + dState[b*h+i]*out*(1-tanh*tanh)
			d[i] = dc * candidate * in * (1 - in)
			d[h+i] = dc * p.cells[t][b*h+i] * forget * (1 - forget)
			d[2*h+i] = dState[b*h+i] * tanh * out * (1 - out)
			d[3*h+i] = dc * in * (1 - candidate*candidate)
			dCell[b*h+i] = dc * forget
		}
	}
}

// step is the loss of one step of one sample, and puts its derivatives by the
// squashed logits into out.
func (l Loss) step(t int, s Sample, chances, out []float64) float64 {
	if s.Choices[t] < 0 {
		return 0
	}
	entropy := 0.0
	for k, p := range chances {
		out[k] = logOf(p)
		entropy -= p * out[k]
	}
	total := -s.Advantage*out[s.Choices[t]] - l.Entropy*entropy
	divergence, weight, target := 0.0, 0.0, [2]float64{}
	if l.Target != nil && l.Target[t] > 0 && len(chances) == 2 {
		weight, target = l.Skip, [2]float64{logOf(1 - l.Target[t]), logOf(l.Target[t])}
		divergence = -entropy - chances[0]*target[0] - chances[1]*target[1]
	}
	for k, p := range chances {
		d := s.Advantage + l.Entropy*(out[k]+entropy)
		if weight > 0 {
			d += weight * (out[k] - target[k] - divergence)
		}
		out[k] = p * d
	}
	out[s.Choices[t]] -= s.Advantage
	return total + weight*divergence
}

// logOf is a logarithm that stays finite.
func logOf(p float64) float64 { return math.Log(math.Max(p, 1e-300)) }

// LogProbability of a sequence of choices.
func (n *Network) LogProbability(choices []int) float64 {
	w, sum := n.Walk(), 0.0
	for _, c := range choices {
		p := w.Probabilities()
		if c >= 0 {
			sum += logOf(p[c])
		}
		w.Choose(c)
	}
	return sum
}

func add(to, what []float64) {
	for i, x := range what {
		to[i] += x
	}
}
