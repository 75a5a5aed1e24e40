package propose

import "github.com/vernier-ml/vernier/suggest"

// Registration is an algorithm under the name that users know it by.
type Registration = suggest.Registration[suggest.New]

// Setting documents a setting of an algorithm.
type Setting = suggest.SettingHelp

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
