package experiment

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/controllers/study"
)

// played runs an experiment whose trials end in any order, some of them without a result,
// while others run. In the middle another controller takes over, which has seen nothing.
func played(t *testing.T, algorithm string, trials int, settings ...v1beta1.AlgorithmSetting) *cluster {
	t.Helper()
	c := newCluster(t, algorithm, 0, func(e *v1beta1.Experiment) {
		e.Spec.TrialTemplate, e.Spec.Algorithm.AlgorithmSettings = nil, settings
		e.Spec.ParallelTrialCount, e.Spec.MaxTrialCount, e.Spec.Seed = ptr.To[int32](4), ptr.To(int32(trials)), ptr.To[int64](7)
		if len(settings) > 0 {
			e.Spec.Parameters[2] = v1beta1.ParameterSpec{Name: "epochs", ParameterType: v1beta1.ParameterTypeInt, FeasibleSpace: v1beta1.FeasibleSpace{Min: "1", Max: "9"}}
		}
	})
	random := rand.New(rand.NewPCG(3, 4))
	var running []int
	for i := 0; len(c.trials) < trials || len(running) > 0; i++ {
		if i == trials {
			c.Controller = New(c.Options)
		}
		h, err := c.HandOut(t.Context(), client.ObjectKeyFromObject(c.exp), 1+random.IntN(2), v1beta1.Lease{Worker: "w", Request: strconv.Itoa(i), Seconds: 1e6})
		if err != nil {
			t.Fatal(err)
		}
		running = nil
		for n, trial := range c.trials {
			if !trial.IsCompleted() {
				running = append(running, n)
			}
		}
		if i > 20*trials {
			t.Fatalf("%d trials, and no more: %s", len(c.trials), h.Why)
		}
		if len(running) == 0 || len(h.Trials) > 0 && random.IntN(2) == 0 {
			continue
		}
		n := running[random.IntN(len(running))]
		if random.IntN(8) == 0 {
			failed := c.trials[n].DeepCopy()
			failed.MarkFailed("", metav1.NewTime(noon))
			c.put(n, failed)
		} else {
			c.end(n, random.Float64(), 1)
		}
	}
	return c
}

func (c *cluster) replay(t *testing.T) (equal, differ []int, reasons map[string]int) {
	t.Helper()
	reasons = map[string]int{}
	err := study.Replay(t.Context(), c.exp, c.trials, nil, nil, func(r study.Replayed) {
		n, _ := r.Trial.Number()
		switch {
		case r.Reason != "":
			reasons[r.Reason]++
		case len(r.Differences) > 0:
			differ = append(differ, n)
			t.Logf("trial %d: %q", n, r.Differences)
		default:
			equal = append(equal, n)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return equal, differ, reasons
}

// What each algorithm proposed while trials ran and ended, before a restart and after it,
// is derived again from the objects alone.
func TestSuggestionsAreDerivedAgain(t *testing.T) {
	const trials = 24
	epochs := []v1beta1.AlgorithmSetting{{Name: "resource_name", Value: "epochs"}}
	for algorithm, settings := range map[string][]v1beta1.AlgorithmSetting{
		"random": nil, "sobol": nil, "tpe": nil, "cmaes": nil, "auto": nil, "bayesianoptimization": nil, "nsga2": nil,
		"asha": epochs, "hyperband": epochs, "bohb": epochs, "auto of short trials": epochs,
	} {
		t.Run(algorithm, func(t *testing.T) {
			algorithm, _, _ := strings.Cut(algorithm, " ")
			c := played(t, algorithm, trials, settings...)
			if equal, differ, reasons := c.replay(t); len(equal) != trials {
				t.Errorf("%d of %d are equal; different: %v; not compared: %v", len(equal), trials, differ, reasons)
			}
		})
	}
}

func hasReason(reasons map[string]int, part string) bool {
	for reason := range reasons {
		if strings.Contains(reason, part) {
			return true
		}
	}
	return false
}

func TestReplayFindsWhatWasChanged(t *testing.T) {
	const trials = 12
	for name, tc := range map[string]struct {
		change        func(c *cluster)
		equal, differ int
		reason        string // of those that cannot be compared
	}{
		"a point is another one": {func(c *cluster) {
			other := c.trials[8].DeepCopy()
			other.Spec.ParameterAssignments[0].Value = "0.125"
			c.put(8, other)
		}, 8, 1, "has changed since"},
		"a result is another one": {func(c *cluster) { c.end(3, 1e6, 1) }, 4, 0, "has changed since"},
		"a trial was deleted": {func(c *cluster) {
			c.trials = append(c.trials[:2:2], c.trials[3:]...)
		}, 2, 0, "trial 2 was deleted since"},
		"the seed is another one": {func(c *cluster) { c.exp.Spec.Seed = ptr.To[int64](8) }, 0, 0, "the seed was 7"},
		"a setting is another one": {func(c *cluster) {
			c.exp.Spec.Algorithm.AlgorithmSettings = []v1beta1.AlgorithmSetting{{Name: "n_startup_trials", Value: "2"}}
		}, 0, 0, "has changed since"},
		"a point is queued": {func(c *cluster) {
			queued := v1beta1.InitialTrial{ID: "x"}
			for _, name := range []string{"a", "b", "c"} {
				queued.ParameterAssignments = append(queued.ParameterAssignments, v1beta1.ParameterAssignment{Name: name, Value: "0.5"})
			}
			c.exp.Spec.InitialTrials = []v1beta1.InitialTrial{queued}
		}, trials, 0, ""},
		"the budget is another one": {func(c *cluster) { c.exp.Spec.MaxTrialCount = ptr.To[int32](99) }, trials, 0, ""},
		"nothing is recorded": {func(c *cluster) {
			other := c.trials[trials-1].DeepCopy()
			delete(other.Annotations, v1beta1.AnnotationAsked)
			c.put(trials-1, other)
		}, trials - 1, 0, "not recorded"},
	} {
		t.Run(name, func(t *testing.T) {
			c := played(t, "tpe", trials)
			tc.change(c)
			equal, differ, reasons := c.replay(t)
			if len(equal) < tc.equal || len(differ) != tc.differ || tc.reason == "" && len(equal) != trials {
				t.Errorf("%v are equal and %v differ, want at least %d and %d; not compared: %v", equal, differ, tc.equal, tc.differ, reasons)
			}
			if tc.reason != "" && !hasReason(reasons, tc.reason) {
				t.Errorf("not compared: %v, want %q", reasons, tc.reason)
			}
		})
	}
}
