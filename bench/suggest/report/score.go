// Package report turns the results of the benchmark into scores, tables and
// plots.
package report

import (
	"cmp"
	"math"
	"slices"

	"github.com/vernier-ml/vernier/bench/suggest/play"
	"github.com/vernier-ml/vernier/bench/suggest/problem"
)

// Group is a part of the benchmark whose tasks are averaged.
type Group struct {
	Name string
	// Title of its section.
	Title   string
	suites  []string
	regimes []string
	// instead of the method that is compared with all others elsewhere.
	instead string
}

// Groups are the six regimes that count, and some more.
func Groups() []Group {
	return []Group{
		{"continuous", "Sequential, continuous", []string{problem.Continuous}, []string{play.Sequential}, ""},
		{"mixed", "Sequential, mixed and conditional", []string{problem.Mixed}, []string{play.Sequential}, ""},
		{"parallel", "Parallel: 8 to 64 at once", []string{problem.Continuous, problem.Mixed}, []string{play.BatchOf8, play.Async32, play.Async64}, ""},
		{"large", "2,000 evaluations", []string{problem.Continuous}, []string{play.Large}, ""},
		{"fidelity", "Multi-fidelity, for the cost of 50 full trainings", []string{problem.Fidelity}, []string{play.Fidelity8}, "auto+asha"},
		{"fronts", "Several objectives", []string{problem.MultiObjective}, []string{play.Fronts}, ""},
		{"gp", "Beside Gaussian processes: 60 evaluations", []string{problem.Continuous, problem.Mixed}, []string{play.Short}, ""},
		{"gp-batch", "Beside Gaussian processes: 40 evaluations, 8 at a time", []string{problem.Continuous, problem.Mixed}, []string{play.ShortBatch}, ""},
		{"noise", "Noise", []string{problem.Noisy}, []string{play.Sequential}, ""},
	}
}

func (g Group) has(k play.Key) bool {
	return slices.Contains(g.suites, k.Suite) && slices.Contains(g.regimes, k.Regime)
}

// task is what is compared within: equal games but for the method and the seed.
type task struct {
	problem, regime string
	budget          int
}

func (t task) compare(u task) int {
	return cmp.Or(cmp.Compare(t.problem, u.problem), cmp.Compare(t.regime, u.regime), cmp.Compare(t.budget, u.budget))
}

// game is a record with what it is worth.
type game struct {
	play.Record
	scale scale
	// score is 100 where the optimum was found and 0 at the median of single
	// random points or above (the normalised score of bayesmark), and auc its
	// mean over the budget.
	score, auc float64
	regret     float64 // distance to the optimum
	success    bool
}

// scale is how a task's losses become scores.
type scale struct{ best, clip float64 }

func (s scale) score(loss float64) float64 {
	if math.IsInf(loss, 1) {
		return 0 // nothing to recommend yet is no better than a random point
	}
	return 100 * (1 - math.Min(1, math.Max(-1, s.part(loss))))
}

// part is 0 at the best and 1 at the median of random points.
func (s scale) part(loss float64) float64 {
	if s.clip <= s.best {
		return 0
	}
	return (loss - s.best) / (s.clip - s.best)
}

// floor of a regret on the logarithmic scale.
const floor = 1e-8

// book holds all games with what they are worth.
type book struct {
	games    map[task][]game
	families map[string]string // of problems
}

func newBook(records []play.Record) *book {
	problems := map[string]*problem.Problem{}
	b := &book{games: map[task][]game{}, families: map[string]string{}}
	for _, p := range problem.All() {
		problems[p.Name], b.families[p.Name] = p, p.Family
	}
	byTask := map[task][]play.Record{}
	for _, r := range records {
		if problems[r.Problem] == nil || r.Draw != problem.Draw {
			continue // of an older version
		}
		t := task{r.Problem, r.Regime, r.Budget}
		byTask[t] = append(byTask[t], r)
	}
	for t, list := range byTask {
		for _, r := range list {
			p := problems[t.problem].Instance(r.Seed)
			s := scale{best: p.Optimum, clip: problem.RandomMedian(p)}
			b.games[t] = append(b.games[t], s.judge(r))
		}
	}
	return b
}

func (s scale) judge(r play.Record) game {
	g := game{Record: r, scale: s}
	budget := float64(r.Budget)
	end := r.After(budget)
	g.score = s.score(end)
	g.regret = math.Max(0, end-s.best)
	if math.IsInf(end, 1) {
		g.regret = s.clip - s.best
	}
	g.success = s.part(end) <= 0.01
	const parts = 100
	for i := 1; i <= parts; i++ {
		g.auc += s.score(r.After(budget*float64(i)/parts)) / parts
	}
	return g
}

func logRegret(x float64) float64 { return math.Log10(math.Max(x, floor)) }

// tasks of a group that are compared, in order: those that a peer has played.
// Without any they are all of the group.
func (b *book) tasks(g Group) []task {
	all := b.allTasks(g)
	compared := slices.DeleteFunc(slices.Clone(all), func(t task) bool {
		return !slices.ContainsFunc(b.games[t], func(one game) bool { return !ours(one.Version) && one.Error == "" })
	})
	if len(compared) == 0 {
		return all
	}
	return compared
}

func (b *book) allTasks(g Group) []task {
	var out []task
	for t, games := range b.games {
		if g.has(games[0].Key) {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, task.compare)
	return out
}
