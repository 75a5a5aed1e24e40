package experiment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector"
)

func experimentNamed(name string) *v1beta1.Experiment {
	exp := conditional()
	exp.Namespace, exp.Name, exp.UID = "ml", name, types.UID(name)
	return exp
}

// use is one reconcile's use of a study.
func use(t *testing.T, s *studies, exp *v1beta1.Experiment) *kept {
	t.Helper()
	k, err := s.get(t.Context(), exp)
	if err != nil {
		t.Fatal(err)
	}
	s.done(k)
	return k
}

func TestStudiesAreKeptWhileTheSpecStays(t *testing.T) {
	var s studies
	a, b := experimentNamed("a"), experimentNamed("b")
	first := use(t, &s, a)
	if use(t, &s, b) == first || use(t, &s, a) != first {
		t.Error("the study of an experiment is not its own")
	}
	a.Generation++
	second := use(t, &s, a)
	if second == first || use(t, &s, a) != second {
		t.Error("a spec that has changed keeps its old study")
	}
	a.UID = "made again"
	if use(t, &s, a) == second {
		t.Error("an experiment that was made again has the study of the old one")
	}
	a.Spec.Algorithm.AlgorithmSettings = []v1beta1.AlgorithmSetting{{Name: "magic", Value: "1"}}
	a.Generation++
	for range 2 {
		k, err := s.get(t.Context(), a)
		if err != nil || k.invalid == nil {
			t.Fatalf("an invalid spec: %v, %v", k, err)
		}
		s.done(k)
	}
}

// A reconcile does not wait for long while trials are handed out, and however many
// hand-outs wait, one at most goes before it.
func TestAReconcileWaitsForOneHandOutAtMost(t *testing.T) {
	var s studies
	exp := experimentNamed("a")
	leave, err := s.queue(t.Context(), exp)
	if err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for range 20 { // a select is fair: a broken one may be right once
		if _, err := s.queue(gone, exp); err == nil {
			t.Fatal("two hand-outs wait for the study at once")
		}
	}
	k, err := s.get(t.Context(), exp)
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if _, err := s.get(gone, exp); err == nil {
			t.Fatal("two use a study at once")
		}
	}
	s.done(k)
	leave()
	if leave, err = s.queue(t.Context(), exp); err != nil {
		t.Fatal(err)
	}
	leave()
	use(t, &s, exp)
}

// What is kept is bounded by memory, and the one that was used longest ago goes.
func TestStudiesAreBoundedByMemory(t *testing.T) {
	s := studies{memory: 10_000}
	trials := trialsIn(times(8, succeeded)...) // some 4 kB
	reused := experimentNamed("used all the time")
	for i := range 20 {
		for _, exp := range []*v1beta1.Experiment{reused, experimentNamed(fmt.Sprint(i))} {
			k, err := s.get(t.Context(), exp)
			if err != nil {
				t.Fatal(err)
			}
			k.Update(trials)
			s.done(k)
		}
	}
	total := 0
	for _, k := range s.kept {
		total += k.bytes
	}
	if total > s.memory || len(s.kept) < 2 || s.kept[0].uid != reused.UID {
		t.Errorf("%d studies are kept, of %d bytes", len(s.kept), total)
	}
}

// The algorithm of an experiment that makes way while it learns would begin again
// at each reconcile.
func TestStudiesThatLearnMakeNoWay(t *testing.T) {
	s := studies{memory: 1}
	idle, learns := use(t, &s, experimentNamed("a")), use(t, &s, experimentNamed("b"))
	idle.bytes, learns.bytes, learns.learning = 1000, 1000, true
	use(t, &s, experimentNamed("c"))
	if !slices.Contains(s.kept, learns) || slices.Contains(s.kept, idle) {
		t.Errorf("%d are kept: one that learns made way, or the other did not", len(s.kept))
	}
}

func TestStudiesOfDeletedExperimentsAreForgotten(t *testing.T) {
	c := controllerOver(t, noon)
	gone := experimentNamed("gone")
	use(t, &c.studies, gone)
	use(t, &c.studies, experimentNamed("stays"))
	if _, err := c.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(gone)}); err != nil {
		t.Fatal(err)
	}
	if len(c.studies.kept) != 1 || c.studies.kept[0].uid != "stays" {
		t.Errorf("%d are kept", len(c.studies.kept))
	}
}

// While an algorithm learns, the API server's answer to a status write is read into
// the experiment: what wakes must be another object.
func TestWakingSharesNothingWithTheReconcile(t *testing.T) {
	exp := experimentNamed("demo")
	c := New(Options{})
	go c.waker(exp)(t.Context())
	woken := (<-c.woken).Object
	if woken == client.Object(exp) || client.ObjectKeyFromObject(woken) != client.ObjectKeyFromObject(exp) {
		t.Errorf("%v wakes", client.ObjectKeyFromObject(woken))
	}
}

