package trial

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/trainer"
)

// progress shows how a running trial is doing. A trial that ends within
// liveEvery is never written to for this.
func progress(t *v1beta1.Trial, s seen, now time.Time) decision {
	if s.wait > 0 {
		return decision{after: max(s.wait, soon)}
	}
	if s.uncollected != "" {
		return collectAgain(t, s, now)
	}
	d := decision{after: lookAgain}
	message := messageRunning
	held := waiting(s, t.Condition(v1beta1.TrialRunning).Message, now)
	waits, waitsEnd := s.limits.left(t, held, now)
	runs, runsEnd := runLeft(t, s.pods, now)
	why := trainer.Hopeless(s.pods)
	switch {
	case waitsEnd && waits <= 0:
		why = "It waited too long. " + held.Why
	case runsEnd && runs <= 0:
		why = fmt.Sprintf("It ran longer than its experiment's maxTrialDuration, %s: raise that, or train for fewer steps", t.Spec.MaxDuration.Duration)
	}
	if why != "" {
		t.MarkFailed(messageFailed+". "+why, metav1.NewTime(now))
		return finish(t, s, now)
	}
	switch objectives, others := missing(t, best(t.Spec.Objective, s.data)); {
	case held.Why != "":
		message = messageRunning + ". " + held.Why
	case len(objectives)+len(others) > 0 && !s.data.final:
		message = messageRunning + noted(s.data)
	}
	changed := t.GPUs() > 0 && programStarted(t, s.pods)
	if c := t.Condition(v1beta1.TrialRunning); c.Message != message {
		c.Message, c.LastUpdateTime, changed = message, metav1.NewTime(now), true
	}
	if len(s.data.stored) > 0 {
		o := observation(t.Spec.Objective, s.data.stored)
		changed = changed || !sameObservation(o, t.Status.Observation)
		t.Status.Observation = o
	}
	if changed {
		d.status = &t.Status
	}
	if runsEnd {
		d.after = min(d.after, runs)
	}
	return d
}

// runLeft is how long a trial may still run, from the start of its first pod.
func runLeft(t *v1beta1.Trial, pods []corev1.Pod, now time.Time) (left time.Duration, limited bool) {
	var began time.Time
	for _, p := range pods {
		if s := p.Status.StartTime; s != nil && (began.IsZero() || s.Time.Before(began)) {
			began = s.Time
		}
	}
	limit := t.Spec.MaxDuration
	if limit == nil || limit.Duration == 0 || began.IsZero() {
		return 0, false
	}
	return began.Add(limit.Duration).Sub(now), true
}

func started(t *v1beta1.Trial, now time.Time) decision {
	at := metav1.NewTime(now)
	t.MarkCreated(messageCreated, at)
	t.MarkRunning(messageRunning, at)
	if t.Status.StartTime == nil {
		t.Status.StartTime = &at
	}
	return decision{status: &t.Status}
}

// launched decides after an attempt to create the job. fatal and trouble are
// why there is none; trouble is tried again, until the first job is too late.
func launched(trial *v1beta1.Trial, fatal, trouble string, limits Limits, now time.Time) decision {
	t := &v1beta1.Trial{ObjectMeta: trial.ObjectMeta, Spec: trial.Spec, Status: *trial.Status.DeepCopy()}
	at := metav1.NewTime(now)
	switch {
	case fatal != "":
		t.MarkCreated(messageCreated, at)
		t.MarkFailed("Trial has failed: its job cannot be created: "+fatal, at)
		return finish(t, seen{trial: t}, now)
	case trouble == "" && t.IsRunning():
		return decision{} // made again
	case trouble == "":
		return started(t, now)
	}
	t.MarkCreated(messageCreated, at)
	c, says, what := t.Condition(v1beta1.TrialCreated), messageWaits, notMade
	if t.IsRunning() { // the job that is gone is to be made again
		c, says, what = t.Condition(v1beta1.TrialRunning), messageRunning+". ", noJob
	}
	held := sinceSaid(what, trouble, trainer.Repair, c.Message, now)
	switch {
	case strings.HasPrefix(trouble, noRoom) && !t.IsRunning():
		held.Why, held.Since = trouble, c.LastTransitionTime.Time
	case strings.HasPrefix(trouble, unseenJob) && t.IsRunning():
		held = trainer.Wait{Why: trouble} // it may run
	}
	if left, limited := limits.left(t, held, now); limited && left <= 0 {
		t.MarkFailed(messageFailed+". It waited too long. "+held.Why, at)
		return finish(t, seen{trial: t}, now)
	}
	// Words may change with each try (a port, a count). Every write wakes the
	// trial, which then tries again, so they are not written each time.
	message := says + held.Why
	due := c.Message == messageCreated || c.Message == messageRunning || now.Sub(c.LastUpdateTime.Time) >= kindRetry
	if due && c.Message != message {
		c.Message, c.LastUpdateTime = message, at
		return decision{status: &t.Status, after: launchRetry(trouble)}
	}
	return decision{after: launchRetry(trouble)}
}

// launchRetry is when to try again. Room may come at any time.
func launchRetry(trouble string) time.Duration {
	if strings.HasPrefix(trouble, noRoom) {
		return roomRetry
	}
	return kindRetry
}

// liveDue is how long a running trial has to wait for its next write; zero or
// less means that it is due.
func liveDue(t *v1beta1.Trial, now time.Time) time.Duration {
	last := t.CreationTimestamp.Time
	if r := t.Status.LastReconcileTime; r != nil && r.After(last) {
		last = r.Time
	}
	if last.After(now) { // the clock was set back
		return 0
	}
	return liveEvery - now.Sub(last)
}
