// Package stop holds the rules that stop a trial early. To add
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
type Registration = suggest.Registration[suggest.NewStopper]

// All is each stopping rule there is, sorted by name.
func All() []Registration {
	return []Registration{
		ashaRegistration(), curveRegistration(), hyperbandRegistration(), medianRegistration(),
		patienceRegistration(), percentileRegistration(), thresholdRegistration(), wilcoxonRegistration(),
	}
}

// Get finds a stopping rule by its name.
func Get(name string) (r Registration, ok bool) { return suggest.Find(All(), name) }

// Names of all stopping rules, sorted.
func Names() []string { return suggest.Names(All()) }
