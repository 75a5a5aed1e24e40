package report

import (
	"fmt"
	"strings"
)

// rivalry is one of our algorithms with what other tuners have in its place.
type rivalry struct {
	ours  string
	peers []string
}

// rivalries are fixed, so that nobody chooses them after a run.
func rivalries() []rivalry {
	processes := []string{"optuna-gp", "optuna-gp-deterministic", "ax-default", "hebo-default", "vizier-default", "skopt-gp", "smac-gp", "smac-forest", "bayesopt-default"}
	return []rivalry{
		{"tpe", []string{"optuna-tpe", "hyperopt-tpe", "goptuna-tpe"}},
		{"multivariate-tpe", []string{"optuna-tpe", "optuna-tpe-group"}},
		{"cmaes", []string{"optuna-cmaes", "goptuna-cmaes", "cmaes-bipop", "cmaes-margin"}},
		{"bayesianoptimization", processes},
		{"auto", append([]string{"optuna-auto", "nevergrad-ngopt"}, processes...)},
		{"nsga2", []string{"optuna-nsga2"}},
		{"asha", []string{"synetune-asha", "optuna-random+asha"}},
		{"auto+asha", []string{"optuna-tpe+asha"}},
		{"mobster", []string{"synetune-mobster", "synetune-hypertune", "optuna-tpe+asha"}},
		{"hyperband", []string{"optuna-tpe+hyperband"}},
		{"dehb", []string{"dehb-default"}},
	}
}

// rivals are the peers' equivalents of a method.
func rivals(method string) []string {
	for _, r := range rivalries() {
		if r.ours == method {
			return r.peers
		}
	}
	return nil
}

// equivalents compares each algorithm with what the peers have in its place.
func (b *book) equivalents(p *page) {
	var cells [][]string
	var lost []string
	for _, r := range rivalries() {
		for _, other := range r.peers {
			for _, g := range Groups() {
				d := b.compare(b.tasks(g), r.ours, other)
				if d.tasks == 0 {
					continue
				}
				cells = append(cells, []string{
					"**" + r.ours + "**", other, g.Title, fmt.Sprint(d.tasks), fmt.Sprint(d.seeds), between(d.score), d.verdict(), between(d.regret), d.record(),
				})
				if d.lost > 0 {
					lost = append(lost, fmt.Sprintf("- `%s` to %s: %s", r.ours, other, strings.Join(d.lostOn, ", ")))
				}
			}
		}
	}
	if len(cells) == 0 {
		return
	}
	p.line("### Each algorithm against the peers' own\n")
	p.line("Differences as above: positive when ours is better.\n")
	p.table([]string{"ours", "against", "regime", "tasks", "seeds", "score", "", "orders of magnitude", "won / drawn / lost"}, cells)
	if len(lost) > 0 {
		p.line("Tasks lost:\n\n%s\n", strings.Join(lost, "\n"))
	}
}
