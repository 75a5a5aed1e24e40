package trial

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/trainer"
)

var noon = time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)

// aTrial minimizes loss and runs since an hour.
func aTrial(change ...func(*v1beta1.Trial)) *v1beta1.Trial {
	past := metav1.NewTime(noon.Add(-time.Hour))
	t := &v1beta1.Trial{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "exp-0000", UID: "uid", CreationTimestamp: past},
		Spec: v1beta1.TrialSpec{
			Objective: &v1beta1.ObjectiveSpec{
				Type: v1beta1.ObjectiveTypeMinimize, ObjectiveMetricName: "loss", AdditionalMetricNames: []string{"accuracy"},
			},
			PrimaryContainerName: "main",
		},
	}
	t.MarkCreated(messageCreated, past)
	t.MarkRunning(messageRunning, past)
	t.Status.StartTime = &past
	for _, f := range change {
		f(t)
	}
	return t
}

// saying gives a running trial a message.
func saying(message string) func(*v1beta1.Trial) {
	return func(t *v1beta1.Trial) { t.Condition(v1beta1.TrialRunning).Message = message }
}

func unseen(t *v1beta1.Trial) { t.Status = v1beta1.TrialStatus{} }
func withSecond(t *v1beta1.Trial) {
	t.Spec.Objectives = []v1beta1.ObjectiveMetric{{ObjectiveMetricName: "loss"}, {ObjectiveMetricName: "accuracy"}}
}

func labelled(t *v1beta1.Trial) { t.Labels = map[string]string{v1beta1.LabelExperiment: "exp"} }

// printing collects standard output of a format.
func printing(format v1beta1.FileFormat) func(*v1beta1.Trial) {
	return func(t *v1beta1.Trial) {
		t.Spec.MetricsCollector.Source = &v1beta1.SourceSpec{FileSystemPath: &v1beta1.FileSystemPath{Format: format}}
	}
}

func retain(t *v1beta1.Trial)   { t.Spec.RetainRun = true }
func complete(t *v1beta1.Trial) { t.MarkSucceeded("", metav1.NewTime(noon)) }
func dead(t *v1beta1.Trial)     { t.MarkKilled("", metav1.NewTime(noon)) }
func stopped(t *v1beta1.Trial) {
	t.Annotations = map[string]string{v1beta1.AnnotationStop: "goal reached"}
}

func lost(t *v1beta1.Trial) { t.MarkFailed("", metav1.NewTime(noon)) }

func collecting(kind v1beta1.CollectorKind) func(*v1beta1.Trial) {
	return func(t *v1beta1.Trial) { t.Spec.MetricsCollector.Collector = &v1beta1.CollectorSpec{Kind: kind} }
}

func jobIn(p trainer.Phase) job {
	return job{presence: present, exists: true, state: trainer.State{Phase: p, Reason: "R", Message: "M"}}
}

// late is a job that ran into its deadline.
func late() job {
	seen := jobIn(trainer.Failed)
	seen.state.Reason = "DeadlineExceeded"
	return seen
}

func points(metric string, values ...float64) collector.Series {
	s := collector.Series{Attempt: collector.Attempt{ID: "pod/0", Started: noon}, Metric: metric}
	for i, v := range values {
		s.Points = append(s.Points, collector.Point{Metric: metric, Value: v, Step: int64(i), Source: "stdout", Seq: int64(i)})
	}
	return s
}

// stored condenses series as the store does for aTrial.
func stored(series ...collector.Series) (observed []collector.Observation) {
	for _, name := range metricNames(aTrial().Spec.Objective) {
		observed = append(observed, collector.Observe(series, name))
	}
	return observed
}

func podsIn(phases ...corev1.PodPhase) []corev1.Pod {
	var pods []corev1.Pod
	for _, p := range phases {
		pods = append(pods, corev1.Pod{Status: corev1.PodStatus{Phase: p}})
	}
	return pods
}

// outcome is what the table compares.
type outcome struct {
	Create, Remove bool
	After          time.Duration
	State          v1beta1.TrialConditionType // empty: no write
	Loss           string                     // min/max/latest
}

func outcomeOf(d decision) outcome {
	o := outcome{Create: d.create, Remove: d.remove, After: d.after}
	if d.status != nil {
		o.State = last(d.status).Type
		if d.status.Observation != nil {
			m := d.status.Observation.Metrics[0]
			o.Loss = m.Min + "/" + m.Max + "/" + m.Latest
		}
	}
	return o
}

