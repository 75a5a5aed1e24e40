package fidelity

import (
	"github.com/vernier-ml/vernier/suggest/propose"
)

import "github.com/vernier-ml/vernier/suggest"

// SuccessiveHalving is the registration of the algorithm.
func SuccessiveHalving() propose.Registration {
	return propose.Registration{
		Name:    "successive-halving",
		Summary: "Tries a number of points for a short time, the best third of them three times as long, and so on, rung by rung. For trials that can be short and whose beginning tells much.",
		New:     newSuccessiveHalving,
		Settings: fidelitySettings(propose.Setting{
			Name: "n_points", Default: "so many that one gets the whole resource",
			Help: "How many points a bracket begins with, a whole number of at least 1.",
		}),
		Adaptive: true, Exhaustive: true, MultiFidelity: true, FirstObjective: true,
	}
}

// newSuccessiveHalving builds synchronous successive halving (Jamieson and
// Talwalkar, "Non-stochastic best arm identification and hyperparameter
// optimization", AISTATS 2016): hyperband with the bracket of the most halvings
// alone, which is repeated, and begun again while it waits.
func newSuccessiveHalving(space suggest.Space, settings suggest.Settings) (suggest.Algorithm, error) {
	r := settings.Read()
	given := r.Int("n_points", 0, suggest.Range{Min: 1, Max: maxResource})
	f, err := readFidelity(space, r)
	if err != nil {
		return nil, err
	}
	kind := bracketKind{halvings: f.depth, points: 1}
	for range f.depth {
		kind.points *= f.eta
	}
	if given > 0 {
		kind.points = given
	}
	return &hyperband{fidelity: f, kinds: []bracketKind{kind}}, nil
}
