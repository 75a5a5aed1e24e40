package v1beta1

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Condition returns the condition of type t, or nil.
func (t *Trial) Condition(ct TrialConditionType) *TrialCondition {
	i := slices.IndexFunc(t.Status.Conditions, func(c TrialCondition) bool { return c.Type == ct })
	if i < 0 {
		return nil
	}
	return &t.Status.Conditions[i]
}

// HasCondition says whether the condition of type ct is True.
func (t *Trial) HasCondition(ct TrialConditionType) bool {
	c := t.Condition(ct)
	return c != nil && c.Status == corev1.ConditionTrue
}

// LastCondition returns the current state: the last condition, or nil.
func (t *Trial) LastCondition() *TrialCondition {
	if len(t.Status.Conditions) == 0 {
		return nil
	}
	return &t.Status.Conditions[len(t.Status.Conditions)-1]
}

// State is the type of the last condition that is True, or TrialCreated for a new
// trial without one.
func (t *Trial) State() TrialConditionType {
	for i := len(t.Status.Conditions) - 1; i >= 0; i-- {
		if c := &t.Status.Conditions[i]; c.Status == corev1.ConditionTrue {
			return c.Type
		}
	}
	return TrialCreated
}

// LastActivity is when the trial was last seen to begin, report or end.
func (t *Trial) LastActivity() time.Time {
	var at time.Time
	if c := t.LastCondition(); c != nil {
		at = c.LastTransitionTime.Time
	}
	// A write to a trial that has reported tells of what it reported.
	if r := t.Status.LastReconcileTime; r != nil && t.Status.Observation != nil && r.After(at) {
		at = r.Time
	}
	return at
}

// AskedToStop says whether an annotation asks that the trial be stopped.
func (t *Trial) AskedToStop() bool {
	return t.Annotations[AnnotationStop] != "" || t.Annotations[AnnotationStopEarly] != ""
}

// Suspension is QueuedSays or PreemptedSays where the condition says so of the trial's
// job, else "".
func (c *TrialCondition) Suspension() string {
	message, _, _ := strings.Cut(c.Message, CollectorSays) // what follows is of the program
	for _, says := range []string{QueuedSays, PreemptedSays} {
		if c.Type == TrialRunning && strings.Contains(message, says) {
			return says
		}
	}
	return ""
}

// SetCondition writes a condition of type ct at the end of the list. It changes
// nothing when status and reason are unchanged.
func (t *Trial) SetCondition(ct TrialConditionType, c Condition, now metav1.Time) {
	var old *Condition
	if o := t.Condition(ct); o != nil {
		old = &o.Condition
	}
	c, changed := settle(old, c, now)
	if !changed {
		return
	}
	t.RemoveCondition(ct)
	t.Status.Conditions = append(t.Status.Conditions, TrialCondition{Type: ct, Condition: c})
}

// RemoveCondition removes the condition of type ct.
func (t *Trial) RemoveCondition(ct TrialConditionType) {
	t.Status.Conditions = slices.DeleteFunc(t.Status.Conditions, func(c TrialCondition) bool { return c.Type == ct })
}

// MarkCreated records that the controller has seen the trial.
func (t *Trial) MarkCreated(message string, now metav1.Time) {
	t.SetCondition(TrialCreated, condition(corev1.ConditionTrue, ReasonTrialCreated, message), now)
}

// MarkRunning records that the trial's job is running.
func (t *Trial) MarkRunning(message string, now metav1.Time) {
	t.SetCondition(TrialRunning, condition(corev1.ConditionTrue, ReasonTrialRunning, message), now)
}

// MarkSucceeded records that the job succeeded and the objective was measured.
// The reason is ReasonTrialSucceeded.
func (t *Trial) MarkSucceeded(message string, now metav1.Time) {
	t.end(TrialSucceeded, ReasonTrialSucceeded, message, now)
}

// MarkFailed records that the job failed. The reason is ReasonTrialFailed.
func (t *Trial) MarkFailed(message string, now metav1.Time) {
	t.end(TrialFailed, ReasonTrialFailed, message, now)
}

// MarkKilled records that the trial was stopped from outside: its experiment
// ended or wanted fewer trials.
func (t *Trial) MarkKilled(message string, now metav1.Time) {
	t.end(TrialKilled, ReasonTrialKilled, message, now)
}

// MarkEarlyStopped records that a stopping rule ended the trial.
func (t *Trial) MarkEarlyStopped(message string, now metav1.Time) {
	t.end(TrialEarlyStopped, ReasonTrialEarlyStopped, message, now)
}

// MarkMetricsUnavailable records that the job succeeded but the objective was
// not measured.
func (t *Trial) MarkMetricsUnavailable(message string, now metav1.Time) {
	t.end(TrialMetricsUnavailable, ReasonMetricsUnavailable, message, now)
}

// end writes a final condition; Running becomes False and stays.
func (t *Trial) end(ct TrialConditionType, reason, message string, now metav1.Time) {
	if c := t.Condition(TrialRunning); c != nil {
		t.SetCondition(TrialRunning, condition(corev1.ConditionFalse, c.Reason, message), now)
	}
	t.SetCondition(ct, condition(corev1.ConditionTrue, reason, message), now)
}

// IsCreated says whether the controller has seen the trial.
func (t *Trial) IsCreated() bool { return t.HasCondition(TrialCreated) }

// IsRunning says whether the trial's job is running.
func (t *Trial) IsRunning() bool { return t.HasCondition(TrialRunning) }

// IsSucceeded says whether the trial has succeeded.
func (t *Trial) IsSucceeded() bool { return t.HasCondition(TrialSucceeded) }

// IsFailed says whether the trial's job has failed.
func (t *Trial) IsFailed() bool { return t.HasCondition(TrialFailed) }

// IsKilled says whether the trial was stopped from outside.
func (t *Trial) IsKilled() bool { return t.HasCondition(TrialKilled) }

// IsEarlyStopped says whether a stopping rule ended the trial.
func (t *Trial) IsEarlyStopped() bool { return t.HasCondition(TrialEarlyStopped) }

// IsMetricsUnavailable says whether the job succeeded without a measured
// objective.
func (t *Trial) IsMetricsUnavailable() bool { return t.HasCondition(TrialMetricsUnavailable) }

// IsCompleted says whether the trial has ended, in whatever way.
func (t *Trial) IsCompleted() bool { return t.State().Ended() }

// Ended says whether a trial in this state has ended, in whatever way.
func (ct TrialConditionType) Ended() bool { return ct != TrialCreated && ct != TrialRunning }

// SortTrials returns pointers into trials, ordered by number, then by name.
func SortTrials(trials []Trial) []*Trial {
	type numbered struct {
		n     int
		trial *Trial
	}
	sorted := make([]numbered, len(trials))
	for i := range trials {
		n, _ := trials[i].Number()
		sorted[i] = numbered{n, &trials[i]}
	}
	slices.SortFunc(sorted, func(a, b numbered) int {
		return cmp.Or(cmp.Compare(a.n, b.n), strings.Compare(a.trial.Name, b.trial.Name))
	})
	out := make([]*Trial, len(sorted))
	for i := range sorted {
		out[i] = sorted[i].trial
	}
	return out
}
