package trial

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

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
	// lookAgain is how often a trial looks at its pods, whose changes wake no reconcile:
	// an image that cannot be had shows itself later. And at the store: reports may
	// reach a manager that is not the leader.
	lookAgain = 5 * time.Second
	// soon is the least wait: that the time has just come is seen a moment later.
	soon = 10 * time.Millisecond
	// kindRetry is how often a trial looks for a kind that is not installed.
	kindRetry = 30 * time.Second
	// recollect is how often a job is made again whose pods came without their collector,
	// and recollectPause the time before the first of these, twice that before the second.
	recollect      = 3
	recollectPause = 10 * time.Second
	// podsEnd is how often a trial that is being stopped early looks at its pods,
	// whose end wakes no reconcile.
	podsEnd = 500 * time.Millisecond
)

type presence int

const (
	// absent: there is no job, and nothing says that there was one.
	absent presence = iota
	// present: the job exists, or its last state is known to be a final one.
	present
	// removed: the job was deleted before it had ended, or while no manager ran.
	// What was reported does not tell the two ends of a job apart: a collector
	// that is stopped sends its last word too.
	removed
)

type job struct {
	presence presence
	uid      types.UID
	// deleting: it is on its way out.
	deleting bool
	// exists is false for a job of which only the last state is left.
	exists bool
	// atPod: its pods get the collector when they are created.
	atPod bool
	// made is when it was created.
	made metav1.Time
	// state is its phase. Meaningless when err is set.
	state trainer.State
	// ended is the phase by the conditions of its kind, where it is over by these and
	// those of the trial do not see it; or "".
	ended trainer.Phase
	// err says why the state cannot be read.
	err error
}

type data struct {
	// stored condenses the stored points of the trial's metrics, the objective
	// first; empty when none of them was stored.
	stored []collector.Observation
	// names are all metrics that were reported; read only when the objective is
	// not among them.
	names []string
	// final: the newest attempt has sent everything.
	final bool
	// attempted: a collector has reported, if only that it began.
	attempted bool
	// summary is what the collector left in its termination message, and
	// condensed says that there was one.
	summary   []collector.Series
	condensed bool
	// notes are what the collector complained of.
	notes []string
	// usage is what the trial used of its machine; read only when its job is over.
	usage []v1beta1.Metric
}

type seen struct {
	trial *v1beta1.Trial
	job   job
	pods  []corev1.Pod
	data  data
	// podless is why a job that should run has no pods, or "".
	podless string
	// uncollected is why nothing measures the job, or "".
	uncollected string
	limits      Limits
	// wait is how long there is still something to wait for, at most: the pods and
	// the last reports of a trial whose job succeeded or that is stopped early, the
	// next look at one that runs. While a running trial waits, pods and data were
	// not read.
	wait time.Duration
}

// stage is where a trial stands. It decides what is read and what is done.
type stage int

const (
	completed stage = iota
	// killed: the trial was asked to stop before its job had ended.
	killed
	// stoppedEarly: a stopping rule gave the trial up before its job had ended.
	stoppedEarly
	// jobless: the job is to be made, for the first time or again.
	jobless
	// unreadable: the state of the job cannot be read.
	unreadable
	jobFailed
	// jobRetried: the job has failed, or ran without a collector, and is made again.
	jobRetried
	jobSucceeded
	// jobDeleting: the job is being deleted. Its end wakes the trial.
	jobDeleting
	// unannounced: the job was created, and then the write that tells of it failed.
	unannounced
	running
)

// stageOf says where a trial stands. An end of the job goes before requests to
// stop. A job that fails while it is removed because its trial is stopped early did
// not come to its own end.
func stageOf(t *v1beta1.Trial, j job) stage {
	stop, early := t.Annotations[v1beta1.AnnotationStop] != "", t.Annotations[v1beta1.AnnotationStopEarly] != ""
	leaving := j.deleting || !j.exists
	counted := j.uid != "" && t.Status.RetriedJob == j.uid
	retried := t.Status.Retries < t.Spec.Retry || counted
	switch phase := j.state.Phase; {
	case t.IsCompleted():
		return completed
	case j.presence == present && j.err == nil && phase == trainer.Succeeded && !counted:
		return jobSucceeded
	case j.presence == present && j.err == nil && phase == trainer.Failed && !retried && !(early && leaving):
		return jobFailed
	case stop:
		return killed
	case early:
		return stoppedEarly
	case j.presence == present && j.err == nil && (phase == trainer.Failed || counted):
		return jobRetried
	case j.presence != present:
		return jobless
	case j.err != nil:
		return unreadable
	case j.deleting:
		return jobDeleting
	case !t.IsRunning():
		return unannounced
	default:
		return running
	}
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
	switch stageOf(s.trial, s.job) {
	case completed:
		// A job that was stopped, or whose end is not known, must not run on, even
		// when jobs are retained.
		ended := s.job.state.Phase == trainer.Succeeded || s.job.state.Phase == trainer.Failed
		keep := t.Spec.RetainRun && !t.IsKilled() && !t.IsEarlyStopped() && s.job.err == nil && ended
		return decision{remove: s.job.exists && !s.job.deleting && !keep}
	case killed:
		t.MarkKilled("Trial was stopped: "+t.Annotations[v1beta1.AnnotationStop], metav1.NewTime(now))
		return finish(t, s, now)
	case stoppedEarly:
		return stopEarly(t, s, now)
	case jobless:
		return create(t, now)
	case unreadable:
		t.MarkFailed("Trial has failed: the state of its job cannot be read: "+s.job.err.Error(), metav1.NewTime(now))
		return finish(t, s, now)
	case jobFailed:
		t.MarkFailed(failedMessage(s), metav1.NewTime(now))
		return finish(t, s, now)
	case jobRetried:
		return again(t, s, fmt.Sprintf("(%d of %d), because it has failed: %s", t.Status.Retries+1, t.Spec.Retry, failedMessage(s)), now)
	case jobSucceeded:
		if s.uncollected != "" {
			return collectAgain(t, s, now)
		}
		return condense(t, s, now)
	case jobDeleting:
		return decision{}
	case unannounced:
		return started(t, now)
	default:
		return progress(t, s, now)
	}
}

