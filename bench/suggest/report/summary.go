package report

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/vernier-ml/vernier/bench/suggest/stat"
)

// row is what a method did in a group.
type row struct {
	method, version string
	tasks, games    int
	fewest, most    int // seeds of a task
	score, auc      float64
	regret          float64 // median of log10 over tasks of the median over seeds
	success         float64
	rank            float64 // NaN unless it played all tasks that the others played
	cpu, tail       float64 // seconds for a suggestion: median over games of p50 and p95
	errors          int
	why             string // the last error
	ours            bool
}

// difference of our method to another one.
type difference struct {
	against          string
	tasks, seeds     int           // seeds: fewest of a task
	score, regret    stat.Interval // regret: orders of magnitude by which the other's is larger
	mine, its        float64       // mean scores over the tasks and seeds that both played
	families         int
	wins, ties, lost int
	lostOn, wonOn    []string
}

// ours says whether a method is one of this project: the names of peers have the
// version of a package.
func ours(version string) bool { return !slices.Contains([]byte(version), '=') }

// summarise a group: its methods, best score first.
func (b *book) summarise(g Group) []row {
	tasks := b.tasks(g)
	byMethod := map[string]map[task][]game{}
	for _, t := range tasks {
		for _, one := range b.games[t] {
			if byMethod[one.Method] == nil {
				byMethod[one.Method] = map[task][]game{}
			}
			byMethod[one.Method][t] = append(byMethod[one.Method][t], one)
		}
	}
	ranks, _ := b.ranks(tasks)
	var out []row
	for method, games := range byMethod {
		r := rowOf(method, games, tasks)
		r.rank = math.NaN()
		if mean, ok := ranks[method]; ok {
			r.rank = mean
		}
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b row) int { return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.method, b.method)) })
	return out
}

func rowOf(method string, games map[task][]game, tasks []task) row {
	r := row{method: method}
	var scores, aucs, regrets, successes, cpu, tail []float64
	for _, t := range tasks {
		list := games[t]
		if len(list) == 0 {
			continue
		}
		r.tasks++
		if r.tasks == 1 || len(list) < r.fewest {
			r.fewest = len(list)
		}
		r.most = max(r.most, len(list))
		var score, auc, regret, success []float64
		for _, g := range list {
			r.version, r.ours = g.Version, ours(g.Version)
			r.games++
			if g.Error != "" {
				r.errors, r.why = r.errors+1, g.Error
			}
			score, auc, regret = append(score, g.score), append(auc, g.auc), append(regret, g.regret)
			success = append(success, 0)
			if g.success {
				success[len(success)-1] = 1
			}
			if g.CPU.Total > 0 {
				cpu, tail = append(cpu, g.CPU.Median), append(tail, g.CPU.P95)
			}
		}
		scores, aucs = append(scores, stat.Mean(score)), append(aucs, stat.Mean(auc))
		regrets = append(regrets, logRegret(stat.Median(regret)))
		successes = append(successes, stat.Mean(success))
	}
	r.score, r.auc, r.success = stat.Mean(scores), stat.Mean(aucs), stat.Mean(successes)
	r.regret, r.cpu, r.tail = stat.Median(regrets), stat.Median(cpu), stat.Median(tail)
	return r
}

// ranks is the mean rank of each method that played all tasks, over the tasks
// and over the seeds that all of these played; equal scores share ranks. The
// second result is how many tasks there are with such seeds.
func (b *book) ranks(tasks []task) (map[string]float64, int) {
	methods := b.everywhere(tasks)
	sums, counted := map[string]float64{}, 0
	for _, t := range tasks {
		means, seeds := map[string]float64{}, 0.0
		for _, games := range bySeed(b.games[t], methods) {
			if len(games) < len(methods) {
				continue
			}
			regrets := make([]float64, len(games))
			for i, g := range games {
				regrets[i] = math.Max(g.regret, floor)
			}
			for i, r := range stat.Ranks(regrets) {
				means[games[i].Method] += r
			}
			seeds++
		}
		if seeds == 0 {
			continue
		}
		counted++
		for m, sum := range means {
			sums[m] += sum / seeds
		}
	}
	for m := range sums {
		sums[m] /= float64(counted)
	}
	return sums, counted
}

