package population

import (
	"cmp"
	"slices"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/numeric/pareto"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
	"github.com/vernier-ml/vernier/suggest/propose"
)

// NSGA2 is the registration of the algorithm.
func NSGA2() propose.Registration {
	return propose.Registration{
		Name:       "nsga2",
		Summary:    "A genetic algorithm that keeps the trials which no other beats in all objectives, and of these the ones with the most room (NSGA-II). For two or three objectives and many trials; works with one.",
		New:        newNsga2,
		Settings:   geneticSettings(),
		Adaptive:   true,
		Evolves:    true,
		Exhaustive: true,
	}
}

func newNsga2(space suggest.Space, settings suggest.Settings) (suggest.Algorithm, error) {
	return newGenetic("nsga2", space, settings, surviveByCrowding)
}

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
