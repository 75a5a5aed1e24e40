package main

import (
	"slices"

	"github.com/vernier-ml/vernier/bench/suggest/play"
	"github.com/vernier-ml/vernier/bench/suggest/problem"
)

// entry is one of our methods and what it is meant for.
type entry struct {
	method string
	suites []string
}

// roster is what -method ours stands for. A method that is not registered is
// passed over.
func roster() []entry {
	numbers := []string{problem.Continuous, problem.Mixed, problem.Noisy, problem.Learning}
	return []entry{
		{"auto", problem.Suites()},
		{"bayesianoptimization", append(slices.Clone(numbers), problem.MultiObjective)},
		{"cmaes", numbers},
		{"tpe", numbers},
		{"multivariate-tpe", append(slices.Clone(numbers), problem.MultiObjective)},
		{"random", problem.Suites()},
		{"sobol", []string{problem.Continuous, problem.Mixed}},
		{"asha", []string{problem.Fidelity}},
		{"hyperband", []string{problem.Fidelity}},
		{"pasha", []string{problem.Fidelity}},
		{"bohb", []string{problem.Fidelity}},
		{"mobster", []string{problem.Fidelity}},
		{"dehb", []string{problem.Fidelity}},
		{"multivariate-tpe+asha", []string{problem.Fidelity}},
		{"bayesianoptimization+asha", []string{problem.Fidelity}},
		{"random+asha", []string{problem.Fidelity}},
		{"random+medianstop", []string{problem.Fidelity}},
		{"nsga2", []string{problem.MultiObjective}},
		{"nsga3", []string{problem.MultiObjective}},
		{"parego", []string{problem.MultiObjective}},
	}
}

// oursFrom are the methods with the names, opened in this process.
func (o *options) oursFrom(names []string, version string) ([]method, error) {
	var out []method
	for _, name := range names {
		if name == "ours" {
			for _, e := range roster() {
				if _, err := play.NewOurs(e.method); err != nil {
					continue
				}
				m, err := o.ours(e.method, version)
				if err != nil {
					return nil, err
				}
				m.suits = func(p *problem.Problem, _ play.Regime) bool { return slices.Contains(e.suites, p.Suite) }
				out = append(out, m)
			}
			continue
		}
		m, err := o.ours(name, version)
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}

func (o *options) ours(name, version string) (method, error) {
	ours, err := play.NewOurs(name)
	if err != nil {
		return method{}, err
	}
	ours.Alone = o.jobs == 1
	if ours.Prepared = o.prepared; o.prepared {
		name += " (prepared)"
	}
	return method{
		name: name, version: version,
		open:  func() (play.Opener, error) { return ours, nil },
		suits: func(*problem.Problem, play.Regime) bool { return true },
	}, nil
}
