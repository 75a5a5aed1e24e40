package trial

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/contract"
	"github.com/vernier-ml/vernier/collector/store"
	"github.com/vernier-ml/vernier/trainer"
)

// summarized is a pod whose collector left a summary of one value of loss.
func summarized(t *testing.T, attempt string, final bool, loss float64) corev1.Pod {
	t.Helper()
	v := collector.Measure{Value: loss, Text: collector.FormatValue(loss)}
	text, err := contract.Summary{
		Attempt: collector.Attempt{ID: attempt, Started: noon}, Final: final,
		Metrics: []contract.MetricSummary{{Name: "loss", Last: v, Min: v, Max: v, Step: 1, Count: 1}},
	}.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return corev1.Pod{Status: corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{{
		Name:  trainer.SidecarLogger,
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: string(text)}},
	}}}}
}

func TestSummariesStandInForWhatTheStoreLacks(t *testing.T) {
	stored := func(id string, final bool) collector.AttemptState {
		return collector.AttemptState{Attempt: collector.Attempt{ID: id, Started: noon}, Final: final}
	}
	tests := map[string]struct {
		attempts []collector.AttemptState
		pods     []corev1.Pod
		final    bool
		summary  []string
	}{
		"a final attempt needs no summary": {
			[]collector.AttemptState{stored("a/0", true)}, []corev1.Pod{summarized(t, "a/0", true, 1)}, true, nil},
		"an attempt that is not final has one": {
			[]collector.AttemptState{stored("a/0", false)}, []corev1.Pod{summarized(t, "a/0", false, 1)}, false, []string{"a/0"}},
		"an attempt that never reached the store has one, whatever an earlier one said": {
			[]collector.AttemptState{stored("a/0", true)},
			[]corev1.Pod{summarized(t, "a/0", true, 9), summarized(t, "b/0", false, 1)}, false, []string{"a/0", "b/0"}},
		"an earlier attempt that was cut off changes nothing": {
			[]collector.AttemptState{stored("a/0", false), stored("b/0", true)},
			[]corev1.Pod{summarized(t, "a/0", false, 9), summarized(t, "b/0", true, 1)}, true, nil},
		"without a sidecar the program's container has it": {
			nil, []corev1.Pod{{Status: corev1.PodStatus{ContainerStatuses: summarized(t, "a/0", false, 1).Status.InitContainerStatuses}}}, false, []string{"a/0"}},
		"without pods the store is what there is": {
			[]collector.AttemptState{stored("a/0", true)}, nil, true, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var d data
			d.read(tc.attempts, tc.pods, true)
			var got []string
			for _, s := range d.summary {
				got = append(got, s.Attempt.ID)
			}
			if diff := cmp.Diff(tc.summary, got); diff != "" || d.final != tc.final || d.condensed != (len(tc.summary) > 0) {
				t.Errorf("final %v, condensed %v, summaries (-want +got):\n%s", d.final, d.condensed, diff)
			}
		})
	}
}

// The newest attempt is all in the store, so the store is what the trial's result
// is made of; that an attempt before it is not must be said.
func TestWhatEarlierAttemptsLackIsSaid(t *testing.T) {
	tests := map[string]struct {
		summary contract.Summary
		want    []string
	}{
		"all attempts of the pod are final": {
			contract.Summary{Attempt: collector.Attempt{ID: "a/1", Started: noon}, Final: true, Note: "capped"}, []string{"capped"}},
		"an earlier one is not": {
			contract.Summary{Attempt: collector.Attempt{ID: "a/1", Started: noon}, Note: "5 points lost; capped"}, []string{"5 points lost; capped"}},
		"a pod before it was cut off": {
			contract.Summary{Attempt: collector.Attempt{ID: "b/0", Started: noon.Add(-time.Hour)}, Note: "3 points lost"}, []string{"capped"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			text, err := tc.summary.Marshal()
			if err != nil {
				t.Fatal(err)
			}
			pod := summarized(t, "", true, 1)
			pod.Status.InitContainerStatuses[0].State.Terminated.Message = string(text)
			var d data
			d.read([]collector.AttemptState{{Attempt: collector.Attempt{ID: "a/1", Started: noon}, Final: true, Note: "capped"}}, []corev1.Pod{pod}, true)
			if diff := cmp.Diff(tc.want, d.notes); diff != "" || !d.final || d.condensed {
				t.Errorf("final %v, condensed %v, notes (-want +got):\n%s", d.final, d.condensed, diff)
			}
		})
	}
}

// curveless counts how often curves are read.
type curveless struct {
	collector.Store
	observed int
}

func (c *curveless) Scan(ctx context.Context, uid string, metrics []string, yield func(collector.Attempt, collector.Point) error) error {
	c.observed++
	return c.Store.Scan(ctx, uid, metrics, yield)
}

