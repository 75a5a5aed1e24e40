//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/store"
)

// soakNumber reads how much of something there shall be from the environment: make
// soak runs the long form.
func soakNumber(t *testing.T, name string, short int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return short
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		t.Fatalf("%s=%q: give a number", name, text)
	}
	return n
}

// TestSoak kills components at random, and now and then ends every process of the
// instance at once with SIGTERM, as a reboot does, and starts it again. In the end
// every trial has succeeded once and has each of its points once, and its program was
// started anew only where a reboot had ended it.
func TestSoak(t *testing.T) {
	trials := soakNumber(t, "VERNIER_SOAK_TRIALS", 40)
	kills := soakNumber(t, "VERNIER_SOAK_KILLS", 6)
	reboots := soakNumber(t, "VERNIER_SOAK_REBOOTS", 1)
	seed := uint64(soakNumber(t, "VERNIER_SOAK_SEED", int(time.Now().Unix())))
	t.Logf("%d trials, %d kills, %d reboots, VERNIER_SOAK_SEED=%d", trials, kills, reboots, seed)
	random := rand.New(rand.NewPCG(seed, 0))

	i, stamps := up(t), t.TempDir()
	experiment := killExperiment(t, "soak", stamps)
	count, parallel := int32(trials), int32(8)
	experiment.Spec.MaxTrialCount, experiment.Spec.ParallelTrialCount = &count, &parallel
	if err := i.client.Create(t.Context(), experiment); err != nil {
		t.Fatal(err)
	}
	events := slices.Concat(slices.Repeat([]bool{false}, kills), slices.Repeat([]bool{true}, reboots))
	random.Shuffle(len(events), func(a, b int) { events[a], events[b] = events[b], events[a] })
	interrupted := map[string]int{}
	began := time.Now()
	for n, reboot := range events {
		i.awaitFinishedTrials(t, "soak", (n+1)*(trials-int(parallel))/(len(events)+1))
		if reboot {
			i.reboot(t, stamps, interrupted)
		} else {
			i.killOne(t, random)
		}
	}
	i.awaitFinishedTrials(t, "soak", trials)
	i.awaitEnd(t, "soak")
	t.Logf("all trials have ended after %s", time.Since(began).Round(time.Second))
	all := i.trials(t, "soak")
	checkTrials(t, "soak", trials, all)
	twice := i.lostAnswers(t)
	again := i.checkStarts(t, stamps, all, interrupted, twice)
	if out, err := i.vernier("down"); err != nil {
		t.Fatalf("vernier down: %v\n%s", err, out)
	}
	checkLastPoints(t, i.home, all, interrupted, twice)
	t.Logf("%d trials ran when a reboot came; %d programs were started again", len(interrupted), again)
}

// killOne kills a component and waits until it is back.
func (i *instance) killOne(t *testing.T, random *rand.Rand) {
	t.Helper()
	names := []string{"manager", "agent", "kube-apiserver", "etcd", "kube-controller-manager", "kube-scheduler"}
	victim := names[random.IntN(len(names))]
	var pid int
	eventually(t, time.Minute, func(context.Context) error {
		if pid = i.components(t)[victim].PID; pid == 0 {
			return fmt.Errorf("%s does not run", victim)
		}
		return nil
	})
	t.Logf("kill -9 %s (%d)", victim, pid)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Logf("it has ended by itself: %v", err) // with what it depends on
	}
	eventually(t, 2*time.Minute, func(context.Context) error {
		if now := i.components(t)[victim]; now.PID == 0 || now.PID == pid {
			return fmt.Errorf("%s has not come back: %+v", victim, now)
		}
		return nil
	})
}

// reboot ends every process with SIGTERM and starts the instance again. It notes which
// trials were interrupted: those that were not over before it.
func (i *instance) reboot(t *testing.T, stamps string, interrupted map[string]int) {
	t.Helper()
	began := time.Now()
	i.signalAll(t, syscall.SIGTERM, stamps)
	i.awaitNoProcess(t)
	if out, err := i.vernier("up"); err != nil {
		t.Fatalf("vernier up: %v\n%s", err, out)
	}
	running := 0
	for _, trial := range i.trials(t, "soak") {
		// The times of objects are whole seconds.
		if ended := trial.Status.CompletionTime; ended == nil || ended.After(began.Add(-time.Second)) {
			interrupted[trial.Name]++
			running++
		}
	}
	t.Logf("SIGTERM to every process, with %d trials that were not over", running)
}

