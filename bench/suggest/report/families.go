package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/vernier-ml/vernier/bench/suggest/problem"
	"github.com/vernier-ml/vernier/bench/suggest/stat"
)

// judged are the methods that are held against random on each family, as far as
// they played.
func judged() []string {
	return []string{"auto", "mobster", "auto+asha", "tpe", "cmaes", "multivariate-tpe", "nsga2"}
}

// fewSeeds are the fewest that an interval is made of.
const fewSeeds = 5

// overRandom is what a method's score is above that of random search on tasks
// of one family, and the fewest seeds of a task. Tasks are what they are; the
// interval is over seeds. Tasks with too few seeds for it are left out.
func (b *book) overRandom(tasks []task, method string) (i stat.Interval, seeds int) {
	var family [][]float64
	for _, t := range tasks {
		scores, _, _ := paired(b.games[t], method, "random")
		if len(scores) < fewSeeds {
			continue
		}
		if family = append(family, scores); seeds == 0 || len(scores) < seeds {
			seeds = len(scores)
		}
	}
	if seeds == 0 {
		return stat.Interval{}, 0
	}
	return stat.ClusterBootstrap([][][]float64{family}, 2000), seeds
}

// family of problems in a suite, with its tasks.
type family struct {
	suite, name string
	tasks       []task
}

// allFamilies in order of suite and name.
func (b *book) allFamilies() []family {
	byName := map[[2]string][]task{}
	for t, games := range b.games {
		key := [2]string{games[0].Suite, b.families[t.problem]}
		byName[key] = append(byName[key], t)
	}
	var out []family
	keys := slices.SortedFunc(maps.Keys(byName), func(a, b [2]string) int { return strings.Compare(a[0]+" "+a[1], b[0]+" "+b[1]) })
	for _, key := range keys {
		slices.SortFunc(byName[key], task.compare)
		out = append(out, family{key[0], key[1], byName[key]})
	}
	return out
}

// againstRandom is a table for each suite: how far our methods are above random
// search on each family of problems.
func (b *book) againstRandom(p *page) {
	v := verdicts{shown: map[string]int{}, total: map[string]int{}}
	families := b.allFamilies()
	var text page
	for _, suite := range problem.Suites() {
		var rows [][]string
		methods := b.judgedIn(families, suite)
		for _, f := range families {
			if f.suite != suite {
				continue
			}
			if row, ok := b.familyRow(f, methods, &v); ok {
				rows = append(rows, row)
			}
		}
		if len(rows) > 0 {
			text.table(append([]string{"family of " + suite, "tasks", "seeds"}, methods...), rows)
		}
	}
	if len(v.total) == 0 {
		return
	}
	p.line("### Against random search, family by family\n")
	p.line("Score above that of random search on the same seeds, with 95 %% intervals over the seeds, over all regimes in which the family was played with at least %d seeds.\n", fewSeeds)
	for _, m := range judged() {
		if v.total[m] > 0 {
			p.line("- `%s`: shown to be better on %d of %d families", m, v.shown[m], v.total[m])
		}
	}
	p.line("- shown to be worse: %s", list(v.worse))
	p.line("- neither shown: %s\n", list(v.open))
	p.WriteString(text.String())
}

// verdicts counts what the intervals show.
type verdicts struct {
	shown, total map[string]int
	worse, open  []string
}

// familyRow is a row of the table; none when no method played enough seeds.
func (b *book) familyRow(f family, methods []string, v *verdicts) (row []string, ok bool) {
	most := 0
	var cells []string
	for _, m := range methods {
		i, seeds := b.overRandom(f.tasks, m)
		if seeds == 0 {
			cells = append(cells, "")
			continue
		}
		most = max(most, seeds)
		v.total[m]++
		switch where := fmt.Sprintf("`%s` on %s", m, f.name); {
		case i.Low > 0:
			v.shown[m]++
		case i.High < 0:
			v.worse = append(v.worse, where)
		default:
			v.open = append(v.open, where)
		}
		cells = append(cells, fmt.Sprintf("%+.1f (%+.1f to %+.1f)", i.Mean, i.Low, i.High))
	}
	return append([]string{f.name, fmt.Sprint(len(f.tasks)), fmt.Sprint(most)}, cells...), most > 0
}

// judgedIn are the methods with games of the suite beside those of random search.
func (b *book) judgedIn(families []family, suite string) []string {
	return slices.DeleteFunc(judged(), func(m string) bool {
		return !slices.ContainsFunc(families, func(f family) bool {
			_, seeds := b.overRandom(f.tasks, m)
			return f.suite == suite && seeds > 0
		})
	})
}

func list(words []string) string {
	if len(words) == 0 {
		return "none"
	}
	return strings.Join(words, ", ")
}
