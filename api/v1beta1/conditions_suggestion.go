package v1beta1

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Condition returns the condition of type t, or nil.
func (s *Suggestion) Condition(t SuggestionConditionType) *SuggestionCondition {
	i := slices.IndexFunc(s.Status.Conditions, func(c SuggestionCondition) bool { return c.Type == t })
	if i < 0 {
		return nil
	}
	return &s.Status.Conditions[i]
}

// HasCondition says whether the condition of type t is True.
func (s *Suggestion) HasCondition(t SuggestionConditionType) bool {
	c := s.Condition(t)
	return c != nil && c.Status == corev1.ConditionTrue
}

// SetCondition writes a condition of type t at the end of the list. It changes
// nothing when status and reason are unchanged.
func (s *Suggestion) SetCondition(t SuggestionConditionType, c Condition, now metav1.Time) {
	var old *Condition
	if o := s.Condition(t); o != nil {
		old = &o.Condition
	}
	c, changed := settle(old, c, now)
	if !changed {
		return
	}
	s.RemoveCondition(t)
	s.Status.Conditions = append(s.Status.Conditions, SuggestionCondition{Type: t, Condition: c})
}

// RemoveCondition removes the condition of type t.
func (s *Suggestion) RemoveCondition(t SuggestionConditionType) {
	s.Status.Conditions = slices.DeleteFunc(s.Status.Conditions, func(c SuggestionCondition) bool { return c.Type == t })
}

// MarkCreated records that the suggestion was seen.
func (s *Suggestion) MarkCreated(message string, now metav1.Time) {
	s.SetCondition(SuggestionCreated, condition(corev1.ConditionTrue, ReasonSuggestionCreated, message), now)
}

// MarkDeploymentReady records that the service that answers requests is ready;
// built-in algorithms always are.
func (s *Suggestion) MarkDeploymentReady(message string, now metav1.Time) {
	s.SetCondition(SuggestionDeploymentReady, condition(corev1.ConditionTrue, ReasonDeploymentReady, message), now)
}

// MarkRunning records that points are proposed.
func (s *Suggestion) MarkRunning(message string, now metav1.Time) {
	s.SetCondition(SuggestionRunning, condition(corev1.ConditionTrue, ReasonSuggestionRunning, message), now)
}

// MarkRestarting records that the experiment is resumed: the final condition is
// removed, and Running is False until the next point.
func (s *Suggestion) MarkRestarting(message string, now metav1.Time) {
	s.RemoveCondition(SuggestionSucceeded)
	s.SetCondition(SuggestionRunning, condition(corev1.ConditionFalse, ReasonExperimentIsRestarting, message), now)
}

// MarkSucceeded records that the experiment has ended.
func (s *Suggestion) MarkSucceeded(message string, now metav1.Time) {
	if s.Condition(SuggestionRunning) != nil {
		s.SetCondition(SuggestionRunning, condition(corev1.ConditionFalse, ReasonSuggestionSucceeded, message), now)
	}
	s.SetCondition(SuggestionSucceeded, condition(corev1.ConditionTrue, ReasonExperimentSucceeded, message), now)
}

// MarkFailed records that no point can be proposed.
func (s *Suggestion) MarkFailed(message string, now metav1.Time) {
	if c := s.Condition(SuggestionRunning); c != nil {
		s.SetCondition(SuggestionRunning, condition(corev1.ConditionFalse, c.Reason, message), now)
	}
	s.SetCondition(SuggestionFailed, condition(corev1.ConditionTrue, ReasonSuggestionFailed, message), now)
}

// IsCreated says whether the suggestion was seen.
func (s *Suggestion) IsCreated() bool { return s.HasCondition(SuggestionCreated) }

// IsSucceeded says whether the experiment has ended.
func (s *Suggestion) IsSucceeded() bool { return s.HasCondition(SuggestionSucceeded) }

// IsFailed says whether no point can be proposed.
func (s *Suggestion) IsFailed() bool { return s.HasCondition(SuggestionFailed) }

// MarkDeploymentNotReady records why the service that answers requests does not.
func (s *Suggestion) MarkDeploymentNotReady(message string, now metav1.Time) {
	if c := s.Condition(SuggestionDeploymentReady); c != nil && c.Message != message {
		s.RemoveCondition(SuggestionDeploymentReady) // the message counts too
	}
	s.SetCondition(SuggestionDeploymentReady, condition(corev1.ConditionFalse, ReasonDeploymentNotReady, message), now)
}

// AlgorithmName is the name of the algorithm; "" if none is named.
func (s *Suggestion) AlgorithmName() string {
	if s.Spec.Algorithm == nil {
		return ""
	}
	return s.Spec.Algorithm.AlgorithmName
}