const (
	isRunning   = v1beta1.TrialRunning
	isSucceeded = v1beta1.TrialSucceeded
	isFailed    = v1beta1.TrialFailed
	isKilled    = v1beta1.TrialKilled
	isUnknown   = v1beta1.TrialMetricsUnavailable
)

func TestPlan(t *testing.T) {
	all := data{final: true, stored: stored(points("loss", 3, 1, 2))}
	some := data{stored: stored(points("loss", 3, 1))}
	tests := map[string]struct {
		seen seen
		want outcome
	}{
		"a new trial gets a job":                     {seen{trial: aTrial(unseen)}, outcome{Create: true}},
		"a new trial that was stopped gets none":     {seen{trial: aTrial(unseen, stopped)}, outcome{State: isKilled}},
		"a job without its status gets it":           {seen{trial: aTrial(unseen), job: jobIn(trainer.Running)}, outcome{State: isRunning}},
		"a running job is left alone":                {seen{trial: aTrial(), job: jobIn(trainer.Running), wait: time.Second}, outcome{After: time.Second}},
		"a running trial that is stopped is killed":  {seen{trial: aTrial(stopped), job: jobIn(trainer.Running), data: some}, outcome{State: isKilled, Loss: "1/3/1"}},
		"an ended job wins over being stopped":       {seen{trial: aTrial(stopped), job: jobIn(trainer.Succeeded), data: all}, outcome{State: isSucceeded, Loss: "1/3/2"}},
		"a succeeded job with all points succeeds":   {seen{trial: aTrial(), job: jobIn(trainer.Succeeded), data: all}, outcome{State: isSucceeded, Loss: "1/3/2"}},
		"a succeeded job waits for its last reports": {seen{trial: aTrial(), job: jobIn(trainer.Succeeded), data: some, wait: 20 * time.Second}, outcome{After: lookAgain}},
		"after that what there is counts":            {seen{trial: aTrial(), job: jobIn(trainer.Succeeded), data: some}, outcome{State: isSucceeded, Loss: "1/3/1"}},
		"a summary stands in for lost reports": {
			seen{trial: aTrial(), job: jobIn(trainer.Succeeded), data: data{condensed: true, summary: []collector.Series{points("loss", 7)}, stored: some.stored}},
			outcome{State: isSucceeded, Loss: "7/7/7"}},
		"the store wins over a summary when it has everything": {
			seen{trial: aTrial(), job: jobIn(trainer.Succeeded), data: data{final: true, condensed: true, summary: []collector.Series{points("loss", 7)}, stored: all.stored}},
			outcome{State: isSucceeded, Loss: "1/3/2"}},
		"NaN is measured": {
			seen{trial: aTrial(), job: jobIn(trainer.Succeeded), data: data{final: true, stored: stored(points("loss", math.NaN()))}},
			outcome{State: isSucceeded, Loss: "NaN/NaN/NaN"}},
		"no objective at all is unavailable": {
			seen{trial: aTrial(), job: jobIn(trainer.Succeeded), data: data{final: true}}, outcome{State: isUnknown}},
		"another metric alone is unavailable": {
			seen{trial: aTrial(), job: jobIn(trainer.Succeeded), data: data{final: true, stored: stored(points("accuracy", 1))}},
			outcome{State: isUnknown, Loss: "unavailable/unavailable/unavailable"}},
		"one of two objectives is not enough": {
			seen{trial: aTrial(withSecond), job: jobIn(trainer.Succeeded), data: data{final: true, stored: stored(points("loss", 1))}},
			outcome{State: isUnknown, Loss: "1/1/1"}},
		"both of two objectives are": {
			seen{trial: aTrial(withSecond), job: jobIn(trainer.Succeeded), data: data{final: true, stored: stored(points("loss", 1), points("accuracy", 1))}},
			outcome{State: isSucceeded, Loss: "1/1/1"}},
		"the collector None is not waited for":                   {seen{trial: aTrial(collecting(v1beta1.NoneCollector)), job: jobIn(trainer.Succeeded)}, outcome{State: isUnknown}},
		"a failed job fails and keeps its points":                {seen{trial: aTrial(), job: jobIn(trainer.Failed), data: some}, outcome{State: isFailed, Loss: "1/3/1"}},
		"a failed job fails without points":                      {seen{trial: aTrial(), job: jobIn(trainer.Failed)}, outcome{State: isFailed}},
		"a state that cannot be read fails":                      {seen{trial: aTrial(), job: job{presence: present, exists: true, err: errors.New("x")}}, outcome{State: isFailed}},
		"a job on its way out is waited for":                     {seen{trial: aTrial(), job: job{presence: present, exists: true, deleting: true, state: trainer.State{Phase: trainer.Running}}}, outcome{}},
		"an ended job on its way out counts":                     {seen{trial: aTrial(), job: job{presence: present, exists: true, deleting: true, state: trainer.State{Phase: trainer.Succeeded}}, data: all}, outcome{State: isSucceeded, Loss: "1/3/2"}},
		"an ended job that is gone counts":                       {seen{trial: aTrial(), job: job{presence: present, state: trainer.State{Phase: trainer.Failed}}}, outcome{State: isFailed}},
		"a job removed before its end is made again":             {seen{trial: aTrial(), job: job{presence: removed}, data: all}, outcome{Create: true}},
		"a job that is gone is made again, whatever it reported": {seen{trial: aTrial(), job: job{presence: removed}, data: all}, outcome{Create: true}},
		"the job of an ended trial is removed":                   {seen{trial: aTrial(complete), job: jobIn(trainer.Succeeded)}, outcome{Remove: true}},
		"a retained job stays":                                   {seen{trial: aTrial(complete, retain), job: jobIn(trainer.Succeeded)}, outcome{}},
		"a job that cannot be read does not stay, retained":      {seen{trial: aTrial(lost, retain), job: job{presence: present, exists: true, err: errors.New("no condition")}}, outcome{Remove: true}},
		"a killed job does not stay, retained or not":            {seen{trial: aTrial(dead, retain), job: jobIn(trainer.Running)}, outcome{Remove: true}},
		"a job that is being removed is left alone":              {seen{trial: aTrial(complete), job: job{presence: present, exists: true, deleting: true}}, outcome{}},
		"an ended trial without a job is done":                   {seen{trial: aTrial(complete)}, outcome{}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			before := tc.seen.trial.DeepCopy()
			d := plan(tc.seen, noon)
			if diff := cmp.Diff(tc.want, outcomeOf(d)); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, tc.seen.trial); diff != "" {
				t.Errorf("the trial was changed:\n%s", diff)
			}
			if d.status != nil && tc.want.State != isRunning && (d.status.CompletionTime == nil || d.status.StartTime == nil) {
				t.Errorf("times are missing: %+v", d.status)
			}
		})
	}
}

