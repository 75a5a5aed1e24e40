package trial

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/controllers/events"
)

func jobCreated(t *v1beta1.Trial) events.Event {
	return events.Event{Type: corev1.EventTypeNormal, Reason: "JobCreated", Action: "CreateJob", Note: "Job " + t.Name + " is created"}
}

func jobRecreated(t *v1beta1.Trial) events.Event {
	return events.Event{Type: corev1.EventTypeWarning, Reason: "JobRecreated", Action: "CreateJob", Note: "Job " + t.Name + " was gone before it had ended, and is created again"}
}

func jobWaits(message string) events.Event {
	return events.Event{Type: corev1.EventTypeWarning, Reason: "ReconcileError", Action: "CreateJob", Note: message}
}

func endedAs(c v1beta1.TrialCondition) events.Event {
	switch c.Type {
	case v1beta1.TrialFailed:
		return events.Event{Type: corev1.EventTypeWarning, Reason: "JobFailed", Action: "Finish", Note: c.Message}
	case v1beta1.TrialMetricsUnavailable:
		return events.Event{Type: corev1.EventTypeWarning, Reason: "MetricsUnavailable", Action: "Finish", Note: c.Message}
	case v1beta1.TrialKilled:
		return events.Event{Type: corev1.EventTypeNormal, Reason: "TrialKilled", Action: "Finish", Note: c.Message}
	case v1beta1.TrialEarlyStopped:
		return events.Event{Type: corev1.EventTypeNormal, Reason: "TrialEarlyStopped", Action: "Finish", Note: c.Message}
	default:
		return events.Event{Type: corev1.EventTypeNormal, Reason: "JobSucceeded", Action: "Finish", Note: c.Message}
	}
}

// transitions are the events that a status write speaks of.
func transitions(t *v1beta1.Trial, before, after *v1beta1.TrialStatus) []events.Event {
	had, has := last(before), last(after)
	switch {
	case had.Type == has.Type && had.Message == has.Message:
		return nil
	case has.Type == v1beta1.TrialCreated && has.Message != messageCreated:
		return []events.Event{jobWaits(has.Message)}
	case had.Type == has.Type || has.Type == v1beta1.TrialCreated:
		return nil
	case has.Type == v1beta1.TrialRunning:
		return []events.Event{jobCreated(t)}
	default:
		return []events.Event{endedAs(has)}
	}
}

func last(s *v1beta1.TrialStatus) v1beta1.TrialCondition {
	if len(s.Conditions) == 0 {
		return v1beta1.TrialCondition{}
	}
	return s.Conditions[len(s.Conditions)-1]
}
