package population

import (
	"cmp"
	"slices"

	"github.com/vernier-ml/vernier/suggest/numeric/pareto"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

// crowdedMost is how many objectives the crowding distance is for.
const crowdedMost = 3

// surviveByCrowding keeps whole fronts and, of the first one that does not fit,
// those with the largest crowding distance (Deb et al., "A fast and elitist
// multiobjective genetic algorithm: NSGA-II", 2002, section III C).
func surviveByCrowding(ranked []survivor, population int, _ rng.Key) []survivor {
	if len(ranked) > 0 && len(ranked[0].Losses) > crowdedMost {
		return surviveByRoom(ranked, population)
	}
	var out []survivor
	for _, front := range frontsOf(ranked) {
		if front[0].Losses != nil {
			for i, d := range pareto.Crowding(lossesOfMembers(front)) {
				front[i].crowd = d
			}
		}
		if len(out)+len(front) > population {
			slices.SortStableFunc(front, func(a, b survivor) int { return cmp.Compare(b.crowd, a.crowd) })
			return append(out, front[:population-len(out)]...)
		}
		out = append(out, front...)
	}
	return out
}