// A machine whose clock was an hour ahead looks at its trials before that hour is over.
func TestALiveViewIsDueAfterTheClockWasSetBack(t *testing.T) {
	for ago, want := range map[time.Duration]time.Duration{time.Second: time.Second, time.Minute: liveEvery - time.Minute, -time.Hour: 0} {
		tr := aTrial(func(tr *v1beta1.Trial) { tr.Status.LastReconcileTime = &metav1.Time{Time: noon.Add(-ago)} })
		if got := liveDue(tr, noon); got != want {
			t.Errorf("written %s ago, it is due in %s, want %s", ago, got, want)
		}
	}
}

func TestLiveView(t *testing.T) {
	running := jobIn(trainer.Running)
	observed := stored(points("loss", 3, 2))
	hidden := []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Status: corev1.PodStatus{Phase: corev1.PodFailed, Reason: trainer.ReasonDirectoryHidden, Message: "no room"}}}
	shown := func(tr *v1beta1.Trial) { tr.Status.Observation = observation(aTrial().Spec.Objective, observed) }
	tests := map[string]struct {
		seen    seen
		want    outcome
		message string
	}{
		"new values are shown":                {seen{trial: aTrial(), job: running, data: data{stored: observed}}, outcome{State: isRunning, Loss: "2/3/2", After: lookAgain}, messageRunning},
		"the same values are not written":     {seen{trial: aTrial(shown), job: running, data: data{stored: observed}}, outcome{After: lookAgain}, ""},
		"no values are not written":           {seen{trial: aTrial(), job: running, pods: podsIn(corev1.PodRunning)}, outcome{After: lookAgain}, ""},
		"pods that are not there are awaited": {seen{trial: aTrial(), job: running}, outcome{After: lookAgain}, ""},
		"a pod that starts is looked at again": {seen{trial: aTrial(), job: running, pods: podsIn(corev1.PodRunning, corev1.PodPending)},
			outcome{After: lookAgain}, ""},
		"it is not due before two seconds":   {seen{trial: aTrial(), job: running, data: data{stored: observed}, wait: 1500 * time.Millisecond}, outcome{After: 1500 * time.Millisecond}, ""},
		"a suspended job says that it waits": {seen{trial: aTrial(), job: jobIn(trainer.Pending)}, outcome{State: isRunning, After: lookAgain}, "Trial is running. Its job is queued: it is suspended"},
		"one that has reported was preempted": {seen{trial: aTrial(shown), job: jobIn(trainer.Pending), data: data{stored: observed}},
			outcome{State: isRunning, Loss: "2/3/2", After: lookAgain}, "Trial is running. Its job was preempted and waits to run again: it is suspended"},
		"when it runs again, that is no more said": {seen{trial: aTrial(shown, saying("Trial is running. Its job was preempted and waits to run again: it is suspended")), job: running, data: data{stored: observed}},
			outcome{State: isRunning, Loss: "2/3/2", After: lookAgain}, messageRunning},
		"what is not found yet is said": {seen{trial: aTrial(), job: running, data: data{notes: []string{"so far loss was not found; there is val_loss"}}},
			outcome{State: isRunning, After: lookAgain}, "Trial is running. The collector says: so far loss was not found; there is val_loss"},
		"but not when it has come": {seen{trial: aTrial(shown, func(tr *v1beta1.Trial) { tr.Spec.Objective.AdditionalMetricNames = nil }), job: running, data: data{stored: observed, notes: []string{"so far loss was not found; there is val_loss"}}},
			outcome{After: lookAgain}, ""},
		"nor what a collector says at its end": {seen{trial: aTrial(), job: running, data: data{final: true, notes: []string{"loss was not found"}}},
			outcome{After: lookAgain}, ""},
		"a pod that no try can start fails the trial": {seen{trial: aTrial(), job: running, pods: hidden, data: data{stored: observed}},
			outcome{State: isFailed, Loss: "2/3/2"}, "Trial has failed. pod p cannot run: no room"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			d := plan(tc.seen, noon)
			if diff := cmp.Diff(tc.want, outcomeOf(d)); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
			if d.status != nil && !strings.Contains(last(d.status).Message, tc.message) {
				t.Errorf("message %q lacks %q", last(d.status).Message, tc.message)
			}
		})
	}
}

