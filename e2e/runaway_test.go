//go:build e2e

package e2e

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

// runAwayFor is how long the experiment is looked at. After the ninth failure a new
// trial comes once a minute, and the twelfth in a row ends the experiment: what the
// first 75 seconds show decides about the rest of 10 minutes, which
// VERNIER_RUNAWAY=10m watches to the end.
func runAwayFor(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("VERNIER_RUNAWAY")
	if text == "" {
		return 75 * time.Second
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("VERNIER_RUNAWAY: %v", err)
	}
	return d
}

// TestARunAwayExperiment runs an experiment without any limit whose program does not
// exist: it slows down, and says why wherever a user looks. Meanwhile it tries what
// could create work without bound, or trials that cannot run.
func TestARunAwayExperiment(t *testing.T) {
	i := upOrCluster(t)
	experiment := jobExperiment{name: "runaway", algorithm: "random", command: `[no-such-trainer, "${trialParameters.x}"]`}.object(t)
	experiment.Spec.MaxTrialCount, experiment.Spec.MaxFailedTrialCount, experiment.Spec.ParallelTrialCount = nil, nil, nil
	experiment.Spec.Parameters[0].FeasibleSpace.Step = ""
	watch, began := runAwayFor(t), time.Now()
	if err := i.client.Create(t.Context(), experiment); err != nil {
		t.Fatal(err)
	}
	for name, test := range runAways() {
		t.Run(name, func(t *testing.T) { i.checkRefused(t, broken(t, "refused", test.change), test.want) })
	}
	after := time.NewTimer(watch - time.Since(began))
	defer after.Stop()
	<-after.C
	trials := i.trials(t, "runaway")
	slices.SortFunc(trials, func(a, b v1beta1.Trial) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	for _, trial := range trials {
		t.Logf("%s after %s", trial.Name, trial.CreationTimestamp.Sub(trials[0].CreationTimestamp.Time))
	}
	most := 11 // and one for each of the 9 minutes that follow
	if watch >= 10*time.Minute {
		most = 20
	}
	if n := len(trials); n < 6 || n > most {
		t.Fatalf("%d trials in %s, want at most %d", n, watch, most)
	}
	if last := trials[len(trials)-1].CreationTimestamp.Sub(trials[len(trials)-2].CreationTimestamp.Time); last < 8*time.Second {
		t.Errorf("the last trial came %s after the one before", last)
	}
	var e v1beta1.Experiment
	eventually(t, 30*time.Second, func(ctx context.Context) error {
		return i.client.Get(ctx, types.NamespacedName{Namespace: "default", Name: "runaway"}, &e)
	})
	if watch >= 10*time.Minute && !e.IsFailed() {
		t.Errorf("it has not ended: %+v", e.LastCondition())
	}
	for argv, words := range map[string][]string{
		"describe runaway":                    {"no-such-trainer", "check the command", "have failed"},
		"kubectl describe experiment runaway": {"no-such-trainer", "check the command", "have failed"},
		"get trials runaway":                  {"runaway-0005", "Failed"},
	} {
		out, err := i.vernier(strings.Fields(argv)...)
		if err != nil {
			t.Errorf("vernier %s: %v", argv, err)
		}
		t.Logf("vernier %s:\n%s", argv, shorten(out))
		requireWords(t, out, words)
	}
}

// shorten keeps of each line what a terminal shows.
func shorten(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		if len(line) > 240 {
			line = line[:240] + "...\n"
		}
		out.WriteString(line)
	}
	return out.String()
}

// runAways are refused, since nothing would bound them or no trial could end well.
func runAways() map[string]refusal {
	return map[string]refusal{
		"more trials at once than there can be": {func(spec map[string]any) {
			set(int64(2_000_000_000), "parallelTrialCount")(spec)
			set(int64(2_000_000_000), "maxTrialCount")(spec)
		}, []string{"parallelTrialCount"}},
	}
}

func (i *instance) checkRefused(t *testing.T, object *unstructured.Unstructured, want []string) {
	t.Helper()
	err := i.client.Create(t.Context(), object)
	if err == nil {
		_ = i.client.Delete(t.Context(), object)
		t.Fatal("it was accepted")
	}
	t.Logf("%v", err)
	for _, word := range want {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("the error does not name %q", word)
		}
	}
}
