package stop

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/numeric/normal"
)

// wilcoxon is for objectives that are a mean over folds or instances, one at
// each step: it stops a trial that is significantly worse than the best one by
// Wilcoxon's signed-rank test (Biometrics Bulletin 1, 1945) on the steps that
// both have, unless its average so far is better.
type wilcoxon struct {
	p     float64
	steps int
}

func wilcoxonRegistration() Registration {
	return Registration{
		Name:    "wilcoxon",
		Summary: "Stops a trial that is significantly worse than the best one, step by step (signed-rank test). For objectives that average over folds or instances, one at each step.",
		Settings: []suggest.SettingHelp{
			{Name: "p_threshold", Default: "0.1", Help: "The trial stops when the test's p-value is below it, above 0 and below 1."},
			{Name: startStep, Default: "2", Help: "How many steps both trials must have reported, a whole number of at least 2."},
		},
		New: suggest.ReadingStopper(func(r *suggest.SettingsReader) suggest.Stopper {
			return wilcoxon{p: r.Float("p_threshold", 0.1, suggest.Between(0, 1)), steps: int(r.Int(startStep, 2, suggest.AtLeast(2)))}
		}),
	}
}

// Stop implements suggest.Stopper.
func (w wilcoxon) Stop(s suggest.Study, t *suggest.Trial) (stop bool, why string) {
	o := objective(s)
	own := readCourse(o, t.Curve)
	best, number := bestCourse(s, t)
	differences := paired(own, best)
	if len(differences) < w.steps || own.mean() <= best.mean() {
		return false, ""
	}
	p := signedRank(differences)
	if p >= w.p {
		return false, ""
	}
	return true, fmt.Sprintf("on the %d steps that both have it is worse than trial %d, the best one: the signed-rank test gives p = %.2g, below %.4g",
		len(differences), number, p, w.p)
}

// bestCourse is what the best of the other trials that succeeded reported, and
// its number: the one with the best value or, without values, the best mean.
// Equal ones: that with the lower number.
func bestCourse(s suggest.Study, t *suggest.Trial) (best course, number int) {
	o := objective(s)
	least := math.Inf(1)
	for other := range others(s, t) {
		if other.State != suggest.Succeeded || len(other.Curve) == 0 {
			continue
		}
		c := readCourse(o, other.Curve)
		value := c.mean()
		if len(other.Values) > 0 {
			value = loss(o, other.Values[0])
		}
		if math.IsInf(value, 1) {
			continue
		}
		if value < least || value == least && other.Number < number {
			least, best, number = value, c, other.Number
		}
	}
	return best, number
}

// paired are the differences of the losses on the steps that both have:
// positive where a is worse.
func paired(a, b course) []float64 {
	var out []float64
	for i, j := 0, 0; i < a.len() && j < b.len(); {
		switch {
		case a.step(i) < b.step(j):
			i++
		case a.step(i) > b.step(j):
			j++
		default:
			d := 0.0 // also where neither is a number
			if a.loss(i) != b.loss(j) {
				d = a.loss(i) - b.loss(j)
			}
			out = append(out, d)
			i++
			j++
		}
	}
	return out
}

// exactPairs is up to how many pairs the test's distribution is exact.
const exactPairs = 25

// signedRank is the p-value of Wilcoxon's signed-rank test against the
// alternative that the differences lie above zero. Equal sizes share their mean
// rank. Differences of zero are ranked too, and their ranks count half for each
// side (Pratt 1959; SciPy's zsplit). Up to exactPairs pairs it is exact given the
// ranks, beyond that by the normal approximation.
func signedRank(differences []float64) float64 {
	ranks := doubledRanks(differences)
	above, free := 0, ranks[:0:0] // the doubled rank sum, and the ranks that have a sign
	for i, d := range differences {
		switch {
		case d > 0:
			above += ranks[i]
			free = append(free, ranks[i])
		case d < 0:
			free = append(free, ranks[i])
		}
	}
	if len(free) == 0 {
		return 1
	}
	if len(differences) <= exactPairs {
		return tail(free, above)
	}
	mean, variance := 0.0, 0.0
	for _, r := range free {
		mean += float64(r) / 2
		variance += float64(r) * float64(r) / 4
	}
	return normal.Below((mean - float64(above)) / math.Sqrt(variance))
}

// doubledRanks are twice the ranks of the sizes of the differences, so that
// mean ranks stay whole.
func doubledRanks(differences []float64) []int {
	order := make([]int, len(differences))
	for i := range order {
		order[i] = i
	}
	size := func(i int) float64 { return math.Abs(differences[order[i]]) }
	slices.SortFunc(order, func(i, j int) int {
		return cmp.Or(cmp.Compare(math.Abs(differences[i]), math.Abs(differences[j])), i-j)
	})
	ranks := make([]int, len(differences))
	for i := 0; i < len(order); {
		j := i
		for j < len(order) && size(j) == size(i) {
			j++
		}
		for k := i; k < j; k++ {
			ranks[order[k]] = i + 1 + j // twice the mean of i+1 ... j
		}
		i = j
	}
	return ranks
}

// tail is the probability that random signs give the ranks a positive sum of at
// least least.
func tail(ranks []int, least int) float64 {
	sum := 0
	for _, r := range ranks {
		sum += r
	}
	ways := make([]float64, sum+1)
	ways[0] = 1
	for _, r := range ranks {
		for w := sum; w >= r; w-- {
			ways[w] += ways[w-r]
		}
	}
	more := 0.0
	for _, n := range ways[min(least, sum+1):] {
		more += n
	}
	return more / math.Ldexp(1, len(ranks))
}