// lostAnswers counts for each trial how often the Job controller did not hear whether
// its pod was made, because the API server was killed. Then it makes another one, and
// removes one of them or lets both run.
func (i *instance) lostAnswers(t *testing.T) map[string]int {
	t.Helper()
	var events corev1.EventList
	if err := i.client.List(t.Context(), &events, client.InNamespace("default")); err != nil {
		t.Fatal(err)
	}
	lost := map[string]int{}
	for _, e := range events.Items {
		if e.InvolvedObject.Kind == "Job" && e.Reason == "FailedCreate" {
			lost[e.InvolvedObject.Name] += max(1, int(e.Count))
		}
	}
	return lost
}

// checkStarts holds that the program of each trial was started once, and once more at
// most for each time that it was interrupted or that its pod was made twice. It returns
// how many were.
func (i *instance) checkStarts(t *testing.T, dir string, trials []v1beta1.Trial, interrupted, twice map[string]int) (again int) {
	t.Helper()
	for _, trial := range trials {
		stamps, err := filepath.Glob(filepath.Join(dir, trial.Name+".*"))
		if err != nil {
			t.Fatal(err)
		}
		if n := len(stamps); n < 1 || n > 1+interrupted[trial.Name]+twice[trial.Name] {
			t.Errorf("the program of trial %s was started %d times; %d reboots interrupted it, and %d pods may have been made twice", trial.Name, n, interrupted[trial.Name], twice[trial.Name])
			i.showEvents(t, trial.Name)
		}
		again += len(stamps) - 1
	}
	return again
}

// checkLastPoints holds that the last start of each program has each of its points
// once, and that no start has a point twice. When a reboot ends the manager just after
// a program, the collector has only its termination message left: then the result is
// that of all points, and the trial says what its curve lacks. Of a pod that was made
// twice one may be removed on the way: the result is that of the other one.
func checkLastPoints(t *testing.T, home string, trials []v1beta1.Trial, interrupted, twice map[string]int) {
	t.Helper()
	s := openStoreOf(t, home)
	for _, trial := range trials {
		if interrupted[trial.Name] > 0 && isSummarized(&trial) {
			t.Logf("the curve of trial %s ends at a reboot", trial.Name)
			continue
		}
		series, err := collector.ReadSeries(t.Context(), s, string(trial.UID), "loss")
		if err != nil {
			t.Fatal(err)
		}
		if !isWhole(&trial) {
			t.Errorf("the result of trial %s is not that of a whole run: %+v", trial.Name, trial.Status)
		}
		if !slices.ContainsFunc(series, func(s collector.Series) bool { return slices.Equal(steps(s), stepsOfKill()) }) {
			t.Errorf("no start of trial %s has all of its points", trial.Name)
		}
		if twice[trial.Name] > 0 {
			t.Logf("trial %s was started %d times; the API server was killed when its pod was made", trial.Name, len(series))
			continue
		}
		for n, one := range series {
			got, want := steps(one), stepsOfKill()
			if n < len(series)-1 {
				want = want[:min(len(got), len(want))] // it was interrupted
			}
			if !slices.Equal(got, want) {
				t.Errorf("start %d of %d of trial %s has the steps %v, want %v; its status is %+v", n+1, len(series), trial.Name, got, want, trial.Status)
			}
		}
	}
}

// isSummarized reports that a trial's result is that of a whole run of killExperiment's
// program although the collector could not send all of its points.
func isSummarized(trial *v1beta1.Trial) bool {
	return isWhole(trial) && strings.Contains(trial.Condition(v1beta1.TrialSucceeded).Message, v1beta1.CollectorSays)
}

// isWhole reports that a trial's result is that of a whole run of killExperiment's
// program.
func isWhole(trial *v1beta1.Trial) bool {
	o := trial.Status.Observation
	return o != nil && len(o.Metrics) == 1 && o.Metrics[0].Min == "0.00" && o.Metrics[0].Latest == "0.99"
}

func openStoreOf(t *testing.T, home string) collector.Store {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(home, "*", "*.db"))
	if err != nil || len(files) != 1 {
		t.Fatalf("the store's file: found %v (%v), want one", files, err)
	}
	s, err := store.Open(t.Context(), "sqlite:"+files[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// stepsOfKill are the steps of one whole run of killExperiment's program.
func stepsOfKill() []int64 {
	var want []int64
	for step := range int64(killPoints) {
		want = append(want, step)
	}
	return want
}
