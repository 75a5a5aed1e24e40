// Package stop holds the rules that stop a trial early, one file each. To add
// one, write its file and name it in All; the contract suite then tests it.
//
// Each rule reads the curves of the main objective (suggest.Trial.Curve) and is
// a pure function of the study and the trial. What all of them share: a
// measurement that is NaN or infinite counts as worse than each number; a step
// that is reported again, as after a retry, counts with its last report; a tie
// is no reason to stop.
package stop

import "github.com/vernier-ml/vernier/suggest"

// Registration is a stopping rule under the name that users know it by.
type Registration struct {
	// Name in algorithmName of earlyStopping.
	Name string
	// Summary says in a sentence what it does and when to use it.
	Summary string
	// New builds it, and is its validation.
	New func(suggest.Settings) (suggest.Stopper, error)
	// Settings that New understands, sorted by name.
	Settings []Setting
}

// Setting documents a setting of a stopping rule.
type Setting struct {
	Name string
	// Default in words or as a value.
	Default string
	// Help says in a sentence what it does and what values it may have.
	Help string
}

// All is each stopping rule there is, sorted by name.
func All() []Registration {
	return []Registration{
		ashaRegistration(), curveRegistration(), hyperbandRegistration(), medianRegistration(),
		patienceRegistration(), percentileRegistration(), thresholdRegistration(), wilcoxonRegistration(),
	}
}

// Get finds a stopping rule by its name.
func Get(name string) (r Registration, ok bool) {
	for _, r := range All() {
		if r.Name == name {
			return r, true
		}
	}
	return Registration{}, false
}

// Names of all stopping rules, sorted.
func Names() []string {
	all := All()
	names := make([]string, len(all))
	for i, r := range all {
		names[i] = r.Name
	}
	return names
}
