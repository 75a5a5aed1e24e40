package propose

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

// RandomState is the name of the setting that takes the place of the study's seed.
const RandomState = "random_state"

// RandomStateSetting documents RandomState.
func RandomStateSetting() Setting {
	return Setting{
		Name:    RandomState,
		Default: "the seed of the experiment",
		Help:    "Seed of the randomness, a whole number of at least 0. It takes the place of the experiment's seed.",
	}
}

// Seeding decides between the study's seed and the setting random_state.
type Seeding struct {
	given bool
	state uint64
}

// ReadSeeding reads RandomState.
func ReadSeeding(r *suggest.SettingsReader) Seeding {
	n := r.Int(RandomState, 0, suggest.AtLeast(0))
	return Seeding{given: r.Has(RandomState), state: uint64(n)}
}

// Seed of the randomness for a study.
func (s Seeding) Seed(study suggest.Study) uint64 {
	if s.given {
		return s.state
	}
	return study.Seed
}
