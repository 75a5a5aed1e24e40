package trial

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/trainer"
)

const (
	// patience is how long a trial whose job has succeeded waits for the last
	// reports. They come before the pod ends unless something is wrong.
	patience = 30 * time.Second
	// liveEvery is the least time between two writes for a running trial.
	liveEvery = 2 * time.Second
	// lookAgain is how often a trial looks at pods that do not start.
	lookAgain = 5 * time.Second
	// soon is the least wait: that the time has just come is seen a moment later.
	soon = 10 * time.Millisecond
	// kindRetry is how often a trial looks for a kind that is not installed.
	kindRetry = 30 * time.Second
	// podsEnd is how often a trial that is being stopped early looks at its pods,
	// whose end wakes nobody.
	podsEnd = 500 * time.Millisecond
)

// presence says what is known of a trial's job.
type presence int

const (
	// absent: there is no job, and nothing says that there was one.
	absent presence = iota
	// present: the job exists, or its last state is known to be a final one.
	present
	// removed: the job was deleted before it had ended, or while nobody looked.
	// What was reported does not tell the two ends of a job apart: a collector
	// that is stopped sends its last word too.
	removed
)

// job is what plan knows of a trial's job.
type job struct {
	presence presence
	// deleting: it is on its way out.
	deleting bool
	// exists is false for a job of which only the last state is left.
	exists bool
	// state is its phase. Meaningless when err is set.
	state trainer.State
	// err says why the state cannot be read.
	err error
}

// data is what was measured.
type data struct {
	// stored condenses the stored points of the trial's metrics, the objective
	// first; empty when none of them was stored.
	stored []collector.Observation
	// names are all metrics that were reported; read only when the objective is
	// not among them.
	names []string
	// final: the newest attempt has sent everything.
	final bool
	// summary is what the collector left in its termination message, and
	// condensed says that there was one.
	summary   []collector.Series
	condensed bool
	// notes are what the collector complained of.
	notes []string
}

// seen is all that plan looks at.
type seen struct {
	trial *v1beta1.Trial
	job   job
	pods  []corev1.Pod
	data  data
	// succeededFor is how long the job has been seen as succeeded.
	succeededFor time.Duration
	// stoppingFor is how long the trial has been seen as one to be stopped early.
	stoppingFor time.Duration
	// stopLeft is how long such a trial still waits at most; see waitLeft. It is
	// found once, before data is read: what is over for plan was over for observe.
	stopLeft time.Duration
	// live: a write for a running trial is due, and data was read for it.
	live bool
	// rest is how long the store is left alone after it was last read for the
	// running trial; zero or less means no longer.
	rest time.Duration
}

// ended says whether the job came to its own end. One that fails while it is
// removed because its trial is stopped early did not.
func (s seen) ended() bool {
	if s.job.presence != present || s.job.err != nil {
		return false
	}
	removed := s.job.deleting || !s.job.exists
	stopped := removed && s.trial.Annotations[v1beta1.AnnotationStopEarly] != ""
	return s.job.state.Phase == trainer.Succeeded || s.job.state.Phase == trainer.Failed && !stopped
}

// stopsEarly says whether the trial is to be stopped early, and nothing else has
// ended it before.
func (s seen) stopsEarly() bool {
	a := s.trial.Annotations
	return a[v1beta1.AnnotationStopEarly] != "" && a[v1beta1.AnnotationStop] == "" && !s.ended()
}

// decision is what is to be done about a trial: at most one of these, and then
// perhaps to look again.
type decision struct {
	create bool
	remove bool
	status *v1beta1.TrialStatus
	after  time.Duration
}

// plan decides. It does not change s.
func plan(s seen, now time.Time) decision {
	t := &v1beta1.Trial{ObjectMeta: s.trial.ObjectMeta, Spec: s.trial.Spec, Status: *s.trial.Status.DeepCopy()}
	stop, finished := t.Annotations[v1beta1.AnnotationStop], s.ended()
	switch {
	case t.IsCompleted():
		// A job that was stopped, or of which nobody knows whether it has ended,
		// must not run on, even when jobs are retained.
		keep := t.Spec.RetainRun && !t.IsKilled() && !t.IsEarlyStopped() && s.job.err == nil
		return decision{remove: s.job.exists && !s.job.deleting && !keep}
	case stop != "" && !finished:
		t.MarkKilled("Trial was stopped: "+stop, metav1.NewTime(now))
		return finish(t, s, now)
	case s.stopsEarly():
		return stopEarly(t, s, now)
	case s.job.presence == absent, s.job.presence == removed:
		return decision{create: true}
	case s.job.err != nil:
		t.MarkFailed("Trial has failed: the state of its job cannot be read: "+s.job.err.Error(), metav1.NewTime(now))
		return finish(t, s, now)
	case finished && s.job.state.Phase == trainer.Failed:
		t.MarkFailed(failedMessage(s), metav1.NewTime(now))
		return finish(t, s, now)
	case finished:
		return condense(t, s, now)
	case s.job.deleting:
		return decision{} // its end wakes the trial
	default:
		return progress(t, s, now)
	}
}

