package trial

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

// news is one event about a trial. Each costs a write, so a trial that goes
// well has two: its job was created, its job succeeded.
type news struct {
	kind, reason, action, note string
}

func (e news) send(r events.EventRecorder, t *v1beta1.Trial) {
	r.Eventf(t, nil, e.kind, e.reason, e.action, "%s", clip(e.note))
}

func jobCreated(t *v1beta1.Trial) news {
	return news{corev1.EventTypeNormal, "JobCreated", "CreateJob", "Job " + t.Name + " is created"}
}

func jobRecreated(t *v1beta1.Trial) news {
	return news{corev1.EventTypeWarning, "JobRecreated", "CreateJob", "Job " + t.Name + " was gone before it had ended, and is created again"}
}

func jobWaits(message string) news {
	return news{corev1.EventTypeWarning, "ReconcileError", "CreateJob", message}
}

func endedAs(c v1beta1.TrialCondition) news {
	switch c.Type {
	case v1beta1.TrialFailed:
		return news{corev1.EventTypeWarning, "JobFailed", "Finish", c.Message}
	case v1beta1.TrialMetricsUnavailable:
		return news{corev1.EventTypeWarning, "MetricsUnavailable", "Finish", c.Message}
	case v1beta1.TrialKilled:
		return news{corev1.EventTypeNormal, "TrialKilled", "Finish", c.Message}
	case v1beta1.TrialEarlyStopped:
		return news{corev1.EventTypeNormal, "TrialEarlyStopped", "Finish", c.Message}
	default:
		return news{corev1.EventTypeNormal, "JobSucceeded", "Finish", c.Message}
	}
}

// transitions are the events that a status write speaks of.
func transitions(t *v1beta1.Trial, before, after *v1beta1.TrialStatus) []news {
	had, has := last(before), last(after)
	switch {
	case had.Type == has.Type && had.Message == has.Message:
		return nil
	case has.Type == v1beta1.TrialCreated && has.Message != messageCreated:
		return []news{jobWaits(has.Message)}
	case had.Type == has.Type || has.Type == v1beta1.TrialCreated:
		return nil
	case has.Type == v1beta1.TrialRunning:
		return []news{jobCreated(t)}
	default:
		return []news{endedAs(has)}
	}
}

func last(s *v1beta1.TrialStatus) v1beta1.TrialCondition {
	if len(s.Conditions) == 0 {
		return v1beta1.TrialCondition{}
	}
	return s.Conditions[len(s.Conditions)-1]
}

// clip keeps a note within the API's limit of 1024 bytes.
func clip(s string) string {
	const limit = 1000
	if len(s) <= limit {
		return s
	}
	cut := strings.ToValidUTF8(s[:limit], "")
	if at := strings.LastIndexByte(cut, ' '); at > limit/2 {
		cut = cut[:at]
	}
	return cut + "…"
}