func condense(t *v1beta1.Trial, s seen, now time.Time) decision {
	if s.wait > 0 && !allReported(t, s.data) {
		return decision{after: min(s.wait, lookAgain)} // a report wakes the trial earlier
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
	if awaited && s.wait > 0 {
		return decision{remove: s.job.exists && !s.job.deleting, after: min(s.wait, podsEnd)}
	}
	t.MarkEarlyStopped("Trial was stopped early: "+t.Annotations[v1beta1.AnnotationStopEarly]+noted(s.data), metav1.NewTime(now))
	return finish(t, s, now)
}

func runsOn(s seen) bool {
	return s.job.exists && !s.job.deleting || slices.ContainsFunc(s.pods, func(p corev1.Pod) bool {
		return p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed
	})
}

// stopWait is how long a trial that is being stopped early since some time still
// waits at most: until its pods' grace and patience are over.
func stopWait(pods []corev1.Pod, since, now time.Time) time.Duration {
	for _, p := range pods {
		if p.DeletionTimestamp != nil && p.DeletionTimestamp.After(since) {
			since = p.DeletionTimestamp.Time // the end of its grace
		}
	}
	return since.Add(patience).Sub(now)
}

func allReported(t *v1beta1.Trial, d data) bool {
	return d.final || d.condensed || collectorKind(t) == v1beta1.NoneCollector
}

// again decides about a failed job that is made again: it is counted first, and then
// removed, so that none is counted twice or not at all.
func again(t *v1beta1.Trial, s seen, why string, now time.Time) decision {
	switch {
	case t.Status.RetriedJob != s.job.uid:
		t.Status.Retries++
		t.Status.RetriedJob = s.job.uid
		d := started(t, now)
		c := t.Condition(v1beta1.TrialRunning)
		c.LastUpdateTime = metav1.NewTime(now)
		c.Message = messageRunning + ". Its job is made again " + why
		return d
	case s.job.exists:
		return decision{remove: !s.job.deleting}
	default:
		return create(t, now)
	}
}

// uncollectedSince begins what is said of a job that is made again for its collector.
const uncollectedSince = "because nothing measures it: "

// collectAgain decides about a job that nothing measures. It is made again, as failed
// ones are; what it computed is lost.
func collectAgain(t *v1beta1.Trial, s seen, now time.Time) decision {
	if t.Status.Retries >= t.Spec.Retry+recollect {
		t.MarkFailed(messageFailed+": nothing measures its job: "+s.uncollected, metav1.NewTime(now))
		return finish(t, s, now)
	}
	return again(t, s, uncollectedSince+s.uncollected, now)
}

// create decides about a trial without a job. One that nothing would measure is not made
// again at once: admission may be back in a moment.
func create(t *v1beta1.Trial, now time.Time) decision {
	if c := t.Condition(v1beta1.TrialRunning); c != nil && strings.Contains(c.Message, uncollectedSince) {
		due := c.LastUpdateTime.Add(recollectPause * time.Duration(t.Status.Retries))
		if left := due.Sub(now); left > 0 {
			return decision{after: left}
		}
	}
	return decision{create: true}
}

func finish(t *v1beta1.Trial, s seen, now time.Time) decision {
	at := metav1.NewTime(now)
	t.Status.CompletionTime = &at
	if t.Status.StartTime == nil {
		t.Status.StartTime = &at
	}
	programStarted(t, s.pods)
	if observed := best(t.Spec.Objective, s.data); len(observed) > 0 {
		t.Status.Observation = observation(t.Spec.Objective, observed)
	}
	t.Status.Usage = s.data.usage
	return decision{status: &t.Status}
}

// programStarted notes when the program started first, and says whether that was not known.
func programStarted(t *v1beta1.Trial, pods []corev1.Pod) bool {
	began := firstStart(pods, t.Spec.PrimaryContainerName)
	if began.IsZero() || t.Status.ProgramStartTime != nil {
		return false
	}
	t.Status.ProgramStartTime = &metav1.Time{Time: began}
	return true
}
