package stop

import (
	"fmt"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

// hyperband runs the rule asha in several brackets, which begin to stop trials
// at different rungs (Li et al., "Hyperband", JMLR 18, 2018). Trials are spread
// over the brackets by a hash of their number and the seed, in the proportions
// of the number of trials that Hyperband starts in each bracket.
type hyperband struct {
	rungs     rungs
	minTrials int
}

func hyperbandRegistration() Registration {
	return Registration{
		Name:    "hyperband",
		Summary: "The rule asha in several brackets, of which some stop trials early and others late. For curves whose beginning may deceive.",
		New:     newHyperband,
		Settings: []Setting{
			etaSetting(),
			minTrialsSetting("2", "values at a rung, the trial's own included,"),
			rMaxSetting("the last step of the longest trial that succeeded", "Until it is known nothing is stopped."),
			rMinSetting(),
		},
	}
}

func newHyperband(settings suggest.Settings) (suggest.Stopper, error) {
	r := settings.Read()
	h := hyperband{rungs: readRungs(r), minTrials: int(r.Int(minTrials, 2, suggest.AtLeast(1)))}
	if err := r.Err(); err != nil {
		return nil, err
	}
	return h, nil
}

// Stop implements suggest.Stopper.
func (h hyperband) Stop(s suggest.Study, t *suggest.Trial) (stop bool, why string) {
	l := h.rungs
	if l.end == 0 {
		l.end = horizon(s)
	}
	brackets := l.brackets()
	if len(brackets) == 0 {
		return false, ""
	}
	key := rng.NewKey(s.Seed, "hyperband", "bracket")
	bracket := draw(key, t.Number, brackets)
	if l.first = brackets[bracket].first; l.first >= l.end {
		return false, ""
	}
	c := contest{
		rungs: l, minTrials: h.minTrials,
		name:      fmt.Sprintf("rung of bracket %d", len(brackets)-1-bracket),
		takesPart: func(number int) bool { return draw(key, number, brackets) == bracket },
	}
	return c.judge(s, t)
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

// horizon is the last step of the longest trial that succeeded; 0 when there is
// none.
func horizon(s suggest.Study) int64 {
	end := int64(0)
	for _, t := range s.Trials {
		if t.State != suggest.Succeeded {
			continue
		}
		for _, sample := range t.Curve {
			end = max(end, sample.Step)
		}
	}
	return end
}
