package study

import (
	"context"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/algorithm"
	"github.com/vernier-ml/vernier/suggest/stop"
)

// Method is a search algorithm or an early stopping rule.
type Method struct {
	Name     string
	Summary  string // in a sentence
	Settings []suggest.SettingHelp
}

// Methods are the search algorithms and the early stopping rules, by name.
func Methods() (algorithms, rules []Method) {
	for _, r := range algorithm.All() {
		algorithms = append(algorithms, Method{r.Name, r.Summary, r.Settings})
	}
	for _, r := range stop.All() {
		rules = append(rules, Method{r.Name, r.Summary, r.Settings})
	}
	return algorithms, rules
}

// Size is the number of points in the search space; infinitely many give false.
func (s *Study) Size() (points uint64, finite bool) { return s.base.Space.Size() }

// Preview is what the algorithm proposes first, before any trial is made: at most n
// points. An algorithm that is a service is not asked.
func (s *Study) Preview(ctx context.Context, n int) ([]Proposal, error) {
	if s.outside {
		return nil, nil
	}
	return s.Propose(ctx, n)
}
