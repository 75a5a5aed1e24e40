// Package algorithm is the registry of the algorithms, and has auto, which picks
// among them. To add one, write its file in the package of its family and name it
// in All; the contract suite then tests it.
package algorithm

import (
	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/bayes"
	"github.com/vernier-ml/vernier/suggest/cmaes"
	"github.com/vernier-ml/vernier/suggest/design"
	"github.com/vernier-ml/vernier/suggest/fidelity"
	"github.com/vernier-ml/vernier/suggest/nas"
	"github.com/vernier-ml/vernier/suggest/population"
	"github.com/vernier-ml/vernier/suggest/propose"
	"github.com/vernier-ml/vernier/suggest/tpe"
)

// All is each algorithm there is, sorted by name.
func All() []propose.Registration {
	all := []propose.Registration{
		fidelity.ASHA(),
		autoRegistration(),
		bayes.Registration(),
		fidelity.BOHB(),
		cmaes.Registration(),
		nas.DARTS(),
		fidelity.DEHB(),
		nas.ENAS(),
		design.Grid(),
		design.Halton(),
		fidelity.Hyperband(),
		fidelity.MOBSTER(),
		tpe.Multivariate(),
		population.NSGA2(),
		population.NSGA3(),
		fidelity.PASHA(),
		population.PB2(),
		population.PBT(),
		design.Random(),
		population.RegularizedEvolution(),
		design.Sobol(),
		fidelity.SuccessiveHalving(),
		tpe.Registration(),
	}
	for i, r := range all {
		all[i].New = dressed(r)
		if r.Name == autoName {
			all[i].New = orShort(all[i].New, dressed(shortened(r)))
		}
	}
	return all
}

// dressed builds an algorithm with what each of its kind has in common.
func dressed(r propose.Registration) suggest.New {
	build := r.New
	switch {
	case Repeatable(r):
		build = repeatingOf(believingOf(r))
	case r.Name == "grid":
		build = believingOf(r)
	}
	return propose.InitialFirst(build)
}

// Repeatable says whether trials of the algorithm may be repeated where they are noisy
// (suggest.Study.Repeats): not where its trials repeat points for reasons of their own,
// nor in a grid, of which all is to be tried.
func Repeatable(r propose.Registration) bool {
	return !r.MultiFidelity && !r.Repeats && r.Name != "grid"
}

// Get finds an algorithm by its name.
func Get(name string) (r propose.Registration, ok bool) { return suggest.Find(All(), name) }

// Names of all algorithms, sorted.
func Names() []string { return suggest.Names(All()) }

// believingOf builds an algorithm that draws trials from the priors of the parameters.
// A grid that is not all of its space has no other points than its own.
func believingOf(r propose.Registration) suggest.New {
	return func(space suggest.Space, settings suggest.Settings) (suggest.Algorithm, error) {
		a, err := r.New(space, settings)
		if _, finite := space.Size(); err != nil || r.Name == "grid" && !finite {
			return a, err
		}
		return propose.PriorFirst(a, space, propose.ReadSeeding(settings.Read()), r.Adaptive), nil
	}
}