// condense decides about a trial whose job has succeeded.
func condense(t *v1beta1.Trial, s seen, now time.Time) decision {
	if left := patience - s.succeededFor; !allReported(t, s.data) && left > 0 {
		return decision{after: left} // a report wakes the trial earlier
	}
	if hasObjectives(t, best(t.Spec.Objective, s.data)) {
		t.MarkSucceeded(succeededMessage(s), metav1.NewTime(now))
	} else {
		t.MarkMetricsUnavailable(unavailableMessage(t, s.data), metav1.NewTime(now))
	}
	return finish(t, s, now)
}

// stopEarly decides about a trial that a stopping rule gave up. Its program may
// take its time to end and measure more meanwhile, so the trial ends after its
// pods and the last report: the rows in the store and the observation then say
// the same.
func stopEarly(t *v1beta1.Trial, s seen, now time.Time) decision {
	awaited := runsOn(s) || s.job.presence != absent && !allReported(t, s.data)
	if awaited && s.stopLeft > 0 {
		return decision{remove: s.job.exists && !s.job.deleting, after: min(s.stopLeft, podsEnd)}
	}
	t.MarkEarlyStopped("Trial was stopped early: "+t.Annotations[v1beta1.AnnotationStopEarly]+noted(s.data), metav1.NewTime(now))
	return finish(t, s, now)
}

// runsOn says whether something of a trial that is being stopped early runs.
func runsOn(s seen) bool {
	return s.job.exists && !s.job.deleting || slices.ContainsFunc(s.pods, func(p corev1.Pod) bool {
		return p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed
	})
}

// waitLeft is how long a trial that is being stopped early still waits at most:
// until its pods' grace and patience are over.
func waitLeft(s seen, now time.Time) time.Duration {
	until := now.Add(-s.stoppingFor)
	for _, p := range s.pods {
		if p.DeletionTimestamp != nil && p.DeletionTimestamp.After(until) {
			until = p.DeletionTimestamp.Time // the end of its grace
		}
	}
	return until.Add(patience).Sub(now)
}

// allReported says whether nothing more will be reported for a job that has ended.
func allReported(t *v1beta1.Trial, d data) bool {
	return d.final || d.condensed || collectorKind(t) == v1beta1.NoneCollector
}

// finish completes the status of a trial that has just ended.
func finish(t *v1beta1.Trial, s seen, now time.Time) decision {
	at := metav1.NewTime(now)
	t.Status.CompletionTime = &at
	if t.Status.StartTime == nil {
		t.Status.StartTime = &at
	}
	if observed := best(t.Spec.Objective, s.data); len(observed) > 0 {
		t.Status.Observation = observation(t.Spec.Objective, observed)
	}
	return decision{status: &t.Status}
}

// progress shows how a running trial is doing. A trial that ends within
// liveEvery is never written to for this.
func progress(t *v1beta1.Trial, s seen, now time.Time) decision {
	if !t.IsRunning() {
		// The job was created, and then the write that tells of it failed.
		return started(t, now)
	}
	if !s.live {
		return decision{after: max(liveDue(t, now), s.rest, soon)}
	}
	if why := trainer.Hopeless(s.pods, now); why != "" {
		t.MarkFailed(messageFailed+". "+why, metav1.NewTime(now))
		return finish(t, s, now)
	}
	d := decision{}
	message := messageRunning
	if why := waiting(s); why != "" {
		message, d.after = messageRunning+". "+why, lookAgain
	} else if len(s.data.stored) == 0 && starting(s.pods) {
		d.after = lookAgain // pods wake nobody: an image that cannot be had shows itself later
	}
	changed := false
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
	return d
}

// starting says whether there are pods still to come up.
func starting(pods []corev1.Pod) bool {
	return len(pods) == 0 || slices.ContainsFunc(pods, func(p corev1.Pod) bool { return p.Status.Phase == corev1.PodPending })
}

// started is the status of a trial whose job was just created.
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
// why there is none; trouble is tried again.
func launched(trial *v1beta1.Trial, fatal, trouble string, now time.Time) decision {
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
	message := "Trial waits: its job cannot be created for now: " + trouble
	// Words may change with each try (a port, a count). Every write wakes the
	// trial, which then tries again, so they are not written each time.
	c := t.Condition(v1beta1.TrialCreated)
	fresh := c.Message == messageCreated || now.Sub(c.LastUpdateTime.Time) >= kindRetry
	if fresh && c.Message != message {
		c.Message, c.LastUpdateTime = message, at
		return decision{status: &t.Status, after: kindRetry}
	}
	return decision{after: kindRetry}
}

// liveDue is how long a running trial has to wait for its next write; zero or
// less means that it is due.
func liveDue(t *v1beta1.Trial, now time.Time) time.Duration {
	last := t.CreationTimestamp.Time
	if r := t.Status.LastReconcileTime; r != nil && r.After(last) {
		last = r.Time
	}
	return liveEvery - now.Sub(last)
}
