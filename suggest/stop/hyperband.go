package stop

import (
	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

// hyperbandRegistration is the rule asha in brackets (Li et al., "Hyperband", JMLR
// 18, 2018), which begin to stop trials at different rungs. Trials are spread over
// them by a hash of their number and the seed, in the proportions of the number of
// trials that Hyperband starts in each bracket.
func hyperbandRegistration() Registration {
	return Registration{
		Name:    "hyperband",
		Summary: "The rule asha in several brackets, of which some stop trials early and others late. For curves whose beginning may deceive.",
		New:     suggest.ReadingStopper(func(r *suggest.SettingsReader) suggest.Stopper { return readASHA(r, true) }),
		Settings: []suggest.SettingHelp{
			etaSetting("3"),
			minTrialsSetting("2", "values at a rung, the trial's own included,"),
			rMaxSetting("the last step of the longest trial that succeeded", "Until it is known nothing is stopped."),
			rMinSetting("1"),
		},
	}
}

// bracket begins at the rung first and has a share of the trials.
type bracket struct {
	first int64
	share float64
}

// brackets of Hyperband, the most aggressive one first: bracket s of s_max
// begins at r_min*eta^(s_max-s), with ceil((s_max+1) eta^s / (s+1)) trials. They
// are counted with whole numbers, since log(243)/log(3) is below 5 in floating
// point. None when the end is not known or below the first rung.
func (l rungs) brackets() []bracket {
	var out []bracket
	for first := l.first; l.end > 0 && first <= l.end; first *= l.eta {
		out = append(out, bracket{first: first})
		if first > l.end/l.eta {
			break
		}
	}
	count, power := float64(len(out)), 1.0
	for s := range out {
		out[len(out)-1-s].share = count * power / float64(s+1)
		power *= float64(l.eta)
	}
	return out
}

// draw picks the bracket of a trial.
func draw(key rng.Key, number int, brackets []bracket) int {
	sum := 0.0
	for _, b := range brackets {
		sum += b.share
	}
	u := key.Stream(uint64(number)).Float64() * sum
	for i, b := range brackets {
		if u -= b.share; u < 0 {
			return i
		}
	}
	return len(brackets) - 1
}