func TestMessages(t *testing.T) {
	file := func(tr *v1beta1.Trial) {
		collecting(v1beta1.FileCollector)(tr)
		tr.Spec.MetricsCollector.Source = &v1beta1.SourceSpec{FileSystemPath: &v1beta1.FileSystemPath{Path: "/x/y.log"}}
	}
	tests := map[string]struct {
		seen seen
		want []string
	}{
		"a failed job's words are repeated": {
			seen{trial: aTrial(), job: jobIn(trainer.Failed)}, []string{"Trial has failed", "Job reason: R", "Job message: M"}},
		"what the pod says comes before the job's words": {
			seen{trial: aTrial(), job: jobIn(trainer.Failed), pods: []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Status: corev1.PodStatus{Reason: "Broken", Message: "no disk"}}}},
			[]string{"Trial has failed. pod p failed: Broken (no disk). Job reason: R. Job message: M"}},
		"a job that was too slow is told what to do": {
			seen{trial: aTrial(), job: late()}, []string{"Job reason: DeadlineExceeded", "Raise the job's activeDeadlineSeconds, or train for fewer steps"}},
		"a succeeded job's words are repeated": {
			seen{trial: aTrial(), job: jobIn(trainer.Succeeded), data: data{final: true, stored: stored(points("loss", 1))}},
			[]string{"Trial has succeeded", "Job message: M"}},
		"that the end was not reported is said": {
			seen{trial: aTrial(), job: jobIn(trainer.Succeeded), data: data{stored: stored(points("loss", 1))}},
			[]string{"Trial has succeeded", "may be incomplete"}},
		"what was seen instead is listed": {
			seen{trial: aTrial(), job: jobIn(trainer.Succeeded), data: data{final: true, names: []string{"accuracy", "los"}}},
			[]string{`"loss"`, "StdOut", "It saw: accuracy, los", "loss=0.123"}},
		"that nothing was seen is said": {
			seen{trial: aTrial(), job: jobIn(trainer.Succeeded), data: data{final: true}}, []string{"no metric at all"}},
		"that was not reported is said": {
			seen{trial: aTrial(labelled), job: jobIn(trainer.Succeeded)},
			[]string{"did not report within 30s after the job's end", "(vernier logs exp/exp-0000 -c metrics-logger-and-collector)"}},
		"the log of another collector is named": {
			seen{trial: aTrial(labelled, collecting(v1beta1.PushCollector)), job: jobIn(trainer.Succeeded)},
			[]string{"(vernier logs exp/exp-0000 -c metrics-collector)"}},
		"a program that should print JSON is told so": {
			seen{trial: aTrial(printing(v1beta1.JSONFormat)), job: jobIn(trainer.Succeeded), data: data{final: true}},
			[]string{`Print it on standard output in a JSON object a line, as {"loss": 0.123}`}},
		"a program that should print logfmt is not told of filters": {
			seen{trial: aTrial(printing(v1beta1.LogfmtFormat)), job: jobIn(trainer.Succeeded), data: data{final: true}},
			[]string{"Print it on standard output as loss=0.123, or correct the metric's name or the format"}},
		"the file is named": {
			seen{trial: aTrial(file), job: jobIn(trainer.Succeeded), data: data{final: true}}, []string{"File collector", "/x/y.log"}},
		"the collector's complaints are passed on": {
			seen{trial: aTrial(), job: jobIn(trainer.Succeeded), data: data{final: true, notes: []string{"3 lines were too long"}}}, []string{"3 lines were too long"}},
		"what the collector says comes before what holds for all": {
			seen{trial: aTrial(), job: jobIn(trainer.Succeeded), data: data{final: true, notes: []string{"loss was not found; there is acc"}}},
			[]string{`never saw the objective metric "loss", nor "accuracy". The collector says: loss was not found; there is acc. Print it`}},
		"a trial that succeeded tells of another metric that is missing": {
			seen{trial: aTrial(), job: jobIn(trainer.Succeeded), data: data{final: true, stored: stored(points("loss", 1)), notes: []string{"acc was not found"}}},
			[]string{"Trial has succeeded", `No value of "accuracy" was reported. The collector says: acc was not found`}},
		"all objectives that are missing are named": {
			seen{trial: aTrial(withSecond), job: jobIn(trainer.Succeeded), data: data{final: true}}, []string{`never saw the objective metrics "loss", "accuracy". It saw`}},
		"so are the other metrics": {
			seen{trial: aTrial(), job: jobIn(trainer.Succeeded), data: data{final: true}}, []string{`never saw the objective metric "loss", nor "accuracy". It saw`}},
		"why it was stopped is said": {
			seen{trial: aTrial(stopped), job: jobIn(trainer.Running)}, []string{"goal reached"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			d := plan(tc.seen, noon)
			if d.status == nil {
				t.Fatal("nothing is written")
			}
			message := last(d.status).Message
			for _, part := range tc.want {
				if !strings.Contains(message, part) {
					t.Errorf("the message lacks %q: %s", part, message)
				}
			}
			if strings.Contains(message, "no metric at all") && strings.Contains(message, "The collector says") {
				t.Errorf("the message contradicts itself: %s", message)
			}
		})
	}
}