// storeWith is a store with a trial's points, each series of a source of its
// own; final says that the attempt of the first is.
func storeWith(t *testing.T, trial *v1beta1.Trial, final bool, series ...collector.Series) collector.Store {
	t.Helper()
	s, err := store.Open(t.Context(), "memory:")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	id := collector.TrialID{Namespace: "ns", Name: trial.Name, UID: string(trial.UID)}
	for i, some := range series {
		for k := range some.Points {
			some.Points[k].Source = strconv.Itoa(i)
		}
		if err := s.Append(t.Context(), id, some.Attempt, some.Points); err != nil {
			t.Fatal(err)
		}
	}
	if final {
		if err := s.Finish(t.Context(), id, series[0].Attempt, ""); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func TestMeasureReadsTheStoreOnlyAsFarAsItMust(t *testing.T) {
	loss, other := points("loss", 3, 1, 2), points("los", 1)
	stands := func(metrics ...string) []collector.Observation { // of loss and accuracy, in what is stored
		var observed []collector.Observation
		for _, m := range metrics {
			observed = append(observed, collector.Observe([]collector.Series{loss, other}, m))
		}
		return observed
	}
	over := reading{over: true}
	tests := map[string]struct {
		trial    *v1beta1.Trial
		series   []collector.Series
		final    bool
		pods     []corev1.Pod
		reading  reading
		stored   []collector.Observation
		names    []string
		observed int
	}{
		"a running trial's metrics are condensed": {
			trial: aTrial(), series: []collector.Series{loss, other}, stored: stands("loss", "accuracy"), observed: 1},
		"nothing of a running trial without reports": {trial: aTrial()},
		"metrics that were not asked for are nothing": {
			trial: aTrial(), series: []collector.Series{other}, observed: 1},
		"an ended trial's metrics are condensed": {
			trial: aTrial(), series: []collector.Series{loss}, final: true, reading: over, stored: stands("loss", "accuracy"), observed: 1},
		"what was seen instead is named": {
			trial: aTrial(), series: []collector.Series{other}, final: true, reading: over, names: []string{"los"}, observed: 1},
		"a summary that has the objective needs no names": {
			trial: aTrial(), series: []collector.Series{other}, pods: []corev1.Pod{summarized(t, "pod/1", false, 1)},
			reading: over, observed: 1},
		"names come from summaries too": {
			trial:  aTrial(func(tr *v1beta1.Trial) { tr.Spec.Objective.ObjectiveMetricName = "f1" }),
			series: []collector.Series{other}, pods: []corev1.Pod{summarized(t, "pod/1", false, 1)},
			reading: over, names: []string{"los", "loss"}, observed: 1},
		"nothing while more is awaited": {
			trial: aTrial(), series: []collector.Series{loss}, reading: reading{over: true, awaited: true}},
		"everything once nothing more is awaited": {
			trial: aTrial(), series: []collector.Series{loss}, final: true, reading: reading{over: true, awaited: true},
			stored: stands("loss", "accuracy"), observed: 1},
		"without an objective there is nothing to condense": {
			trial:  aTrial(func(tr *v1beta1.Trial) { tr.Spec.Objective = nil }),
			series: []collector.Series{other}, final: true, reading: over, names: []string{"los"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := &curveless{Store: storeWith(t, tc.trial, tc.final, tc.series...)}
			c := New(Options{Store: s})
			d, err := c.measure(t.Context(), tc.trial, tc.pods, tc.reading)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.stored, d.stored, cmpopts.EquateNaNs()); diff != "" {
				t.Errorf("stored (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.names, d.names, cmpopts.EquateEmpty()); diff != "" || s.observed != tc.observed {
				t.Errorf("the store condensed %d times, want %d; names (-want +got):\n%s", s.observed, tc.observed, diff)
			}
		})
	}
}

// The Job controller made the pod b once more, and removed it when a had succeeded.
func TestAPodThatWasMadeTwiceCountsOnce(t *testing.T) {
	series := func(id string, started time.Time, values ...float64) collector.Series {
		s := points("loss", values...)
		s.Attempt = collector.Attempt{ID: id, Started: started}
		return s
	}
	pod := func(uid string, created time.Time, phase corev1.PodPhase) corev1.Pod {
		p := summarized(t, uid+"/0", phase == corev1.PodSucceeded, 9)
		p.UID, p.CreationTimestamp, p.Status.Phase = types.UID(uid), metav1.NewTime(created), phase
		return p
	}
	later := noon.Add(3 * time.Second)
	whole, partial := series("a/0", noon, 3, 2, 1), series("b/0", later, 3, 2)
	tests := map[string]struct {
		series []collector.Series
		pods   []corev1.Pod
		latest string
	}{
		"the second is gone": {[]collector.Series{whole, partial}, []corev1.Pod{pod("a", noon, corev1.PodSucceeded)}, "1"},
		"the second is ending": {
			[]collector.Series{whole, partial}, []corev1.Pod{pod("a", noon, corev1.PodSucceeded), pod("b", later, corev1.PodFailed)}, "1"},
		"the second reported nothing": {
			[]collector.Series{whole}, []corev1.Pod{pod("b", later, corev1.PodRunning), pod("a", noon, corev1.PodSucceeded)}, "1"},
		"the first failed and was tried again": {
			[]collector.Series{series("a/0", noon, 3), series("b/0", later, 5, 4)}, []corev1.Pod{pod("a", noon, corev1.PodFailed), pod("b", later, corev1.PodSucceeded)}, "4"},
		"nothing is known of the pods": {[]collector.Series{whole, partial}, nil, "2"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			trial := aTrial()
			s := storeWith(t, trial, false, tc.series...)
			for _, some := range tc.series {
				if err := s.Finish(t.Context(), collector.TrialID{Namespace: "ns", Name: trial.Name, UID: string(trial.UID)}, some.Attempt, ""); err != nil {
					t.Fatal(err)
				}
			}
			d, err := New(Options{Store: s}).measure(t.Context(), trial, tc.pods, reading{over: true})
			if err != nil {
				t.Fatal(err)
			}
			observed := best(trial.Spec.Objective, d)
			if len(observed) == 0 || observed[0].Latest.Text != tc.latest || !d.final {
				t.Errorf("final %v, observed %+v, want the latest loss %s", d.final, observed, tc.latest)
			}
		})
	}
}

func TestTheStoreRestsBetweenReadsForARunningTrial(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{
		0:                      2 * time.Second,
		100 * time.Millisecond: 2 * time.Second,
		3 * time.Second:        time.Minute,
	} {
		m := newMemory()
		if rest := m.rest("uid", noon); rest > 0 {
			t.Errorf("a trial that was not read rests for %s", rest)
		}
		m.wasRead("uid", took, noon)
		if rest := m.rest("uid", noon.Add(time.Second)); rest != want-time.Second {
			t.Errorf("a read of %s: after a second %s are left, want %s", took, rest, want-time.Second)
		}
		if rest := m.rest("uid", noon.Add(want)); rest > 0 {
			t.Errorf("a read of %s: after %s there are %s left", took, want, rest)
		}
		m.forgetJob("uid")
		if len(m.trials) != 0 {
			t.Errorf("what is remembered of a trial that is over: %v", m.trials)
		}
	}
}

func TestLiveViewsSlowDownWithTheNumberOfTrials(t *testing.T) {
	m := newMemory()
	for i := range 500 {
		m.wasRead(types.UID(fmt.Sprint(i)), 0, noon)
	}
	if rest := m.rest("499", noon); rest < 9*time.Second {
		t.Errorf("the last of 500 trials rests for %s", rest)
	}
}

// An experiment that is deleted and created again has trials of the same names;
// pods of the deleted ones may still be ending.
func TestPodsOfADeletedTrialAreNotLookedAt(t *testing.T) {
	tr := aTrial()
	pod := func(name string, after time.Duration) corev1.Pod {
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(tr.CreationTimestamp.Add(after))}}
	}
	var got []string
	for _, p := range ofTrial(tr, []corev1.Pod{pod("old", -time.Second), pod("same second", 0), pod("new b", time.Minute), pod("new a", time.Minute), pod("before", time.Second)}) {
		got = append(got, p.Name)
	}
	// The order is not that of the cache's index, which changes.
	if diff := cmp.Diff([]string{"same second", "before", "new a", "new b"}, got); diff != "" {
		t.Errorf("pods (-want +got):\n%s", diff)
	}
}

