package v1beta1

import (
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Reasons of the conditions, as Katib's.
const (
	ReasonExperimentCreated              = "ExperimentCreated"
	ReasonExperimentRunning              = "ExperimentRunning"
	ReasonExperimentRestarting           = "ExperimentRestarting"
	ReasonExperimentGoalReached          = "ExperimentGoalReached"
	ReasonExperimentMaxTrialsReached     = "ExperimentMaxTrialsReached"
	ReasonExperimentSuggestionEndReached = "ExperimentSuggestionEndReached"
	ReasonExperimentMaxDurationReached   = "ExperimentMaxDurationReached" // Vernier's
	ReasonExperimentMaxGPUHoursReached   = "ExperimentMaxGPUHoursReached" // Vernier's
	ReasonExperimentStopped              = "ExperimentStopped"            // Vernier's
	ReasonExperimentFailed               = "ExperimentFailed"

	ReasonTrialCreated       = "TrialCreated"
	ReasonTrialRunning       = "TrialRunning"
	ReasonTrialSucceeded     = "TrialSucceeded"
	ReasonTrialFailed        = "TrialFailed"
	ReasonTrialKilled        = "TrialKilled"
	ReasonTrialEarlyStopped  = "TrialEarlyStopped"
	ReasonMetricsUnavailable = "MetricsUnavailable"
	// Of trials that run outside: why one has no worker, and that its point cannot be
	// evaluated.
	ReasonTrialLost       = "TrialLost"
	ReasonTrialReleased   = "TrialReleased"
	ReasonTrialInfeasible = "TrialInfeasible"

	ReasonSuggestionCreated      = "SuggestionCreated"
	ReasonSuggestionRunning      = "SuggestionRunning"
	ReasonSuggestionFailed       = "SuggestionFailed"
	ReasonDeploymentReady        = "DeploymentReady"
	ReasonDeploymentNotReady     = "DeploymentNotReady"
	ReasonSuggestionSucceeded    = "Suggestion is succeeded"
	ReasonExperimentSucceeded    = "Experiment is succeeded"
	ReasonExperimentIsRestarting = "Experiment is restarting"
)

// What the message of a running trial says, after its first sentence, of a job that is
// suspended: before it began to train, and after.
const (
	QueuedSays    = "Its job is queued"
	PreemptedSays = "Its job was preempted and waits to run again"
)

// CollectorSays precedes the notes of a trial's collector in the message of the
// trial's final condition, and in that of a running trial what was not found so far.
const CollectorSays = "The collector says: "

// MessageHeldUp begins the message of an experiment that starts no trials because
// something is in the way; what it is follows, and may be another each time.
const MessageHeldUp = "No trial can be started for now: "

// MessageMaxFailed begins the message of an experiment that failed because too many
// of its trials did. It is Katib's.
const MessageMaxFailed = "Experiment has failed because max failed count has reached"

// MessageSlow is in the message of an experiment whose last trials have all failed.
const MessageSlow = "new ones are made one at a time, up to a minute apart"

// NewestSays precedes the name and the message of the newest trial that failed in the
// message of an experiment whose last trials have all failed.
const NewestSays = ". The newest is "

// settle returns what to write for c in place of old, the condition of the same
// type or nil, and whether to write at all. A condition whose status and reason
// are unchanged keeps its content and position; otherwise it moves to the end of
// its list. LastTransitionTime changes with the status only.
func settle(old *Condition, c Condition, now metav1.Time) (Condition, bool) {
	if old != nil && old.Status == c.Status && old.Reason == c.Reason {
		return c, false
	}
	c.LastUpdateTime, c.LastTransitionTime = now, now
	if old != nil && old.Status == c.Status {
		c.LastTransitionTime = old.LastTransitionTime
	}
	return c, true
}

func condition(status corev1.ConditionStatus, reason, message string) Condition {
	return Condition{Status: status, Reason: reason, Message: message}
}

// Condition returns the condition of type t, or nil.
func (e *Experiment) Condition(t ExperimentConditionType) *ExperimentCondition {
	i := slices.IndexFunc(e.Status.Conditions, func(c ExperimentCondition) bool { return c.Type == t })
	if i < 0 {
		return nil
	}
	return &e.Status.Conditions[i]
}

// HasCondition says whether the condition of type t is True.
func (e *Experiment) HasCondition(t ExperimentConditionType) bool {
	c := e.Condition(t)
	return c != nil && c.Status == corev1.ConditionTrue
}

// LastCondition returns the current state: the last condition, or nil.
func (e *Experiment) LastCondition() *ExperimentCondition {
	if len(e.Status.Conditions) == 0 {
		return nil
	}
	return &e.Status.Conditions[len(e.Status.Conditions)-1]
}

// LastActivity is when the experiment itself began, ended or went on, as after a pause.
// Its trials have times of their own.
func (e *Experiment) LastActivity() time.Time {
	since := e.CreationTimestamp.Time
	c := e.LastCondition()
	if c == nil {
		return since
	}
	at := c.LastUpdateTime.Time // it was resumed, and does not say any more that it is suspended
	if strings.HasPrefix(c.Message, MessageHeldUp) {
		at = c.LastTransitionTime.Time // what holds it up may change its words for ever
	}
	if at.After(since) {
		return at
	}
	return since
}

// SetCondition writes a condition of type t at the end of the list. It changes
// nothing when status and reason are unchanged.
func (e *Experiment) SetCondition(t ExperimentConditionType, c Condition, now metav1.Time) {
	var old *Condition
	if o := e.Condition(t); o != nil {
		old = &o.Condition
	}
	c, changed := settle(old, c, now)
	if !changed {
		return
	}
	e.RemoveCondition(t)
	e.Status.Conditions = append(e.Status.Conditions, ExperimentCondition{Type: t, Condition: c})
}

// RemoveCondition removes the condition of type t.
func (e *Experiment) RemoveCondition(t ExperimentConditionType) {
	e.Status.Conditions = slices.DeleteFunc(e.Status.Conditions, func(c ExperimentCondition) bool { return c.Type == t })
}

// MarkCreated records that the controller has seen the experiment.
func (e *Experiment) MarkCreated(message string, now metav1.Time) {
	e.SetCondition(ExperimentCreated, condition(corev1.ConditionTrue, ReasonExperimentCreated, message), now)
}

// MarkRunning records that trials are requested or running.
func (e *Experiment) MarkRunning(message string, now metav1.Time) {
	e.SetCondition(ExperimentRunning, condition(corev1.ConditionTrue, ReasonExperimentRunning, message), now)
}

// MarkRestarting records that a finished experiment is resumed: its final
// condition is removed. As in Katib, Restarting is never removed.
func (e *Experiment) MarkRestarting(message string, now metav1.Time) {
	e.RemoveCondition(ExperimentSucceeded)
	e.RemoveCondition(ExperimentFailed)
	// A second restart has the status and reason of the first: without the
	// removal it would leave Running=False as the current state.
	e.RemoveCondition(ExperimentRestarting)
	e.SetCondition(ExperimentRestarting, condition(corev1.ConditionTrue, ReasonExperimentRestarting, message), now)
}

// MarkSucceeded records the end of the experiment; reason is one of
// ReasonExperimentGoalReached, ReasonExperimentMaxTrialsReached,
// ReasonExperimentMaxDurationReached, ReasonExperimentMaxGPUHoursReached,
// ReasonExperimentSuggestionEndReached, ReasonExperimentStopped. Running
// becomes False and stays.
func (e *Experiment) MarkSucceeded(reason, message string, now metav1.Time) {
	e.stopRunning(message, now)
	e.SetCondition(ExperimentSucceeded, condition(corev1.ConditionTrue, reason, message), now)
}

// MarkFailed records that the experiment failed. Running becomes False and
// stays.
func (e *Experiment) MarkFailed(reason, message string, now metav1.Time) {
	e.stopRunning(message, now)
	e.SetCondition(ExperimentFailed, condition(corev1.ConditionTrue, reason, message), now)
}

func (e *Experiment) stopRunning(message string, now metav1.Time) {
	if c := e.Condition(ExperimentRunning); c != nil {
		e.SetCondition(ExperimentRunning, condition(corev1.ConditionFalse, c.Reason, message), now)
	}
}

// IsCreated says whether the controller has seen the experiment.
func (e *Experiment) IsCreated() bool { return e.HasCondition(ExperimentCreated) }

// IsRunning says whether the experiment is running.
func (e *Experiment) IsRunning() bool { return e.HasCondition(ExperimentRunning) }

// IsRestarting says whether the experiment was ever restarted.
func (e *Experiment) IsRestarting() bool { return e.HasCondition(ExperimentRestarting) }

// IsSucceeded says whether the experiment has succeeded.
func (e *Experiment) IsSucceeded() bool { return e.HasCondition(ExperimentSucceeded) }

// IsFailed says whether the experiment has failed.
func (e *Experiment) IsFailed() bool { return e.HasCondition(ExperimentFailed) }

// IsCompleted says whether the experiment has ended.
func (e *Experiment) IsCompleted() bool { return e.IsSucceeded() || e.IsFailed() }

// Interrupted returns "4 of 24" for an experiment that ended because a user limited it to 4
// of its 24 trials, unless its limit was changed since. Its condition is Succeeded.
func (e *Experiment) Interrupted() (trials string, ok bool) {
	c := e.LastCondition()
	if c == nil || c.Type != ExperimentSucceeded || c.Reason != ReasonExperimentMaxTrialsReached {
		return "", false
	}
	trials = e.Annotations[AnnotationInterrupted]
	lowered, _, _ := strings.Cut(trials, " ")
	limit, err := strconv.Atoi(lowered)
	return trials, err == nil && e.Spec.MaxTrialCount != nil && int(*e.Spec.MaxTrialCount) == limit
}

// FailedByTrials says whether the experiment failed because too many of its trials
// did.
func (e *Experiment) FailedByTrials() bool {
	c := e.Condition(ExperimentFailed)
	return c != nil && c.Status == corev1.ConditionTrue && strings.HasPrefix(c.Message, MessageMaxFailed)
}

// CanResume says whether a completed experiment continues if maxTrialCount or maxGPUHours
// is raised: it ended because all trials had run or its GPU hours were used, and its resume
// policy is LongRunning or FromVolume.
func (e *Experiment) CanResume() bool {
	c := e.Condition(ExperimentSucceeded)
	return c != nil && c.Status == corev1.ConditionTrue &&
		(c.Reason == ReasonExperimentMaxTrialsReached || c.Reason == ReasonExperimentMaxGPUHoursReached) &&
		(e.Spec.ResumePolicy == LongRunning || e.Spec.ResumePolicy == FromVolume)
}
