package stop_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/stop"
)

const brokenRuleVariable = "VERNIER_STOP_BROKEN_RULE"

type brokenRule struct {
	suggest.Stopper
	stop func(rule suggest.Stopper, s suggest.Study, t *suggest.Trial) (bool, string)
}

func (b brokenRule) Stop(s suggest.Study, t *suggest.Trial) (bool, string) {
	return b.stop(b.Stopper, s, t)
}

type ruleFault struct {
	stop func(rule suggest.Stopper, s suggest.Study, t *suggest.Trial) (bool, string)
	want string
}

// ruleFaults are faults of the rule asha, and the check that must find each.
func ruleFaults() map[string]ruleFault {
	return map[string]ruleFault{
		"depends on the time": {func(rule suggest.Stopper, s suggest.Study, t *suggest.Trial) (bool, string) {
			stopped, why := rule.Stop(s, t)
			if stopped {
				why += fmt.Sprint(time.Now().UnixNano())
			}
			return stopped, why
		}, "equal_arguments_give_equal_answers"},
		"ignores the direction": {func(rule suggest.Stopper, s suggest.Study, t *suggest.Trial) (bool, string) {
			s.Objectives = nil
			return rule.Stop(s, t)
		}, "maximize_mirrors_minimize"},
		"stops without evidence": {func(_ suggest.Stopper, _ suggest.Study, t *suggest.Trial) (bool, string) {
			if len(t.Curve) < 10 {
				return true, "it is slow"
			}
			return false, ""
		}, "too_little_evidence_stops_nothing"},
		"never stops": {func(suggest.Stopper, suggest.Study, *suggest.Trial) (bool, string) { return false, "" }, "what_is_hopeless_stops,_and_the_reason_is_told"},
		"stops the best": {func(rule suggest.Stopper, s suggest.Study, t *suggest.Trial) (bool, string) {
			for i := range t.Curve {
				if t.Curve[i].Value < -0.4 {
					return true, "it is too good"
				}
			}
			return rule.Stop(s, t)
		}, "the_best_trial_runs"},
		"stops ties": {func(rule suggest.Stopper, s suggest.Study, t *suggest.Trial) (bool, string) {
			for _, o := range s.Trials {
				if n := len(t.Curve); n > 0 && len(o.Curve) > n && o.Number != t.Number && o.Curve[n-1].Value == t.Curve[n-1].Value {
					return true, "it is no better than another"
				}
			}
			return rule.Stop(s, t)
		}, "a_tie_stops_nothing"},
		"gives no reason": {func(rule suggest.Stopper, s suggest.Study, t *suggest.Trial) (bool, string) {
			stopped, _ := rule.Stop(s, t)
			return stopped, ""
		}, "studies_of_all_sorts_are_tolerated"},
	}
}

// TestBrokenRule runs the suite over one broken rule. It is for the child
// processes of TestTheSuiteFindsFaultsOfRules.
func TestBrokenRule(t *testing.T) {
	f, ok := ruleFaults()[os.Getenv(brokenRuleVariable)]
	if !ok {
		t.Skip("not a child process")
	}
	r, _ := stop.Get("asha")
	build := r.New
	r.New = func(settings suggest.Settings) (suggest.Stopper, error) {
		rule, err := build(settings)
		if err != nil {
			return nil, err
		}
		return brokenRule{Stopper: rule, stop: f.stop}, nil
	}
	holdToContract(t, r)
}

func TestTheSuiteFindsFaultsOfRules(t *testing.T) {
	for name, f := range ruleFaults() {
		t.Run(name, func(t *testing.T) {
			child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestBrokenRule$/^"+regexp.QuoteMeta(f.want)+"$", "-test.count=1")
			child.Env = append(os.Environ(), brokenRuleVariable+"="+name)
			out, err := child.CombinedOutput()
			var exit *exec.ExitError
			if !errors.As(err, &exit) {
				t.Fatalf("the suite passed: %v", err)
			}
			if !strings.Contains(string(out), "--- FAIL: TestBrokenRule/"+f.want+" ") {
				t.Errorf("%s did not fail:\n%s", f.want, out)
			}
		})
	}
}
