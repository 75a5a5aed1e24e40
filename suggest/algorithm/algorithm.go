// Package algorithm holds the algorithms, one file each. To add one, write its
// file and name it in All; the contract suite then tests it.
package algorithm

import "github.com/vernier-ml/vernier/suggest"

// Registration is an algorithm under the name that users know it by.
type Registration struct {
	// Name in algorithmName.
	Name string
	// Summary says in a sentence what it does and when to use it.
	Summary string
	// New builds it, and is its validation.
	New suggest.New
	// Settings that New understands, sorted by name.
	Settings []Setting
	// Adaptive says whether the values of finished trials change its proposals.
	Adaptive bool
	// Evolves says that it learns from generations of trials, and so needs a few
	// hundred trials where a model needs some dozens.
	Evolves bool
	// Exhaustive says whether it goes through a finite space once, so that
	// suggest.ErrExhausted can come.
	Exhaustive bool
	// Repeats says that points come again on purpose: the trial goes on from the
	// checkpoint of another one, or its own randomness matters more.
	Repeats bool
	// MultiFidelity says whether it gives most trials a part of the resource
	// only, and proposes a point again with more of it.
	MultiFidelity bool
	// FirstObjective says whether it goes by the first of several objectives.
	FirstObjective bool
}

// Setting documents a setting of an algorithm.
type Setting struct {
	Name string
	// Default in words or as a value.
	Default string
	// Help says in a sentence what it does and what values it may have.
	Help string
}

// All is each algorithm there is, sorted by name.
func All() []Registration {
	all := []Registration{
		ashaRegistration(),
		autoRegistration(),
		bayesianRegistration(),
		bohbRegistration(),
		cmaesRegistration(),
		dartsRegistration(),
		dehbRegistration(),
		enasRegistration(),
		gridRegistration(),
		haltonRegistration(),
		hyperbandRegistration(),
		mobsterRegistration(),
		multivariateTPERegistration(),
		nsga2Registration(),
		nsga3Registration(),
		pashaRegistration(),
		pb2Registration(),
		pbtRegistration(),
		randomRegistration(),
		evolutionRegistration(),
		sobolRegistration(),
		successiveHalvingRegistration(),
		tpeRegistration(),
	}
	for i := range all {
		all[i].New = initialFirst(all[i].New)
	}
	return all
}

// Get finds an algorithm by its name.
func Get(name string) (r Registration, ok bool) {
	for _, r := range All() {
		if r.Name == name {
			return r, true
		}
	}
	return Registration{}, false
}

// Names of all algorithms, sorted.
func Names() []string {
	all := All()
	names := make([]string, len(all))
	for i, r := range all {
		names[i] = r.Name
	}
	return names
}

const randomState = "random_state"

func randomStateSetting() Setting {
	return Setting{
		Name:    randomState,
		Default: "the seed of the experiment",
		Help:    "Seed of the randomness, a whole number of at least 0. It takes the place of the experiment's seed.",
	}
}

// seeding decides between the study's seed and the setting random_state.
type seeding struct {
	given bool
	state uint64
}

func readSeeding(r *suggest.SettingsReader) seeding {
	n := r.Int(randomState, 0, suggest.AtLeast(0))
	return seeding{given: r.Has(randomState), state: uint64(n)}
}

func (s seeding) seed(study suggest.Study) uint64 {
	if s.given {
		return s.state
	}
	return study.Seed
}
