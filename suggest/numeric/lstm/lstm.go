// Package lstm has a small recurrent network that makes a sequence of choices:
// the controller of Zoph and Le ("Neural architecture search with reinforcement
// learning", ICLR 2017) and of ENAS (Pham et al., ICML 2018), with its gradient
// and the Adam optimizer.
//
// At each step the network reads the embedding of the choice before, and gives
// a probability to each choice of this step.
package lstm

import (
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
)

// Config describes a network.
type Config struct {
	// Counts of choices, of each step.
	Counts []int
	// Hidden is the size of the state, at least 1.
	Hidden int
	// Temperature divides the logits: the higher, the more evenly choices are
	// made. Zero: 1.
	Temperature float64
	// TanhConst bounds the logits, after the temperature, to plus and minus this.
	// Zero: no bound.
	TanhConst float64
}

// Network is a network with its weights.
type Network struct {
	Config
	// Weights of all parts, which Adam changes.
	Weights []float64

	cell, bias, start int   // where the parts begin in Weights
	embedding, head   []int // of each step; a head is a matrix and a bias
}

// New makes a network with weights drawn by uniform, which gives numbers from 0
// to 1.
func New(config Config, uniform func() float64) *Network {
	n := &Network{Config: config}
	h, size := config.Hidden, 0
	take := func(count int) int { size += count; return size - count }
	n.cell, n.bias, n.start = take(4*h*2*h), take(4*h), take(h)
	for _, count := range config.Counts {
		n.embedding = append(n.embedding, take(count*h))
		n.head = append(n.head, take(count*h+count))
	}
	n.Weights = make([]float64, size)
	scale := 1 / math.Sqrt(float64(h))
	for i := range n.Weights {
		n.Weights[i] = (2*uniform() - 1) * scale
	}
	clear(n.Weights[n.bias : n.bias+4*h])
	for i := range h {
		n.Weights[n.bias+h+i] = 1 // remember, to begin with
	}
	for t, count := range config.Counts {
		clear(n.Weights[n.head[t] : n.head[t]+count*h+count]) // all choices alike, to begin with
	}
	return n
}

// Clone copies the network.
func (n *Network) Clone() *Network {
	c := *n
	c.Weights = append([]float64(nil), n.Weights...)
	return &c
}

// inputOf is the embedding of a choice made at step t; the start's for t = -1,
// and nil when no choice was made.
func (n *Network) inputOf(t, choice int) []float64 {
	switch {
	case t < 0:
		return n.Weights[n.start : n.start+n.Hidden]
	case choice < 0:
		return nil
	}
	from := n.embedding[t] + choice*n.Hidden
	return n.Weights[from : from+n.Hidden]
}

// Walk makes one sequence of choices, step by step.
type Walk struct {
	n     *Network
	step  int
	x, h  []float64 // x is the input, then the state
	c     []float64
	gates []float64
}

// Walk starts a sequence.
func (n *Network) Walk() *Walk {
	w := &Walk{n: n, x: make([]float64, 2*n.Hidden), c: make([]float64, n.Hidden), gates: make([]float64, 4*n.Hidden)}
	w.h = w.x[n.Hidden:]
	copy(w.x, n.inputOf(-1, 0))
	return w
}

// Probabilities of the choices of the next step. Follow it by Choose.
func (w *Walk) Probabilities() []float64 {
	n, h := w.n, w.n.Hidden
	copy(w.gates, n.Weights[n.bias:n.bias+4*h])
	blas64.Gemv(blas.NoTrans, 1, general(4*h, 2*h, n.Weights[n.cell:]), vector(w.x), 1, vector(w.gates))
	gate(w.gates, h)
	for i := range h {
		w.c[i] = w.gates[h+i]*w.c[i] + w.gates[i]*w.gates[3*h+i]
		w.h[i] = w.gates[2*h+i] * math.Tanh(w.c[i])
	}
	p := make([]float64, n.Counts[w.step])
	n.logits(w.step, w.h, 1, p)
	n.squash(p)
	softmax(p)
	return p
}

// Choose tells which choice was made; a negative one means none.
func (w *Walk) Choose(choice int) {
	clear(w.x[:w.n.Hidden])
	copy(w.x, w.n.inputOf(w.step, choice))
	w.step++
}

// gate applies the nonlinearities to input, forget and output gates, and to the
// candidate.
func gate(gates []float64, h int) {
	for i := range 3 * h {
		gates[i] = 1 / (1 + math.Exp(-gates[i]))
	}
	for i := 3 * h; i < 4*h; i++ {
		gates[i] = math.Tanh(gates[i])
	}
}

// logits of the step for a batch of states, row by row.
func (n *Network) logits(t int, h []float64, batch int, out []float64) {
	count := n.Counts[t]
	from := n.head[t]
	bias := n.Weights[from+count*n.Hidden : from+count*n.Hidden+count]
	for b := range batch {
		copy(out[b*count:(b+1)*count], bias)
	}
	blas64.Gemm(blas.NoTrans, blas.Trans, 1, general(batch, n.Hidden, h), general(count, n.Hidden, n.Weights[from:]), 1, general(batch, count, out))
}

// squash applies temperature and bound.
func (n *Network) squash(logits []float64) {
	for i, x := range logits {
		if n.Temperature > 0 {
			x /= n.Temperature
		}
		if n.TanhConst > 0 {
			x = n.TanhConst * math.Tanh(x)
		}
		logits[i] = x
	}
}

// unsquash turns derivatives by what squash gave into those by what it took.
func (n *Network) unsquash(squashed, derivatives []float64) {
	for i, y := range squashed {
		if n.TanhConst > 0 {
			derivatives[i] *= n.TanhConst * (1 - y*y/(n.TanhConst*n.TanhConst))
		}
		if n.Temperature > 0 {
			derivatives[i] /= n.Temperature
		}
	}
}

func softmax(x []float64) {
	most, sum := math.Inf(-1), 0.0
	for _, v := range x {
		most = math.Max(most, v)
	}
	for i, v := range x {
		x[i] = math.Exp(v - most)
		sum += x[i]
	}
	for i := range x {
		x[i] /= sum
	}
}

func general(rows, cols int, data []float64) blas64.General {
	return blas64.General{Rows: rows, Cols: cols, Stride: cols, Data: data[:rows*cols]}
}

func vector(data []float64) blas64.Vector { return blas64.Vector{N: len(data), Inc: 1, Data: data} }
