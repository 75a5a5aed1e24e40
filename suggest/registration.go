package suggest

import "slices"

// Registration is an algorithm or a stopping rule under the name that users know
// it by. What follows Settings is said of algorithms only.
type Registration[Build any] struct {
	// Name in algorithmName.
	Name string
	// Summary says in a sentence what it does and when to use it.
	Summary string
	// New builds it, and is its validation.
	New Build
	// Settings that New understands, sorted by name.
	Settings []SettingHelp
	// Adaptive says whether the values of finished trials change its proposals.
	Adaptive bool
	// Evolves says that it learns from generations of trials, and so needs a few
	// hundred trials where a model needs some dozens.
	Evolves bool
	// Exhaustive says whether it goes through a finite space once, so that
	// ErrExhausted can come.
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

// SettingHelp documents a setting.
type SettingHelp struct {
	Name string
	// Default in words or as a value.
	Default string
	// Help says in a sentence what it does and what values it may have.
	Help string
}

// Find finds a registration by its name.
func Find[Build any](all []Registration[Build], name string) (r Registration[Build], ok bool) {
	i := slices.IndexFunc(all, func(r Registration[Build]) bool { return r.Name == name })
	if i < 0 {
		return r, false
	}
	return all[i], true
}

// Names of registrations, in their order.
func Names[Build any](all []Registration[Build]) []string {
	names := make([]string, len(all))
	for i, r := range all {
		names[i] = r.Name
	}
	return names
}

// NewStopper builds a stopping rule, as New does an algorithm.
type NewStopper func(Settings) (Stopper, error)

// Reading makes a constructor of a function that reads settings. What is wrong
// with them, and settings that it does not read, are the constructor's error.
func Reading(build func(Space, *SettingsReader) Algorithm) New {
	return func(space Space, settings Settings) (Algorithm, error) {
		r := settings.Read()
		a := build(space, r)
		if err := r.Err(); err != nil {
			return nil, err
		}
		return a, nil
	}
}

// ReadingStopper is Reading for a stopping rule.
func ReadingStopper(build func(*SettingsReader) Stopper) NewStopper {
	return func(settings Settings) (Stopper, error) {
		r := settings.Read()
		rule := build(r)
		if err := r.Err(); err != nil {
			return nil, err
		}
		return rule, nil
	}
}
