package experiment

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/controllers/study"
)

// findings are what acting on a first plan brought to light. Its zero value is
// that nothing was in the way.
type findings struct {
	// exhausted: the algorithm has nothing left to propose, ever.
	exhausted bool
	// fatal ends the experiment: trying again cannot help.
	fatal string
	// trouble is in the way for now; it is shown and tried again.
	trouble string
}

type actions struct {
	status v1beta1.ExperimentStatus
	// add is how many trials to make, with numbers from first on.
	add, first int
	stop       []*v1beta1.Trial
	stopWhy    string
	// after is when to look again although nothing happens; 0: never.
	after time.Duration
}

// plan decides, in Katib's order: goal, failures, number of trials, else go on.
// trials are those of exp in order of number, and r ranks them; exp has its
// defaults and is not changed.
func plan(exp *v1beta1.Experiment, trials []*v1beta1.Trial, r *study.Ranking, f findings, now time.Time) actions {
	t := metav1.NewTime(now)
	next := &v1beta1.Experiment{ObjectMeta: exp.ObjectMeta, Spec: exp.Spec, Status: *exp.Status.DeepCopy()}
	c := tallied(exp, trials, now)
	if !next.IsCompleted() || c.total >= int(next.Status.Trials) {
		c.write(&next.Status)
		next.Status.GPUHours = c.gpus.hours()
	}
	if next.Status.StartTime == nil {
		next.Status.StartTime = &t
	}
	next.MarkCreated(createdMessage(exp), t)
	if next.IsCompleted() && resumable(next, c) {
		next.MarkRestarting(messageRestarting, t)
		next.Status.CompletionTime = nil
		return actions{status: next.Status}
	}
	if next.IsCompleted() {
		recount(next, c.counts, t)
	} else {
		decide(next, r, c, f, t)
	}
	a := actions{status: next.Status}
	switch {
	case next.IsCompleted():
		a.stopWhy = fmt.Sprintf(messageStop, next.LastCondition().Reason)
		a.stop = stillRunning(trials)
	case exp.Annotations[v1beta1.AnnotationEnd] != "":
		a.stopWhy, a.stop = messageAbandoned, withoutWorker(trials, now)
	case !f.exhausted && f.trouble == "" && !exp.Spec.Suspend:
		a.first = nextNumber(trials)
		away, later := inQueue(exp, trials, now)
		a.add, a.after = c.run.atOnce(min(room(exp, c.counts, away), addMost), now)
		a.after = soonest(a.after, later)
		if pause := c.run.pause(now); pause > 0 {
			a.add, a.after = 0, max(a.after, pause)
		}
	}
	if b, limited := firstToEnd(next, c.gpus, now); limited && !next.IsCompleted() {
		a.after = soonest(a.after, b.left)
	}
	return a
}

// tally is what the trials come to.
type tally struct {
	counts
	run  failures
	gpus gpuUse
}

func tallied(exp *v1beta1.Experiment, trials []*v1beta1.Trial, now time.Time) tally {
	return tally{count(trials), failuresInARow(trials), gpusUsed(exp, trials, now)}
}

func decide(next *v1beta1.Experiment, r *study.Ranking, c tally, f findings, now metav1.Time) {
	setBest(&next.Status, r)
	maxFailed, maxTrials := next.Spec.MaxFailedTrialCount, next.Spec.MaxTrialCount
	b, limited := firstToEnd(next, c.gpus, now.Time)
	suspended := ""
	end := next.Annotations[v1beta1.AnnotationEnd]
	switch {
	case end != "":
		suspended = messageStopping
	case next.Spec.Suspend:
		suspended = messageSuspended
	}
	results := c.n(v1beta1.TrialSucceeded, v1beta1.TrialEarlyStopped)
	switch {
	case f.fatal != "":
		next.MarkFailed(v1beta1.ReasonExperimentFailed, f.fatal, now)
	case r.Reached():
		next.MarkSucceeded(v1beta1.ReasonExperimentGoalReached, messageGoalReached, now)
	case maxFailed != nil && c.bad() > 0 && c.bad() >= int(*maxFailed):
		next.MarkFailed(v1beta1.ReasonExperimentFailed, tooManyFailures(c.counts, *maxFailed), now)
	case maxFailed == nil && c.run.n >= c.run.limit(&next.Spec):
		next.MarkFailed(v1beta1.ReasonExperimentFailed, fmt.Sprintf(messageInARow, c.run.n, c.run.last), now)
	case maxTrials != nil && c.completed() >= int(*maxTrials) && c.bad() == c.total:
		next.MarkFailed(v1beta1.ReasonExperimentFailed, fmt.Sprintf(messageAllFailed, c.total, c.run.last), now)
	case maxTrials != nil && c.completed() >= int(*maxTrials):
		next.MarkSucceeded(v1beta1.ReasonExperimentMaxTrialsReached, messageMaxTrials, now)
	case end != "" && (end == v1beta1.EndCancel || c.active() == 0) && results == 0:
		next.MarkFailed(v1beta1.ReasonExperimentFailed, messageStoppedEmpty, now)
	case end != "" && (end == v1beta1.EndCancel || c.active() == 0):
		next.MarkSucceeded(v1beta1.ReasonExperimentStopped, fmt.Sprintf(messageStopped, c.total), now)
	case limited && b.left <= 0 && results == 0:
		next.MarkFailed(v1beta1.ReasonExperimentFailed, b.withoutResult, now)
	case limited && b.left <= 0:
		next.MarkSucceeded(b.reason, b.reached, now)
	case f.exhausted && c.active() == 0:
		next.MarkSucceeded(v1beta1.ReasonExperimentSuggestionEndReached, fmt.Sprintf(messageSuggestionEnd, c.total), now)
	case c.total > 0:
		next.MarkRunning(messageRunning, now)
		say(next, v1beta1.ExperimentRunning, cmp.Or(suspended, f.trouble, c.run.message(), messageRunning), now)
	default:
		say(next, v1beta1.ExperimentCreated, cmp.Or(suspended, f.trouble, createdMessage(next)), now)
	}
	if next.IsCompleted() {
		next.Status.CompletionTime = &now
	}
}

