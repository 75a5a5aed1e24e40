package operator

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// status is the training operator's, and restarts.
type status struct {
	Conditions      []condition              `json:"conditions,omitempty"`
	ReplicaStatuses map[string]replicaStatus `json:"replicaStatuses,omitempty"`
	StartTime       *metav1.Time             `json:"startTime,omitempty"`
	CompletionTime  *metav1.Time             `json:"completionTime,omitempty"`
	// Restarts counts for each pod how often it failed and was made again.
	Restarts map[string]int32 `json:"restarts,omitempty"`
}

type condition struct {
	Type               string                 `json:"type"`
	Status             corev1.ConditionStatus `json:"status"`
	Reason             string                 `json:"reason,omitempty"`
	Message            string                 `json:"message,omitempty"`
	LastUpdateTime     metav1.Time            `json:"lastUpdateTime,omitempty"`
	LastTransitionTime metav1.Time            `json:"lastTransitionTime,omitempty"`
}

type replicaStatus struct {
	Active    int    `json:"active,omitempty"`
	Succeeded int    `json:"succeeded,omitempty"`
	Failed    int    `json:"failed,omitempty"`
	Selector  string `json:"selector,omitempty"`
}

// The types of conditions.
const (
	created    = "Created"
	running    = "Running"
	restarting = "Restarting"
	succeeded  = "Succeeded"
	suspended  = "Suspended"
	failed     = "Failed"
)

func (s status) clone() status {
	s.Conditions, s.ReplicaStatuses, s.Restarts = slices.Clone(s.Conditions), maps.Clone(s.ReplicaStatuses), maps.Clone(s.Restarts)
	return s
}

func (s *status) is(conditionType string) bool {
	return slices.ContainsFunc(s.Conditions, func(c condition) bool {
		return c.Type == conditionType && c.Status == corev1.ConditionTrue
	})
}

func (s *status) finished() bool { return s.is(succeeded) || s.is(failed) }

// set makes a condition true; the reason is the kind and the condition. Running and
// Restarting exclude each other, and the end of a job ends both.
func (s *status) set(kind, conditionType, message string, now time.Time) {
	s.write(condition{Type: conditionType, Status: corev1.ConditionTrue, Reason: kind + conditionType, Message: message}, now)
	switch conditionType {
	case running:
		s.drop(restarting)
	case restarting:
		s.drop(running)
	case succeeded, failed:
		s.drop(restarting)
		for i := range s.Conditions {
			if s.Conditions[i].Type == running {
				s.Conditions[i].Status = corev1.ConditionFalse
			}
		}
		s.CompletionTime = &metav1.Time{Time: now}
	}
}

// reject fails a job that can never run.
func (s *status) reject(j *job, why error, now time.Time) {
	s.set(j.kind, failed, j.text("cannot run: %v", why), now)
	s.Conditions[len(s.Conditions)-1].Reason = j.kind + "FailedValidation"
}

// settle counts what still runs when a job ends: it is removed, or ends by itself.
func (s *status) settle() {
	for name, r := range s.ReplicaStatuses {
		if s.is(succeeded) {
			r.Succeeded += r.Active
		}
		r.Active = 0
		s.ReplicaStatuses[name] = r
	}
}

func (s *status) drop(conditionType string) {
	s.Conditions = slices.DeleteFunc(s.Conditions, func(c condition) bool { return c.Type == conditionType })
}

// write replaces a condition, at the end of the list as the training operator does.
// One with the same status and reason stays as it is.
func (s *status) write(c condition, now time.Time) {
	c.LastUpdateTime = metav1.NewTime(now)
	c.LastTransitionTime = c.LastUpdateTime
	if i := slices.IndexFunc(s.Conditions, func(old condition) bool { return old.Type == c.Type }); i >= 0 {
		old := s.Conditions[i]
		if old.Status == c.Status && old.Reason == c.Reason {
			return
		}
		if old.Status == c.Status {
			c.LastTransitionTime = old.LastTransitionTime
		}
		s.drop(c.Type)
	}
	s.Conditions = append(s.Conditions, c)
}

// started are the conditions that are true in after and were not in before.
func started(before, after status) (all []condition) {
	for _, c := range after.Conditions {
		if c.Status == corev1.ConditionTrue && !before.is(c.Type) {
			all = append(all, c)
		}
	}
	return all
}

func (j *job) text(format string, args ...any) string {
	return fmt.Sprintf("%s %s ", j.kind, j.Name) + fmt.Sprintf(format, args...)
}