// The garbage collector deletes a trial before its job.
func TestJobsOfDeletedTrialsAreForgotten(t *testing.T) {
	m := newMemory()
	m.jobGone("uid", &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"namespace": "ns", "name": "exp-0000"}}})
	m.jobGone("other", &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"namespace": "ns", "name": "exp-0001"}}})
	m.forgetJobs(types.NamespacedName{Namespace: "ns", Name: "exp-0000"})
	if m.lastJob("uid") != nil || m.lastJob("other") == nil || len(m.trials) != 1 {
		t.Errorf("what is remembered: %v", m.trials)
	}
}

// What a metric lacked while the program ran is not said of its end.
func TestASummaryReplacesWhatWasSaidSoFar(t *testing.T) {
	attempts := []collector.AttemptState{{Attempt: collector.Attempt{ID: "a/0", Started: noon}, Note: "so far loss was not found; there is acc"}}
	ended, lost := summarized(t, "a/0", false, 1), summarized(t, "b/0", false, 1)
	tests := map[string]struct {
		pods []corev1.Pod
		over bool
		want []string
	}{
		"it runs":                 {nil, false, []string{attempts[0].Note}},
		"its collector ended":     {[]corev1.Pod{ended}, true, nil},
		"its collector was lost":  {nil, true, []string{attempts[0].Note}},
		"that of another attempt": {[]corev1.Pod{lost}, true, []string{attempts[0].Note}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var d data
			d.read(attempts, tc.pods, tc.over)
			if diff := cmp.Diff(tc.want, d.notes); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
		})
	}
}
