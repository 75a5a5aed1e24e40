package main

import (
	"math"
	"math/rand/v2"
)

// embedding is the number of values per character.
const embedding = 12

// model has embeddings of the last characters, a hidden layer of tanh units, and a
// softmax over the alphabet. All weights are in one slice, so that an optimizer
// sees a vector; the matrices are views of it, in row order.
type model struct {
	width, context int
	layers
	weights []float64
}

// layers are views of one vector of weights, or of gradients.
type layers struct {
	embed   []float64 // classes x embedding
	hidden  []float64 // width x (context*embedding)
	hiddenB []float64 // width
	out     []float64 // classes x width
	outB    []float64 // classes
}

func (m *model) size() int {
	return classes*embedding + m.width*(m.context*embedding+1) + classes*(m.width+1)
}

// view cuts a vector into layers.
func (m *model) view(v []float64) layers {
	next := func(n int) []float64 {
		part := v[:n:n]
		v = v[n:]
		return part
	}
	return layers{
		embed:   next(classes * embedding),
		hidden:  next(m.width * m.context * embedding),
		hiddenB: next(m.width),
		out:     next(classes * m.width),
		outB:    next(classes),
	}
}

// newModel draws weights with a variance that preserves the scale of activations.
func newModel(width, context int, random *rand.Rand) *model {
	m := &model{width: width, context: context}
	m.weights = make([]float64, m.size())
	m.layers = m.view(m.weights)
	fill := func(w []float64, scale float64) {
		for i := range w {
			w[i] = random.NormFloat64() * scale
		}
	}
	fill(m.embed, 0.5)
	fill(m.hidden, 1/math.Sqrt(float64(context*embedding)))
	fill(m.out, 1/math.Sqrt(float64(width)))
	return m
}

// scratch is the working memory of one example.
type scratch struct {
	x, dx []float64 // the embedded context
	h, dh []float64 // the hidden units
	p     []float64 // probabilities, then their gradient
}

func (m *model) newScratch() *scratch {
	n := m.context * embedding
	return &scratch{
		x: make([]float64, n), dx: make([]float64, n),
		h: make([]float64, m.width), dh: make([]float64, m.width),
		p: make([]float64, classes),
	}
}

// loss returns the cross entropy of the character after text[:at], in nats, and
// leaves the activations in s. There must be context characters before at.
func (m *model) loss(text []uint8, at int, s *scratch) float64 {
	for i, c := range text[at-m.context : at] {
		copy(s.x[i*embedding:], m.embed[int(c)*embedding:(int(c)+1)*embedding])
	}
	n := len(s.x)
	for j := range s.h {
		s.h[j] = math.Tanh(m.hiddenB[j] + dot(m.hidden[j*n:(j+1)*n], s.x))
	}
	highest := math.Inf(-1)
	for k := range s.p {
		s.p[k] = m.outB[k] + dot(m.out[k*m.width:(k+1)*m.width], s.h)
		highest = max(highest, s.p[k])
	}
	target := s.p[text[at]]
	sum := 0.0
	for k, v := range s.p {
		s.p[k] = math.Exp(v - highest)
		sum += s.p[k]
	}
	for k := range s.p {
		s.p[k] /= sum
	}
	return math.Log(sum) + highest - target
}

// backward adds scale times the gradient of the last loss to g.
func (m *model) backward(text []uint8, at int, s *scratch, g layers, scale float64) {
	s.p[text[at]]--
	clear(s.dh)
	clear(s.dx)
	for k, d := range s.p {
		d *= scale
		g.outB[k] += d
		axpy(d, s.h, g.out[k*m.width:(k+1)*m.width])
		axpy(d, m.out[k*m.width:(k+1)*m.width], s.dh)
	}
	n := len(s.x)
	for j, h := range s.h {
		d := s.dh[j] * (1 - h*h)
		g.hiddenB[j] += d
		axpy(d, s.x, g.hidden[j*n:(j+1)*n])
		axpy(d, m.hidden[j*n:(j+1)*n], s.dx)
	}
	for i, c := range text[at-m.context : at] {
		axpy(1, s.dx[i*embedding:(i+1)*embedding], g.embed[int(c)*embedding:(int(c)+1)*embedding])
	}
}

// dot returns the inner product of two vectors of equal length. Four sums keep the
// processor busy.
func dot(a, b []float64) float64 {
	b = b[:len(a)]
	var s0, s1, s2, s3 float64
	i := 0
	for ; i+4 <= len(a); i += 4 {
		s0 += a[i] * b[i]
		s1 += a[i+1] * b[i+1]
		s2 += a[i+2] * b[i+2]
		s3 += a[i+3] * b[i+3]
	}
	for ; i < len(a); i++ {
		s0 += a[i] * b[i]
	}
	return s0 + s1 + (s2 + s3)
}

// axpy adds s*x to y.
func axpy(s float64, x, y []float64) {
	y = y[:len(x)]
	for i, v := range x {
		y[i] += s * v
	}
}
