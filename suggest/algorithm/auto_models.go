package algorithm

import (
	"cmp"
	"math"
	"slices"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/bayes"
)

const (
	// modelsFrom is the first trial that counts for the model that proposed it: most of those
	// before it are spread evenly, whatever the model.
	modelsFrom = 8
	// modelsShared is the first trial that all models share. Before it the Gaussian process
	// has all of them, as it needs the fewest results to be better than points at random.
	modelsShared = 16
	// modelsTogether is from how many parallel trials on the models share the first ones too:
	// trials that do not know of each other's results gain by being of several models.
	modelsTogether = 4
	// modelsTrust is how many trials of average rank each model is taken to have had before.
	modelsTrust = 3
	// modelsSharp says how fast a share falls with the mean rank: from 0 to 1 by e to the
	// power of this.
	modelsSharp = 8
)

// models are the arms that propose while results are few.
var models = []string{bayes.Name, autoForest, "tpe"}

// early picks among the models for few results. None is best everywhere: forests and
// densities where losses have steps and branches, the process where they are smooth. So
// each has a share, which grows with how good the trials are that it proposed in this
// study. What was measured is in docs/benchmarks.md.
func (a *automatic) early(s suggest.Study, number int, now situation) pick {
	arms := []pick{
		{arm: bayes.Name, why: "a Gaussian process, as results are few"},
		{arm: autoForest, why: "a forest, in case the loss has steps"},
		{arm: "tpe", why: "Parzen estimators, in case the loss is rough"},
	}
	shares := []float64{2, 1, 1}
	if a.space.Conditional() {
		arms[1].why, arms[2].why = "a forest, as parameters are conditional", "Parzen estimators, as parameters are conditional"
		shares = []float64{1, 2, 1}
	}
	switch {
	case !now.forest && !a.space.Conditional(), now.forest && number < modelsShared && s.Parallel < modelsTogether:
		return arms[0]
	case now.stopped: // where parameters are conditional, the process is the weaker
		return pick{arm: "tpe", why: "Parzen estimators, as parameters are conditional and trials are stopped early"}
	case !now.forest:
		shares = []float64{1, 0, 2}
	case number >= modelsShared && !now.whole:
		if b := a.starved(s, number); b != nil {
			return pick{arm: b.arm, why: b.why, one: true}
		}
	}
	total := 0.0
	for i := range shares {
		shares[i] *= math.Exp(-modelsSharp * now.ranks[arms[i].arm])
		total += shares[i]
	}
	// The multiples of the golden ratio are spread evenly, so that each model has its share
	// of any few trials that follow each other, and is not tied to every second or third.
	_, at := math.Modf(float64(number) * math.Phi)
	at *= total
	for i, share := range shares {
		if at -= share; at < 0 {
			return arms[i]
		}
	}
	return arms[0]
}

// modelRanks are the mean ranks of the trials that each model proposed among all that have
// ended, from 0, the best, to 1. A trial without a value, or one that violates a constraint,
// is among the worst.
func modelRanks(s suggest.Study) map[string]float64 {
	type result struct {
		arm  string
		loss float64
	}
	var all []result
	for _, t := range s.Trials {
		if !t.State.Finished() || t.State == suggest.Killed {
			continue
		}
		r := result{loss: math.Inf(1)}
		if t.Number >= modelsFrom {
			r.arm = t.Meta[autoMeta]
		}
		if loss, ok := lossOf(s, t); ok {
			r.loss = loss
		}
		all = append(all, r)
	}
	slices.SortStableFunc(all, func(x, y result) int { return cmp.Compare(x.loss, y.loss) })
	sums, counts := map[string]float64{}, map[string]float64{}
	for first := 0; first < len(all); {
		last := first
		for last+1 < len(all) && all[last+1].loss == all[first].loss {
			last++
		}
		for _, r := range all[first : last+1] { // equal ones share their ranks
			sums[r.arm] += float64(first+last+1) / 2 / float64(len(all))
			counts[r.arm]++
		}
		first = last + 1
	}
	mean, count := 0.0, 0.0
	for _, arm := range models {
		mean, count = mean+sums[arm], count+counts[arm]
	}
	out := map[string]float64{}
	for _, arm := range models {
		out[arm] = (sums[arm] + modelsTrust*mean/math.Max(count, 1)) / (counts[arm] + modelsTrust)
	}
	return out
}