// room is how many trials may be made now: as parallelTrialCount leaves free
// and maxTrialCount allows. Every trial that exists counts against
// maxTrialCount, however it ended, so that there are never more. away is how many
// active trials leave their places to others.
func room(exp *v1beta1.Experiment, c counts, away int) int {
	n := atOnce(exp) - c.active() + away
	if limit := exp.Spec.MaxTrialCount; limit != nil {
		n = min(n, int(*limit)-c.total)
	}
	return max(0, n)
}

func atOnce(exp *v1beta1.Experiment) int {
	return int(ptr.Deref(exp.Spec.ParallelTrialCount, v1beta1.DefaultParallelTrialCount))
}

// keepsPlace is how long a trial whose job is queued or was preempted keeps its place:
// many jobs are queued for a moment.
const keepsPlace = time.Minute

// inQueue is how many trials have waited in a queue for so long that others take their
// places, and when the next will have. At most parallelTrialCount trials leave theirs,
// so that a full queue gets no more work than the experiment could do twice over.
func inQueue(exp *v1beta1.Experiment, trials []*v1beta1.Trial, now time.Time) (away int, later time.Duration) {
	for _, t := range trials {
		if suspension(t) == "" {
			continue
		}
		if left := t.LastCondition().LastUpdateTime.Add(keepsPlace).Sub(now); left > 0 {
			later = soonest(later, left)
		} else {
			away++
		}
	}
	return min(away, atOnce(exp)), later
}

// suspension is what a trial says of a queue that its job is in, or "".
func suspension(t *v1beta1.Trial) string {
	if c := t.LastCondition(); c != nil {
		return c.Suspension()
	}
	return ""
}

// resumable says whether an experiment that has ended goes on: it ended because of
// maxTrialCount or maxGPUHours, its policy allows it, and that was raised; or because too
// many trials failed, and more may fail now. The counts in the status are those of its
// end: trials that were deleted since, or that the cache does not show yet, do not
// bring it back.
func resumable(exp *v1beta1.Experiment, c tally) bool {
	limit, end := exp.Spec.MaxTrialCount, &exp.Status
	c.gpus.ended = max(c.gpus.ended, end.GPUHoursUsed())
	b, limited := c.gpus.left()
	switch {
	case limit != nil && *limit <= end.Trials, limited && b.left <= 0:
		return false
	case exp.FailedByTrials():
		if failed := exp.Spec.MaxFailedTrialCount; failed != nil {
			return end.TrialsFailed+end.TrialMetricsUnavailable < *failed
		}
		gone := max(0, int(end.Trials)-c.total) // any of them may be one of those in a row
		return limit != nil && c.run.n+gone < c.run.limit(&exp.Spec)
	default:
		return exp.CanResume()
	}
}

// stillRunning are the trials that have not ended and were not yet asked to.
func stillRunning(trials []*v1beta1.Trial) []*v1beta1.Trial {
	var out []*v1beta1.Trial
	for _, t := range trials {
		if !t.State().Ended() && !t.AskedToStop() {
			out = append(out, t)
		}
	}
	return out
}

// withoutWorker are those that run outside and have lost their workers: there may never
// be another one that takes them.
func withoutWorker(trials []*v1beta1.Trial, now time.Time) []*v1beta1.Trial {
	return slices.DeleteFunc(stillRunning(trials), func(t *v1beta1.Trial) bool {
		l, outside := t.Lease()
		return !outside || l.Held(now)
	})
}

// nextNumber is one above the greatest; trials are in order of number.
func nextNumber(trials []*v1beta1.Trial) int {
	for _, t := range slices.Backward(trials) {
		if n, ok := t.Number(); ok {
			return n + 1
		}
	}
	return 0
}

// recount brings the message of an experiment that failed by its trials up to
// date: those that were about to end when it did may have failed as well. Where
// trials were deleted since, or the limit was changed, the message stays.
func recount(next *v1beta1.Experiment, c counts, now metav1.Time) {
	limit := next.Spec.MaxFailedTrialCount
	if c.total < int(next.Status.Trials) || limit == nil || c.bad() < int(*limit) ||
		!strings.HasPrefix(next.LastCondition().Message, v1beta1.MessageMaxFailed+": ") {
		return
	}
	say(next, v1beta1.ExperimentFailed, tooManyFailures(c, *limit), now)
}

func tooManyFailures(c counts, limit int32) string {
	failed, without := c.n(v1beta1.TrialFailed), c.n(v1beta1.TrialMetricsUnavailable)
	trials, have := fmt.Sprintf("%d trials", failed), fmt.Sprintf("%d have", without)
	if failed == 1 {
		trials = "1 trial"
	}
	if without == 1 {
		have = "1 has"
	}
	return fmt.Sprintf(messageFailures, trials, have, limit)
}
