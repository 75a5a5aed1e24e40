// Package peer knows the other tuners that the benchmark plays against: what
// they are called, what they need, and how to start them.
package peer

import (
	"fmt"
	"path/filepath"

	"github.com/vernier-ml/vernier/bench/suggest/play"
)

// Peer is a tuner in Python.
type Peer struct {
	// Name by which peer.py knows it.
	Name string
	// Environment that it runs in.
	Environment string
	// Suites that it can play; empty: s1, s2, s3 and s6.
	Suites []string
}

// All peers, by name.
func All() []Peer {
	return []Peer{
		{Name: "hyperopt-tpe", Environment: "hyperopt"},
		{Name: "optuna-auto", Environment: "optuna"},
		{Name: "optuna-cmaes", Environment: "optuna"},
		{Name: "optuna-gp", Environment: "optuna"},
		{Name: "optuna-gp-deterministic", Environment: "optuna"},
		{Name: "optuna-nsga2", Environment: "optuna"},
		{Name: "optuna-random", Environment: "optuna"},
		{Name: "optuna-tpe", Environment: "optuna"},
		{Name: "optuna-tpe-group", Environment: "optuna"},
		{Name: "skopt-gp", Environment: "skopt"},
	}
}

// Get finds a peer.
func Get(name string) (Peer, error) {
	for _, p := range All() {
		if p.Name == name {
			return p, nil
		}
	}
	return Peer{}, fmt.Errorf("there is no peer %q; the command list shows what there is", name)
}

// Scikit is the environment of the trainings of the suite S6.
const Scikit = "scikit-learn"

// quiet is the environment of all programs in Python: one thread, as ours has,
// because the machine runs one game for each core.
func quiet() []string {
	return []string{"OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1", "MKL_NUM_THREADS=1", "PYTHONWARNINGS=ignore"}
}

// Learner trains models.
func Learner(python, folder string) *play.Learner {
	return &play.Learner{Process: play.Process{
		Command: []string{python, filepath.Join(folder, "learn.py")}, Algorithm: "the training", Env: quiet(),
	}}
}

// Open starts games of the peer with a Python interpreter; folder has peer.py.
func (p Peer) Open(python, folder string) *play.Process {
	return &play.Process{
		Command:   []string{python, filepath.Join(folder, "peer.py"), p.Name},
		Algorithm: p.Name,
		Env:       quiet(),
	}
}