// stopping has six trials that ended with a loss of 1, each over ten steps, and two
// at the given step: one with a loss of 5 and one with 0.5. reads counts how often
// each curve is read.
func stopping(t *testing.T, exp *v1beta1.Experiment, step int64) (c *Controller, trials []*v1beta1.Trial, reads map[string]int) {
	t.Helper()
	exp.Spec.Objective = &v1beta1.ObjectiveSpec{Type: v1beta1.ObjectiveTypeMinimize, ObjectiveMetricName: "loss"}
	exp.Spec.EarlyStopping = &v1beta1.EarlyStoppingSpec{AlgorithmName: "medianstop"}
	losses := map[string]float64{}
	var objects []client.Object
	for n, value := range []float64{1, 1, 1, 1, 1, 1, 5, 0.5} {
		trial := aTrial(n, running)
		trial.Namespace, trial.UID = exp.Namespace, types.UID(trial.Name)
		trial.Spec.ParameterAssignments = assigned("model", "svm")
		if n < 6 {
			trial.MarkSucceeded("", metav1.NewTime(noon))
			trial.Status.Observation = &v1beta1.Observation{Metrics: []v1beta1.Metric{{Name: "loss", Latest: "1", Min: "1", Max: "1"}}}
		}
		losses[trial.Name] = value
		trials, objects = append(trials, trial), append(objects, trial)
	}
	c, reads = controllerOver(t, noon, objects...), map[string]int{}
	c.Scan = func(_ context.Context, uid string, metrics []string, yield func(collector.Attempt, collector.Point) error) error {
		if len(metrics) != 1 || metrics[0] != "loss" {
			return fmt.Errorf("the curve of %s", metrics)
		}
		reads[uid]++
		last := int64(10)
		if uid == trials[6].Name || uid == trials[7].Name {
			last = step
		}
		for step := range last {
			if err := yield(collector.Attempt{ID: "a"}, collector.Point{Value: losses[uid], Step: step + 1}); err != nil {
				return err
			}
		}
		return nil
	}
	return c, trials, reads
}

func TestTheRuleStopsWhatIsBad(t *testing.T) {
	exp := experimentNamed("demo")
	c, trials, reads := stopping(t, exp, 9)
	k := use(t, &c.studies, exp)
	k.Update(trials)
	again, err := c.stopEarly(t.Context(), exp, k, true)
	if err != nil || again != judgeEvery {
		t.Fatalf("again in %s, %v", again, err)
	}
	for i, trial := range trials {
		now := &v1beta1.Trial{}
		if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(trial), now); err != nil {
			t.Fatal(err)
		}
		if why := now.Annotations[v1beta1.AnnotationStopEarly]; strings.HasPrefix(why, "medianstop: ") != (i == 6) {
			t.Errorf("trial %d is asked to stop: %q", i, why)
		}
	}
	// At once, there is nothing new; later only what still runs is read again.
	clear(reads)
	if left, err := c.stopEarly(t.Context(), exp, k, true); left <= 0 || err != nil || len(reads) > 0 {
		t.Errorf("%d curves were read at once, %v", len(reads), err)
	}
	c.Now = func() time.Time { return noon.Add(judgeEvery) }
	if _, err := c.stopEarly(t.Context(), exp, k, true); err != nil || len(reads) != 2 {
		t.Errorf("%d curves were read again, want 2: %v", len(reads), err)
	}
}

func TestATrialAtTheLastStepOfOthersIsNotStopped(t *testing.T) {
	for step, want := range map[int64]bool{9: true, 10: false, 11: true} {
		t.Run(fmt.Sprint(step), func(t *testing.T) {
			exp := experimentNamed("demo")
			c, trials, _ := stopping(t, exp, step)
			k := use(t, &c.studies, exp)
			k.Update(trials)
			stops, _, err := k.Judge(t.Context(), c.Scan)
			if err != nil || (len(stops) == 1) != want {
				t.Errorf("stops %v, %v; want one: %v", stops, err, want)
			}
		})
	}
}

func TestCurvesThatCannotBeReadAreAnError(t *testing.T) {
	exp := experimentNamed("demo")
	c, trials, _ := stopping(t, exp, 9)
	broken := errors.New("disk full")
	c.Scan = func(context.Context, string, []string, func(collector.Attempt, collector.Point) error) error {
		return broken
	}
	k := use(t, &c.studies, exp)
	k.Update(trials)
	if _, err := c.stopEarly(t.Context(), exp, k, true); !errors.Is(err, broken) || !strings.Contains(err.Error(), trials[0].Name) {
		t.Errorf("got %v", err)
	}
}
