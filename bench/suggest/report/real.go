package report

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"

	gonum "gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/vernier-ml/vernier/bench/suggest/play"
	"github.com/vernier-ml/vernier/bench/suggest/problem"
	"github.com/vernier-ml/vernier/bench/suggest/stat"
)

// reference is the method that is compared with all others.
const reference = "auto"

// fewestFamilies is below how many families there is no verdict.
const fewestFamilies = 10

// PrintReal shows, in Markdown, how the methods did on real tasks: on live trainings,
// on tables and on both. Before that it says what broke off.
func PrintReal(out io.Writer, records []play.Record) error {
	tasks := map[string]*problem.Problem{}
	for _, p := range slices.Concat(problem.Real(false), problem.Real(true), problem.CurveTrainings()) {
		tasks[p.Name] = p
	}
	records = slices.DeleteFunc(slices.Clone(records), func(r play.Record) bool { return tasks[r.Problem] == nil })
	var p page
	broken, why := map[string]int{}, map[string]string{}
	for _, r := range records {
		if r.Error != "" {
			broken[r.Method]++
			why[r.Method] = short(r.Error)
		}
	}
	for _, m := range slices.Sorted(maps.Keys(broken)) {
		p.line("`%s` broke off in %d games, which do not count for it: %s\n", m, broken[m], why[m])
	}
	regimes := map[string][]play.Record{}
	for _, r := range records {
		regimes[r.Regime] = append(regimes[r.Regime], r)
	}
	for _, name := range slices.Sorted(maps.Keys(regimes)) {
		if len(regimes) > 1 {
			p.line("### Regime %s\n", name)
		}
		realSections(&p, regimes[name], tasks)
	}
	_, err := io.WriteString(out, p.String())
	return err
}

// realSections show the games of one regime by suite, and all of them.
func realSections(p *page, records []play.Record, tasks map[string]*problem.Problem) {
	for _, part := range []struct{ title, suite string }{
		{"Live trainings", problem.Live}, {"Tables of trainings", problem.Tabular}, {"Learning curves", problem.LiveCurves}, {"All real tasks", ""},
	} {
		list := slices.DeleteFunc(slices.Clone(records), func(r play.Record) bool { return part.suite != "" && r.Suite != part.suite })
		if part.suite == "" && !slices.ContainsFunc(list, func(r play.Record) bool { return r.Suite != list[0].Suite }) {
			continue // one of the suites is all there is
		}
		realSection(p, part.title, list, tasks)
		if part.suite == problem.Tabular {
			noiseSection(p, list)
		}
		if part.suite == problem.LiveCurves {
			thirdSection(p, list, tasks)
		}
	}
}

// realGame is one task under one seed, with the path of each method.
type realGame struct {
	family string
	paths  []play.Path
}

func realSection(p *page, title string, records []play.Record, tasks map[string]*problem.Problem) {
	methods, games := realGames(records, tasks)
	if len(methods) == 0 {
		return
	}
	p.line("#### %s\n", title)
	times := realTimes(records)
	if len(games) > 0 {
		rankTable(p, methods, games, times, records[0].Suite == problem.LiveCurves)
	}
	if !slices.Contains(methods, reference) {
		return
	}
	var rows [][]string
	for _, m := range methods {
		if m == reference {
			continue
		}
		pair, both := realGames(slices.DeleteFunc(slices.Clone(records), func(r play.Record) bool { return r.Method != reference && r.Method != m }), tasks)
		mine, families := slices.Index(pair, reference), familiesOf(both)
		if families < 2 {
			continue
		}
		for _, at := range times {
			wins, trials := compared(both, mine, 1-mine, float64(at), float64(at))
			rows = append(rows, []string{m, fmt.Sprint(at), fmt.Sprint(len(both)), wins.percent(), trials.times(), wins.verdict(families)})
		}
	}
	if len(rows) == 0 {
		return
	}
	p.line("`%s` against each, in all games that both have played, with 95 %% intervals whose unit is the family: games won (half a game where equal), and how many trials it takes to the loss that both reach, as a multiple of the other's.\n", reference)
	p.table([]string{"against", "after", "games", "won", "trials", ""}, rows)
}

// rankTable shows the mean ranks of the methods in the games that all of them have played.
func rankTable(p *page, methods []string, games []realGame, times []int, curves bool) {
	p.line("%d games of %d families. Mean rank by the loss of the recommended point:\n", len(games), familiesOf(games))
	unit := "trials"
	if curves {
		unit = "full trainings"
	}
	var rows [][]string
	for _, at := range times {
		cells := []string{fmt.Sprint(at)}
		for _, r := range meanRanks(games, len(methods), float64(at)) {
			cells = append(cells, fmt.Sprintf("%.2f", r))
		}
		rows = append(rows, cells)
	}
	p.table(append([]string{unit}, methods...), rows)
}