func TestLaunched(t *testing.T) {
	waits := func(tr *v1beta1.Trial) {
		unseen(tr)
		tr.Status = *launched(tr, "", "no kind X", Limits{}, noon).status
	}
	tests := map[string]struct {
		trial          *v1beta1.Trial
		fatal, trouble string
		want           outcome
	}{
		"a job that was made runs":                            {aTrial(unseen), "", "", outcome{State: isRunning}},
		"a job that was made again changes nothing":           {aTrial(), "", "", outcome{}},
		"a job that cannot be made fails":                     {aTrial(unseen), "no", "", outcome{State: isFailed}},
		"trouble is shown and tried again":                    {aTrial(unseen), "", "no kind X", outcome{State: v1beta1.TrialCreated, After: kindRetry}},
		"trouble whose words change is not written each time": {aTrial(waits), "", "read tcp 10.0.0.1:4711: reset", outcome{After: kindRetry}},
		"the same trouble is shown once":                      {aTrial(waits), "", "no kind X", outcome{After: kindRetry}},
		"trouble that is over is over":                        {aTrial(waits), "", "", outcome{State: isRunning}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, outcomeOf(launched(tc.trial, tc.fatal, tc.trouble, Limits{}, noon))); diff != "" {
				t.Errorf("launched (-want +got):\n%s", diff)
			}
		})
	}
}
