package v1beta1

import (
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AnnotationLease on trials that run outside says who runs them (a Lease, as JSON).
const AnnotationLease = "vernier.ml/lease"

// Lease names the worker that runs a trial without a job, and until when the trial is
// reserved for it.
// +kubebuilder:object:generate=false
type Lease struct {
	// Attempt counts how often the trial was handed out, from 1. Who has an older one
	// runs the trial no more.
	Attempt int32 `json:"attempt"`
	// Worker says, for people, who runs it.
	Worker string `json:"worker,omitempty"`
	// Request is the id of the request that it was handed out to.
	Request string `json:"request,omitempty"`
	// Started is when it was handed out.
	Started time.Time `json:"started"`
	// Expires is when it is handed out again unless it reports.
	Expires time.Time `json:"expires"`
	// Seconds that a report renews the lease for.
	Seconds int32 `json:"seconds"`
	// Released: it was handed back.
	Released bool `json:"released,omitempty"`
}

// Held says whether a worker has the trial.
func (l Lease) Held(now time.Time) bool { return !l.Released && now.Before(l.Expires) }

// RunsOutside says whether the experiment's trials are run by programs that ask for them:
// it has no template of a job.
func (e *Experiment) RunsOutside() bool { return e.Spec.TrialTemplate == nil }

// Lease reads AnnotationLease; ok is false for a trial that a job runs, and for one
// whose annotation cannot be read.
func (t *Trial) Lease() (l Lease, ok bool) {
	text := t.Annotations[AnnotationLease]
	return l, text != "" && t.Spec.RunSpec == nil && json.Unmarshal([]byte(text), &l) == nil
}

// SetLease writes AnnotationLease.
func (t *Trial) SetLease(l Lease) error {
	text, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("encode the lease of trial %s: %w", t.Name, err)
	}
	metav1.SetMetaDataAnnotation(&t.ObjectMeta, AnnotationLease, string(text))
	return nil
}

// MarkPending records that the trial has no worker: its worker is lost, or has handed
// it back.
func (t *Trial) MarkPending(reason, message string, now metav1.Time) {
	t.SetCondition(TrialRunning, condition(corev1.ConditionFalse, reason, message), now)
}

// MarkInfeasible records that the trial's point cannot be evaluated. The reason is
// ReasonTrialInfeasible.
func (t *Trial) MarkInfeasible(message string, now metav1.Time) {
	t.end(TrialFailed, ReasonTrialInfeasible, message, now)
}
