//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector"
)

const (
	killTrials = 50
	killPoints = 10
)

// killExperiment prints killPoints values over about a second and leaves a
// stamp each time that it is started.
func killExperiment(t *testing.T, name, stamps string) *v1beta1.Experiment {
	t.Helper()
	experiment := jobExperiment{
		name:      name,
		algorithm: "random",
		parallel:  5,
		max:       killTrials,
		parameter: `parameterType: double, feasibleSpace: {min: "0", max: "1"}`,
		command:   `[sh, -c]`,
		container: fmt.Sprintf(`args: ["mktemp %s/${trialParameters.trial}.XXXXXX >/dev/null; i=0; while [ $i -lt %d ]; do `+
			`echo step=$i loss=0.$i$i x=${trialParameters.x}; i=$((i+1)); sleep 0.1; done"]`, stamps, killPoints),
	}.object(t)
	template := experiment.Spec.TrialTemplate
	template.TrialParameters = append(template.TrialParameters, v1beta1.TrialParameterSpec{Name: "trial", Reference: "${trialSpec.Name}"})
	return experiment
}

// TestEveryComponentMayBeKilled kills -9 the manager, the agent, the API server
// and etcd in turn while an experiment runs. It goes on by itself each time; at
// the end every trial exists once, ran once, and has each of its points once.
func TestEveryComponentMayBeKilled(t *testing.T) {
	i := up(t)
	stamps := t.TempDir()
	if err := i.client.Create(t.Context(), killExperiment(t, "kill", stamps)); err != nil {
		t.Fatal(err)
	}
	for n, victim := range []string{"manager", "agent", "kube-apiserver", "etcd"} {
		i.awaitFinishedTrials(t, "kill", (n+1)*8)
		before := i.components(t)[victim]
		if before.PID == 0 {
			t.Fatalf("no component %q in %v", victim, i.components(t))
		}
		t.Logf("kill -9 %s (%d) with about %d trials done", victim, before.PID, (n+1)*8)
		if err := syscall.Kill(before.PID, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		eventually(t, time.Minute, func(context.Context) error {
			if now := i.components(t)[victim]; now.PID == 0 || now.PID == before.PID {
				return fmt.Errorf("%s has not come back: %+v", victim, now)
			}
			return nil
		})
	}
	i.awaitFinishedTrials(t, "kill", killTrials)
	i.awaitEnd(t, "kill")
	trials := i.trials(t, "kill")
	checkTrials(t, "kill", killTrials, trials)
	checkStamps(t, stamps, trials)
	if out, err := i.vernier("down"); err != nil {
		t.Fatalf("vernier down: %v\n%s", err, out)
	}
	checkPoints(t, i.home, trials)
}

func (i *instance) awaitFinishedTrials(t *testing.T, name string, n int) {
	t.Helper()
	i.awaitFinishedTrialsWithin(t, 3*time.Minute, name, n)
}

func (i *instance) awaitFinishedTrialsWithin(t *testing.T, within time.Duration, name string, n int) {
	t.Helper()
	eventually(t, within, func(ctx context.Context) error {
		var e v1beta1.Experiment
		if err := i.client.Get(ctx, types.NamespacedName{Namespace: "default", Name: name}, &e); err != nil {
			return err
		}
		s := e.Status
		if e.IsFailed() {
			i.showFailures(t, name)
			t.Fatalf("experiment %s has failed: %s", name, e.LastCondition().Message)
		}
		if done := s.TrialsSucceeded + s.TrialsFailed + s.TrialMetricsUnavailable + s.TrialsKilled; int(done) < n {
			return fmt.Errorf("%d trials done, want %d; %d exist", done, n, s.Trials)
		}
		return nil
	})
}

// showFailures prints why trials did not succeed.
func (i *instance) showFailures(t *testing.T, experiment string) {
	t.Helper()
	for _, trial := range i.trials(t, experiment) {
		if !trial.IsSucceeded() {
			out, _ := i.vernier("describe", experiment+"/"+trial.Name)
			t.Logf("%s", out)
		}
	}
}

func (i *instance) awaitEnd(t *testing.T, name string) {
	t.Helper()
	i.awaitEndWithin(t, 2*time.Minute, name)
}

func (i *instance) awaitEndWithin(t *testing.T, within time.Duration, name string) {
	t.Helper()
	eventually(t, within, func(ctx context.Context) error {
		var e v1beta1.Experiment
		if err := i.client.Get(ctx, types.NamespacedName{Namespace: "default", Name: name}, &e); err != nil {
			return err
		}
		n := len(e.Status.Conditions)
		if n == 0 || e.Status.Conditions[n-1].Type != v1beta1.ExperimentSucceeded {
			return fmt.Errorf("the experiment has not succeeded: %+v", e.Status.Conditions)
		}
		return nil
	})
}

func (i *instance) trials(t *testing.T, experiment string) []v1beta1.Trial {
	t.Helper()
	var list v1beta1.TrialList
	eventually(t, time.Minute, func(ctx context.Context) error {
		err := i.client.List(ctx, &list, client.InNamespace("default"), client.MatchingLabels{"katib.kubeflow.org/experiment": experiment})
		if apierrors.IsForbidden(err) {
			t.Fatal(err)
		}
		return err
	})
	return list.Items
}

func checkTrials(t *testing.T, experiment string, count int, trials []v1beta1.Trial) {
	t.Helper()
	var names, want []string
	for _, trial := range trials {
		names = append(names, trial.Name)
		last := trial.Status.Conditions[len(trial.Status.Conditions)-1]
		if last.Type != v1beta1.TrialSucceeded {
			t.Errorf("trial %s is %s: %s", trial.Name, last.Type, last.Message)
		}
	}
	for n := range count {
		want = append(want, fmt.Sprintf("%s-%04d", experiment, n))
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("trials (-want +got):\n%s", diff)
	}
}

// checkStamps holds that the program of each trial was started exactly once.
func checkStamps(t *testing.T, dir string, trials []v1beta1.Trial) {
	t.Helper()
	for _, trial := range trials {
		stamps, err := filepath.Glob(filepath.Join(dir, trial.Name+".*"))
		if err != nil {
			t.Fatal(err)
		}
		if len(stamps) != 1 {
			t.Errorf("the program of trial %s was started %d times", trial.Name, len(stamps))
		}
	}
}

// checkPoints holds that the store has each point of each trial exactly once.
func checkPoints(t *testing.T, home string, trials []v1beta1.Trial) {
	t.Helper()
	s, want := openStoreOf(t, home), stepsOfKill()
	for _, trial := range trials {
		series, err := collector.ReadSeries(t.Context(), s, string(trial.UID), "loss")
		if err != nil {
			t.Fatal(err)
		}
		if len(series) != 1 {
			t.Errorf("trial %s has %d series of loss, want 1", trial.Name, len(series))
			continue
		}
		if diff := cmp.Diff(want, steps(series[0])); diff != "" {
			t.Errorf("steps of trial %s (-want +got):\n%s", trial.Name, diff)
		}
		for _, p := range series[0].Points {
			if math.IsNaN(p.Value) {
				t.Errorf("trial %s step %d is NaN", trial.Name, p.Step)
			}
		}
	}
}

func steps(s collector.Series) []int64 {
	var steps []int64
	for _, p := range s.Points {
		steps = append(steps, p.Step)
	}
	return steps
}

// TestDownLeavesNothing holds that down ends every process of the instance, and
// that up resumes what was there.
func TestDownLeavesNothing(t *testing.T) {
	i := up(t)
	if out, err := i.vernier("down"); err != nil {
		t.Fatalf("vernier down: %v\n%s", err, out)
	}
	if left := processesNaming(t, i.home); len(left) > 0 {
		t.Errorf("processes left after down:\n%v", left)
	}
	if _, err := os.Stat(i.home); errors.Is(err, os.ErrNotExist) {
		t.Error("down removed the home")
	}
	if out, err := i.vernier("up"); err != nil {
		t.Fatalf("second vernier up: %v\n%s", err, out)
	}
}
