package main

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// validationExamples is the number of positions in the validation text to evaluate,
// the same ones after each epoch.
const validationExamples = 4000

// trainer trains one model.
type trainer struct {
	cfg               config
	model             *model
	optimizer         optimizer
	train, validation []uint8
	random            *rand.Rand
	scratch           *scratch
	gradient          []float64
}

func newTrainer(cfg config, train, validation []uint8) (*trainer, error) {
	random := rand.New(rand.NewPCG(cfg.seed, 0))
	m := newModel(cfg.width, cfg.context, random)
	o, err := newOptimizer(cfg.optimizer, cfg.lr, len(m.weights))
	if err != nil {
		return nil, err
	}
	return &trainer{
		cfg: cfg, model: m, optimizer: o, train: train, validation: validation, random: random,
		scratch: m.newScratch(), gradient: make([]float64, len(m.weights)),
	}, nil
}

// epoch makes the updates of one epoch and returns the mean loss before them. If
// that is not finite, training has diverged, and it makes no further updates.
func (t *trainer) epoch() float64 {
	g := t.model.view(t.gradient)
	total := 0.0
	for done := 0; done < t.cfg.examples; {
		n := min(t.cfg.batch, t.cfg.examples-done)
		clear(t.gradient)
		for range n {
			at := t.cfg.context + t.random.IntN(len(t.train)-t.cfg.context)
			total += t.model.loss(t.train, at, t.scratch)
			t.model.backward(t.train, at, t.scratch, g, 1/float64(n))
		}
		if math.IsNaN(total) || math.IsInf(total, 0) {
			return math.NaN()
		}
		t.optimizer.update(t.model.weights, t.gradient)
		done += n
	}
	return total / float64(t.cfg.examples)
}

// validate returns the mean loss on the validation text.
func (t *trainer) validate() float64 {
	places := len(t.validation) - t.cfg.context
	n := min(validationExamples, places)
	total := 0.0
	for i := range n {
		total += t.model.loss(t.validation, t.cfg.context+i*places/n, t.scratch)
	}
	return total / float64(n)
}

// optimizer updates weights from their gradient.
type optimizer interface {
	update(weights, gradient []float64)
}

func newOptimizer(name string, lr float64, size int) (optimizer, error) {
	switch name {
	case "sgd":
		return &momentum{lr: lr, keep: 0, velocity: make([]float64, size)}, nil
	case "momentum":
		return &momentum{lr: lr, keep: 0.9, velocity: make([]float64, size)}, nil
	case "adam":
		return &adam{lr: lr, mean: make([]float64, size), square: make([]float64, size)}, nil
	default:
		return nil, fmt.Errorf("--optimizer is %q: it must be sgd, momentum or adam", name)
	}
}

// momentum is gradient descent that keeps a fraction of its velocity (0: plain
// descent).
type momentum struct {
	lr, keep float64
	velocity []float64
}

func (o *momentum) update(weights, gradient []float64) {
	for i, g := range gradient {
		o.velocity[i] = o.keep*o.velocity[i] - o.lr*g
		weights[i] += o.velocity[i]
	}
}

// adam is the method of Kingma and Ba (2015), with their constants.
type adam struct {
	lr           float64
	mean, square []float64
	n            float64
}

func (o *adam) update(weights, gradient []float64) {
	const beta1, beta2, epsilon = 0.9, 0.999, 1e-8
	o.n++
	rate := o.lr * math.Sqrt(1-math.Pow(beta2, o.n)) / (1 - math.Pow(beta1, o.n))
	for i, g := range gradient {
		o.mean[i] += (1 - beta1) * (g - o.mean[i])
		o.square[i] += (1 - beta2) * (g*g - o.square[i])
		weights[i] -= rate * o.mean[i] / (math.Sqrt(o.square[i]) + epsilon)
	}
}
