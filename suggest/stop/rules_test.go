package stop_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/stop"
)

// values is a curve with these values at the steps 1, 2, 3, ...
func values(values ...float64) []suggest.Sample {
	var out []suggest.Sample
	for i, v := range values {
		out = append(out, suggest.Sample{Step: int64(i + 1), Value: v})
	}
	return out
}

// repeated is a curve that stays where it is until the step.
func repeated(value float64, end int) []suggest.Sample {
	out := make([]suggest.Sample, end)
	for i := range out {
		out[i] = suggest.Sample{Step: int64(i + 1), Value: value}
	}
	return out
}

// succeeded are trials with these curves, numbered from 0.
func succeeded(curves ...[]suggest.Sample) []*suggest.Trial {
	var out []*suggest.Trial
	for i, c := range curves {
		out = append(out, &suggest.Trial{Number: i, State: suggest.Succeeded, Curve: c})
	}
	return out
}

func sample(step int64, value float64) suggest.Sample {
	return suggest.Sample{Step: step, Value: value}
}

func setting(name, value string) suggest.Setting { return suggest.Setting{Name: name, Value: value} }

// withState gives all trials that state.
func withState(state suggest.State, trials []*suggest.Trial) []*suggest.Trial {
	out := make([]*suggest.Trial, len(trials))
	for i, t := range trials {
		with := *t
		with.State = state
		out[i] = &with
	}
	return out
}