// everywhere are the methods that played all tasks, not always in vain.
func (b *book) everywhere(tasks []task) map[string]bool {
	played := map[string]map[task]bool{}
	for _, t := range tasks {
		for _, g := range b.games[t] {
			if played[g.Method] == nil {
				played[g.Method] = map[task]bool{}
			}
			played[g.Method][t] = played[g.Method][t] || len(g.Path) > 0
		}
	}
	out := map[string]bool{}
	for m, on := range played {
		out[m] = len(on) == len(tasks) && !slices.Contains(slices.Collect(maps.Values(on)), false)
	}
	maps.DeleteFunc(out, func(_ string, all bool) bool { return !all })
	return out
}

func bySeed(games []game, methods map[string]bool) map[uint64][]game {
	out := map[uint64][]game{}
	for _, g := range games {
		if methods[g.Method] {
			out[g.Seed] = append(out[g.Seed], g)
		}
	}
	return out
}

// compare the reference with another method over the tasks and seeds that both
// played. A task is won or lost when the signed-rank test over its seeds says
// so at 5 %, after Holm's correction for the number of tasks.
func (b *book) compare(tasks []task, reference, other string) difference {
	d := difference{against: other}
	clusters, decades := map[string][][]float64{}, map[string][][]float64{}
	var order []string
	var p, sign, mine, its []float64
	var names []string
	for _, t := range tasks {
		scores, regrets, own := paired(b.games[t], reference, other)
		if len(scores) == 0 {
			continue
		}
		mine, its = append(mine, own), append(its, own-stat.Mean(scores))
		if d.seeds == 0 || len(scores) < d.seeds {
			d.seeds = len(scores)
		}
		family := b.families[t.problem]
		if clusters[family] == nil {
			order = append(order, family)
		}
		clusters[family] = append(clusters[family], scores)
		decades[family] = append(decades[family], regrets)
		p = append(p, stat.Wilcoxon(regrets))
		sign = append(sign, stat.Mean(regrets))
		names = append(names, t.problem+" ("+t.regime+")")
	}
	if d.tasks = len(names); d.tasks == 0 {
		return d
	}
	d.mine, d.its = stat.Mean(mine), stat.Mean(its)
	for i, q := range stat.Holm(p) {
		switch {
		case q > 0.05:
			d.ties++
		case sign[i] > 0:
			d.wins, d.wonOn = d.wins+1, append(d.wonOn, names[i])
		default:
			d.lost, d.lostOn = d.lost+1, append(d.lostOn, names[i])
		}
	}
	d.families = len(order)
	inOrder := func(of map[string][][]float64) [][][]float64 {
		list := make([][][]float64, len(order))
		for i, family := range order {
			list[i] = of[family]
		}
		return list
	}
	d.score = stat.ClusterBootstrap(inOrder(clusters), 2000)
	d.regret = stat.ClusterBootstrap(inOrder(decades), 2000)
	return d
}

// paired are the differences for each seed that both played: of scores, and of
// how many orders of magnitude the other's regret is larger. own is the mean
// score of the reference on these seeds.
func paired(games []game, reference, other string) (scores, regrets []float64, own float64) {
	bySeed := map[uint64]game{}
	for _, g := range games {
		if g.Method == other {
			bySeed[g.Seed] = g
		}
	}
	games = slices.SortedFunc(slices.Values(games), func(a, b game) int { return cmp.Compare(a.Seed, b.Seed) })
	for _, g := range games {
		if theirs, ok := bySeed[g.Seed]; ok && g.Method == reference {
			scores = append(scores, g.score-theirs.score)
			regrets = append(regrets, logRegret(theirs.regret)-logRegret(g.regret))
			own += g.score
		}
	}
	return scores, regrets, own / float64(len(scores))
}

// anytime is the mean score over tasks and seeds after each hundredth of the
// budget.
func (b *book) anytime(tasks []task, method string) []float64 {
	out := make([]float64, 101)
	n := 0.0
	for _, t := range tasks {
		var list []game
		for _, g := range b.games[t] {
			if g.Method == method {
				list = append(list, g)
			}
		}
		if len(list) == 0 {
			continue
		}
		n++
		for i := range out {
			for _, r := range list {
				out[i] += r.scale.score(r.After(float64(r.Budget)*float64(i)/100)) / float64(len(list))
			}
		}
	}
	for i := range out {
		out[i] /= n
	}
	return out
}

// enough families for an interval to mean anything.
const enough = 3

// verdict says what the interval of the scores shows.
func (d difference) verdict() string {
	switch {
	case d.families < enough:
		return "too few families to tell"
	case d.seeds < fewSeeds:
		return "too few seeds to tell"
	case d.score.Low > 0:
		return "ahead"
	case d.score.High < 0:
		return "**behind**"
	}
	return "no difference shown"
}