// thirdSection compares what methods have for a third of the cost of all full trainings
// with what the reference has for all of it, without stopping any.
func thirdSection(p *page, records []play.Record, tasks map[string]*problem.Problem) {
	methods, games := realGames(records, tasks)
	mine := slices.Index(methods, reference)
	if mine < 0 || len(games) == 0 {
		return
	}
	all := float64(records[0].Budget)
	var rows [][]string
	for k, m := range methods {
		wins, _ := compared(games, k, mine, all/3, all)
		rows = append(rows, []string{m, wins.percent(), wins.verdict(familiesOf(games))})
	}
	p.line("Games in which a method has, after a third of the cost, a better loss than `%s` after the cost of %.0f full trainings:\n", reference, all)
	p.table([]string{"after a third", "games won", ""}, rows)
}

// realTimes are the numbers of trials after which methods are compared, as far as
// all games have so many.
func realTimes(records []play.Record) []int {
	times := []int{15, 25, 50, 100}
	if records[0].Suite == problem.LiveCurves {
		times = []int{17, 50}
	}
	return slices.DeleteFunc(times, func(n int) bool {
		return slices.ContainsFunc(records, func(r play.Record) bool { return r.Budget < n })
	})
}

// realGames are the games that all methods have played to the end.
func realGames(records []play.Record, tasks map[string]*problem.Problem) (methods []string, games []realGame) {
	byGame := map[play.Key]map[string]play.Path{}
	for _, r := range records {
		if !slices.Contains(methods, r.Method) {
			methods = append(methods, r.Method)
		}
		k := r.Key
		k.Method, k.Version = "", ""
		if byGame[k] == nil {
			byGame[k] = map[string]play.Path{}
		}
		if r.Error == "" {
			byGame[k][r.Method] = r.Path
		}
	}
	slices.Sort(methods)
	keys := slices.SortedFunc(maps.Keys(byGame), func(a, b play.Key) int {
		return cmp.Or(cmp.Compare(a.Problem, b.Problem), cmp.Compare(a.Seed, b.Seed))
	})
	for _, k := range keys {
		if len(byGame[k]) < len(methods) {
			continue
		}
		g := realGame{family: tasks[k.Problem].Family}
		for _, m := range methods {
			g.paths = append(g.paths, byGame[k][m])
		}
		games = append(games, g)
	}
	return methods, games
}

func familiesOf(games []realGame) int {
	seen := map[string]bool{}
	for _, g := range games {
		seen[g.family] = true
	}
	return len(seen)
}

// meanRanks of the methods by the loss after some trials. Equal losses share the
// mean of their ranks.
func meanRanks(games []realGame, methods int, at float64) []float64 {
	out := make([]float64, methods)
	for _, g := range games {
		losses := make([]float64, methods)
		for i, p := range g.paths {
			losses[i] = p.After(at)
		}
		for i, r := range stat.Ranks(losses) {
			out[i] += r / float64(len(games))
		}
	}
	return out
}

// compared is method i after some trials with method k after its own number of them: the
// share of games that i wins, and the logarithm of the multiple of trials, by family.
func compared(games []realGame, i, k int, at, itsAt float64) (wins, trials interval) {
	won, logs := map[string][]float64{}, map[string][]float64{}
	for _, g := range games {
		mine, its := g.paths[i].After(at), g.paths[k].After(itsAt)
		share := 0.5
		switch {
		case mine < its:
			share = 1
		case mine > its:
			share = 0
		}
		won[g.family] = append(won[g.family], share)
		if worse := math.Max(mine, its); !math.IsInf(worse, 1) {
			logs[g.family] = append(logs[g.family], math.Log(first(g.paths[i], worse)/first(g.paths[k], worse)))
		}
	}
	return overFamilies(won), overFamilies(logs)
}

// first is when a path comes to a loss.
func first(p play.Path, loss float64) float64 {
	for _, s := range p {
		if s[1] <= loss {
			return s[0]
		}
	}
	return math.NaN()
}

// interval of a mean.
type interval struct{ mean, low, high float64 }

// overFamilies is Student's interval of the mean of the families' means.
func overFamilies(byFamily map[string][]float64) interval {
	var means []float64
	for _, f := range slices.Sorted(maps.Keys(byFamily)) {
		means = append(means, gonum.Mean(byFamily[f], nil))
	}
	n := float64(len(means))
	mean, deviation := gonum.MeanStdDev(means, nil)
	half := math.NaN()
	if n > 1 {
		half = distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n - 1}.Quantile(0.975) * gonum.StdErr(deviation, n)
	}
	return interval{mean, mean - half, mean + half}
}

func (v interval) percent() string {
	return fmt.Sprintf("%.0f %% (%.0f to %.0f)", 100*v.mean, 100*v.low, 100*v.high)
}

func (v interval) times() string {
	return fmt.Sprintf("%.2f (%.2f to %.2f)", math.Exp(v.mean), math.Exp(v.low), math.Exp(v.high))
}

func (v interval) verdict(families int) string {
	switch {
	case families < fewestFamilies:
		return "too few families to tell"
	case v.low > 0.5:
		return "ahead"
	case v.high < 0.5:
		return "behind"
	}
	return "no difference shown"
}