func TestRules(t *testing.T) {
	nan := math.NaN()
	four := succeeded(values(9, 1, 1, 1), values(9, 2, 2, 2), values(9, 3, 3, 3), values(9, 100, 100, 100))
	thirds := suggest.Settings{setting("eta", "3"), setting("r_min", "1")}
	cases := map[string]struct {
		rule     string
		settings suggest.Settings
		others   []*suggest.Trial
		trial    *suggest.Trial
		want     string // the reason; empty: runs on
	}{
		// The averages up to step 4 are 3, 3.75, 4.5 and 77.25: their median is
		// 4.125, their mean 22.1.
		"the median is no mean": {
			rule: "medianstop", others: four, trial: &suggest.Trial{Number: 9, Curve: values(9, 9, 9, 5)},
			want: "its best value up to step 4, 5, is worse than 4.125, the median of the averages of 4 trials up to that step",
		},
		"the best value so far counts, not the last": {
			rule: "medianstop", others: four, trial: &suggest.Trial{Number: 9, Curve: values(9, 4, 9, 9)},
		},
		"equal to the median": {
			rule: "medianstop", others: four, trial: &suggest.Trial{Number: 9, Curve: values(9, 4.125, 9, 9)},
		},
		"before start_step": {
			rule: "medianstop", others: four, trial: &suggest.Trial{Number: 9, Curve: values(9, 9, 9)},
		},
		"too few trials": {
			rule: "medianstop", others: four[:2], trial: &suggest.Trial{Number: 9, Curve: values(9, 9, 9, 9)},
		},
		"trials that were stopped or failed are no yardstick": {
			rule: "medianstop", others: withState(suggest.Pruned, succeeded(four[0].Curve, four[1].Curve, four[2].Curve)),
			trial: &suggest.Trial{Number: 9, Curve: values(9, 9, 9, 9)},
		},
		"turned into no number after a good beginning": {
			rule: "medianstop", others: four, trial: &suggest.Trial{Number: 9, Curve: values(0.5, 0.4, nan, math.Inf(1), nan, nan)},
			want: "it has reported no number since step 3",
		},
		"no number for a while": {
			rule: "medianstop", others: four, trial: &suggest.Trial{Number: 9, Curve: values(0.5, 0.4, nan, nan, nan, nan, 0.3)},
		},
		"no number for a few reports": {
			rule: "medianstop", others: four, trial: &suggest.Trial{Number: 9, Curve: values(0.5, 0.4, nan, nan, nan)},
		},
		"percentile of a trial that turned into no number": {
			rule: "percentile", others: four, trial: &suggest.Trial{Number: 9, Curve: values(0.5, 0.4, nan, nan, nan, nan)},
			want: "it has reported no number since step 3",
		},
		"one average that is no number": {
			rule: "medianstop", others: append(succeeded(values(nan)), &suggest.Trial{Number: 7, State: suggest.Succeeded, Curve: values(1, 1, 1, 1)}, &suggest.Trial{Number: 8, State: suggest.Succeeded, Curve: values(2, 2, 2, 2)}),
			trial: &suggest.Trial{Number: 9, Curve: values(2, 2, 2, 2)},
		},
		// Quartile of 1, 2, 3, 100 as numpy has it: 1.75.
		"percentile": {
			rule: "percentile", settings: suggest.Settings{setting("min_trials_required", "4")}, others: four, trial: &suggest.Trial{Number: 9, Curve: values(9, 1.8)},
			want: "its best value up to step 2, 1.8, is worse than 1.75, which the best 25 % of 4 trials reach at that step",
		},
		"within the percentile": {
			rule: "percentile", settings: suggest.Settings{setting("min_trials_required", "4")}, others: four, trial: &suggest.Trial{Number: 9, Curve: values(9, 1.7)},
		},
		// At the rung of step 3 there are 1, 2, 100 and 3: the third is at 2.
		"asha": {
			rule: "asha", settings: thirds, others: succeeded(values(5, 5, 1), values(5, 5, 2), values(5, 5, 100)), trial: &suggest.Trial{Number: 9, Curve: values(5, 5, 3)},
			want: "its value 3 at the rung of step 3 is worse than 2, which the best 1/3 of 4 trials reach there",
		},
		"asha, within the best third": {
			rule: "asha", settings: thirds, others: succeeded(values(5, 5, 1), values(5, 5, 2), values(5, 5, 100)), trial: &suggest.Trial{Number: 9, Curve: values(5, 5, 1.5)},
		},
		"asha, by default from a ninth of r_max on": {
			rule: "asha", settings: suggest.Settings{setting("r_max", "27")}, others: succeeded(values(1, 1, 1)), trial: &suggest.Trial{Number: 9, Curve: values(2, 2)},
		},
		"asha, by default half goes on": {
			rule: "asha", settings: suggest.Settings{setting("r_max", "27")}, others: succeeded(values(1, 1, 1), values(2, 2, 2)), trial: &suggest.Trial{Number: 9, Curve: values(1, 1, 3)},
			want: "its value 3 at the rung of step 3 is worse than 2, which the best 1/2 of 3 trials reach there",
		},
		"asha, nothing is stopped before it is known how long a trial is": {
			rule: "asha", others: withState(suggest.Running, succeeded(repeated(1, 9), repeated(1, 9))), trial: &suggest.Trial{Number: 9, Curve: repeated(2, 9)},
		},
		"asha, by default from a ninth of what succeeded on": {
			rule: "asha", others: succeeded(repeated(1, 27), repeated(1, 27)), trial: &suggest.Trial{Number: 9, Curve: values(2, 2)},
		},
		"asha, by default at a ninth of what succeeded": {
			rule: "asha", others: succeeded(repeated(1, 27), repeated(1, 27)), trial: &suggest.Trial{Number: 9, Curve: values(2, 2, 2)},
			want: "its value 2 at the rung of step 3 is worse than 1, which the best 1/2 of 3 trials reach there",
		},
		"asha, one long trial does not move the rungs": {
			rule: "asha", others: succeeded(repeated(1, 27), repeated(1, 27), repeated(1, 270)), trial: &suggest.Trial{Number: 9, Curve: values(2, 2, 2)},
			want: "its value 2 at the rung of step 3 is worse than 1, which the best 1/2 of 4 trials reach there",
		},
		"asha, alone at the rung": {
			rule: "asha", others: succeeded(values(5)), trial: &suggest.Trial{Number: 9, Resource: 9, Curve: values(1, 1, 100)}, settings: suggest.Settings{setting("eta", "3"), setting("r_min", "3"), setting("min_trials_required", "3")},
		},
		"asha, running trials count": {
			rule: "asha", settings: thirds, others: withState(suggest.Running, succeeded(values(1))), trial: &suggest.Trial{Number: 9, Curve: values(2)},
			want: "its value 2 at the rung of step 1 is worse than 1.333, which the best 1/3 of 2 trials reach there",
		},
		"asha, reports that skip the rung": {
			rule: "asha", settings: thirds, others: succeeded([]suggest.Sample{sample(5, 1), sample(8, 50)}), trial: &suggest.Trial{Number: 9, Curve: []suggest.Sample{sample(7, 2)}},
			want: "its value 2 at the rung of step 3 is worse than 1.333, which the best 1/3 of 2 trials reach there",
		},
		"asha, reports that are still to come for the trial do not count": {
			rule: "asha", settings: thirds, others: succeeded([]suggest.Sample{sample(390, 0.1), sample(781, 0.1)}, []suggest.Sample{sample(2, 0.1), sample(390, 0.1)}),
			trial: &suggest.Trial{Number: 9, Curve: repeated(2, 10)},
		},
		"asha, they count once it has come as far": {
			rule: "asha", settings: thirds, others: succeeded([]suggest.Sample{sample(12, 0.1), sample(30, 0.1)}), trial: &suggest.Trial{Number: 9, Curve: repeated(2, 12)},
			want: "its value 2 at the rung of step 9 is worse than 0.7333, which the best 1/3 of 2 trials reach there",
		},
		"asha, a trial that ended early counts at all rungs": {
			rule: "asha", settings: thirds, others: succeeded(values(1)), trial: &suggest.Trial{Number: 9, Curve: repeated(2, 9)},
			want: "its value 2 at the rung of step 9 is worse than 1.333, which the best 1/3 of 2 trials reach there",
		},
		"asha, a trial that had no more resource does not": {
			rule: "asha", settings: thirds, others: []*suggest.Trial{{Number: 0, State: suggest.Succeeded, Resource: 3, Curve: repeated(1, 3)}}, trial: &suggest.Trial{Number: 9, Curve: repeated(2, 9)},
		},
		"asha, a trial that was stopped counts where it was": {
			rule: "asha", settings: thirds, others: withState(suggest.Pruned, succeeded(values(1))), trial: &suggest.Trial{Number: 9, Curve: repeated(2, 9)},
		},
		"asha, past the rung a trial lives by what it has become": {
			rule: "asha", settings: thirds, others: succeeded(values(1), values(1), values(1)), trial: &suggest.Trial{Number: 9, Curve: values(2, 1)},
		},
		"asha, at r_max nothing stops": {
			rule: "asha", settings: suggest.Settings{setting("r_max", "27")}, others: succeeded(repeated(1, 27)), trial: &suggest.Trial{Number: 9, Curve: repeated(2, 27)},
		},
		"asha, one step before it does": {
			rule: "asha", settings: suggest.Settings{setting("r_max", "27")}, others: succeeded(repeated(1, 27)), trial: &suggest.Trial{Number: 9, Curve: repeated(2, 26)},
			want: "its value 2 at the rung of step 24 is worse than 1.5, which the best 1/2 of 2 trials reach there",
		},
		"asha, a promoted trial is not judged again where its parent was": {
			rule: "asha", settings: thirds, others: []*suggest.Trial{{Number: 0, Resource: 3, State: suggest.Succeeded, Curve: repeated(2, 3)}, {Number: 1, Resource: 3, State: suggest.Succeeded, Curve: repeated(1, 3)}},
			trial: &suggest.Trial{Number: 9, Resource: 9, Meta: suggest.Meta{"parent": "0"}, Curve: repeated(2, 4)},
		},
		"asha, a promoted trial does not count twice": {
			rule: "asha", settings: suggest.Settings{setting("min_trials_required", "3")},
			others: []*suggest.Trial{{Number: 0, Resource: 1, State: suggest.Succeeded, Curve: values(1)}, {Number: 1, Resource: 3, State: suggest.Succeeded, Curve: values(1, 1, 1), Meta: suggest.Meta{"parent": "0"}}},
			trial:  &suggest.Trial{Number: 9, Curve: values(2)},
		},
		"asha, a value that is no number": {
			rule: "asha", settings: thirds, others: succeeded(values(1), values(2)), trial: &suggest.Trial{Number: 9, Curve: values(nan)},
			want: "its value not a number at the rung of step 1 is worse than 1.667, which the best 1/3 of 3 trials reach there",
		},
		"a retry overwrites": {
			rule: "asha", settings: thirds, others: succeeded(values(1)), trial: &suggest.Trial{Number: 9, Curve: []suggest.Sample{sample(1, 5), sample(2, 5), sample(1, 1), sample(2, 1)}},
		},
		"wilcoxon": {
			rule: "wilcoxon", others: succeeded(values(1, 1, 1, 1)), trial: &suggest.Trial{Number: 9, Curve: values(2, 3, 4, 5)},
			want: "on the 4 steps that both have it is worse than trial 0, the best one: the signed-rank test gives p = 0.062, below 0.1",
		},
		"wilcoxon, too few steps to tell": {
			rule: "wilcoxon", others: succeeded(values(1, 1, 1, 1)), trial: &suggest.Trial{Number: 9, Curve: values(2, 3, 4)},
		},
		"wilcoxon, a better average never stops": {
			rule: "wilcoxon", settings: suggest.Settings{setting("p_threshold", "0.9")}, others: succeeded(values(1, 1, 1, 9)), trial: &suggest.Trial{Number: 9, Curve: values(2, 2, 2, 2)},
		},
		"wilcoxon, the best by its value": {
			rule:   "wilcoxon",
			others: []*suggest.Trial{{Number: 3, State: suggest.Succeeded, Values: []float64{0.5}, Curve: values(4, 4, 4, 4)}, {Number: 4, State: suggest.Succeeded, Values: []float64{0.6}, Curve: values(1, 1, 1, 1)}},
			trial:  &suggest.Trial{Number: 9, Curve: values(2, 3, 3, 3)},
		},
		"threshold, not a number": {
			rule: "threshold", trial: &suggest.Trial{Curve: values(1, nan)}, want: "its value at step 2 is not a finite number",
		},
		"threshold, above": {
			rule: "threshold", settings: suggest.Settings{setting("upper", "2")}, trial: &suggest.Trial{Curve: values(1, 3)}, want: "its value at step 2, 3, is above 2",
		},
		"threshold, below": {
			rule: "threshold", settings: suggest.Settings{setting("lower", "-1")}, trial: &suggest.Trial{Curve: values(-2)}, want: "its value at step 1, -2, is below -1",
		},
		"threshold, at the bounds": {
			rule: "threshold", settings: suggest.Settings{setting("lower", "2"), setting("upper", "2")}, trial: &suggest.Trial{Curve: values(2)},
		},
		"threshold, recovered": {
			rule: "threshold", settings: suggest.Settings{setting("upper", "2")}, trial: &suggest.Trial{Curve: values(3, 1)},
		},
		"patience": {
			rule: "patience", settings: suggest.Settings{setting("patience", "2")}, trial: &suggest.Trial{Curve: values(3, 1, 2, 1)},
			want: "its best value, 1, has not improved by more than 0 in the 2 reports since step 2",
		},
		"patience, just improved": {
			rule: "patience", settings: suggest.Settings{setting("patience", "2")}, trial: &suggest.Trial{Curve: values(3, 1, 2, 0.9)},
		},
		"patience, improved too little": {
			rule: "patience", settings: suggest.Settings{setting("patience", "2"), setting("min_delta", "0.2")}, trial: &suggest.Trial{Curve: values(3, 1, 2, 0.9)},
			want: "its best value, 1, has not improved by more than 0.2 in the 2 reports since step 2",
		},
		"patience, the other rule does not want to stop": {
			rule: "patience", settings: suggest.Settings{setting("patience", "2"), setting("rule", "medianstop")}, trial: &suggest.Trial{Number: 9, Curve: values(3, 1, 2, 1)}, others: four,
		},
		"patience, the other rule agrees": {
			rule: "patience", settings: suggest.Settings{setting("patience", "2"), setting("rule", "medianstop")}, trial: &suggest.Trial{Number: 9, Curve: values(10, 10, 10, 10)}, others: four,
			want: "its best value, 10, has not improved by more than 0 in the 2 reports since step 2; and its best value up to step 4, 10, is worse than 4.125, the median of the averages of 4 trials up to that step",
		},
		"curve, not a number any more": {
			rule: "curve", others: succeeded(repeated(1, 20), repeated(2, 20), repeated(3, 20), repeated(4, 20)), trial: &suggest.Trial{Number: 9, Curve: values(1.5, 1.4, nan, nan, nan, nan)},
			want: "it has reported no number since step 3",
		},
		"curve, three complete trials are not enough": {
			rule: "curve", others: succeeded(repeated(1, 20), repeated(2, 20), repeated(3, 20), repeated(4, 19)), trial: &suggest.Trial{Number: 9, Curve: values(1.5, 1.4, nan, nan, nan, nan)},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r, _ := stop.Get(c.rule)
			rule, err := r.New(c.settings)
			if err != nil {
				t.Fatal(err)
			}
			stopped, why := rule.Stop(suggest.Study{Trials: c.others}, c.trial)
			if diff := cmp.Diff(c.want, why); diff != "" || stopped != (c.want != "") {
				t.Errorf("stopped: %v, because (-want +got):\n%s", stopped, diff)
			}
		})
	}
}

func TestBoundsInTheWrongOrder(t *testing.T) {
	r, _ := stop.Get("threshold")
	_, err := r.New(suggest.Settings{setting("lower", "3"), setting("upper", "2")})
	if want := `setting "lower" is 3, above upper, 2; swap them`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
