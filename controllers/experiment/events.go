package experiment

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

// news is one event about an experiment.
type news struct {
	kind, reason, action, note string
}

func (e news) send(r events.EventRecorder, exp *v1beta1.Experiment) {
	r.Eventf(exp, nil, e.kind, e.reason, e.action, "%s", clip(e.note))
}

func started(exp *v1beta1.Experiment) news {
	return news{corev1.EventTypeNormal, "ExperimentStarted", "Start", "Experiment " + exp.Name + " is started"}
}

func resumed(exp *v1beta1.Experiment) news {
	return news{corev1.EventTypeNormal, "Resumed", "Resume", fmt.Sprintf("Experiment %s goes on after %d trials", exp.Name, exp.Status.Trials)}
}

func newBest(o v1beta1.OptimalTrial, metric string) news {
	note := "Trial " + o.BestTrialName + " is the best so far"
	for _, m := range o.Observation.Metrics {
		if m.Name == metric {
			note += fmt.Sprintf(": %s min=%s max=%s latest=%s", m.Name, m.Min, m.Max, m.Latest)
		}
	}
	return news{corev1.EventTypeNormal, "NewBest", "Compare", note}
}

func endedWith(c v1beta1.ExperimentCondition) news {
	switch {
	case c.Type == v1beta1.ExperimentFailed:
		return news{corev1.EventTypeWarning, "ExperimentFailed", "Finish", c.Message}
	case c.Reason == v1beta1.ReasonExperimentGoalReached:
		return news{corev1.EventTypeNormal, "GoalReached", "Finish", c.Message}
	default:
		return news{corev1.EventTypeNormal, "ExperimentSucceeded", "Finish", c.Message}
	}
}

func inTheWay(message string) news {
	return news{corev1.EventTypeWarning, "ReconcileError", "Suggest", message}
}

// transitions are the events that a status write speaks of.
func transitions(exp *v1beta1.Experiment, before, after *v1beta1.ExperimentStatus) []news {
	var out []news
	had, has := current(before), current(after)
	if len(before.Conditions) == 0 {
		out = append(out, started(exp))
	}
	if before.CurrentOptimalTrial.BestTrialName != after.CurrentOptimalTrial.BestTrialName && after.CurrentOptimalTrial.BestTrialName != "" && exp.Spec.Objective != nil {
		out = append(out, newBest(after.CurrentOptimalTrial, exp.Spec.Objective.ObjectiveMetricName))
	}
	switch {
	case has.Type == v1beta1.ExperimentFailed: // its message counts trials, and goes on doing so
	case had.Type == has.Type && had.Message != has.Message && has.Message != messageRunning && has.Message != messageCreated:
		out = append(out, inTheWay(has.Message))
	case len(before.Conditions) == 0 && has.Type == v1beta1.ExperimentCreated && has.Message != messageCreated:
		out = append(out, inTheWay(has.Message))
	}
	if had.Type != has.Type {
		switch has.Type {
		case v1beta1.ExperimentSucceeded, v1beta1.ExperimentFailed:
			out = append(out, endedWith(has))
		case v1beta1.ExperimentRestarting:
			out = append(out, resumed(exp))
		}
	}
	return out
}

func current(s *v1beta1.ExperimentStatus) v1beta1.ExperimentCondition {
	if len(s.Conditions) == 0 {
		return v1beta1.ExperimentCondition{}
	}
	return s.Conditions[len(s.Conditions)-1]
}

// clip keeps a note within the API's limit of 1024 bytes.
func clip(s string) string {
	const limit = 1000
	if len(s) <= limit {
		return s
	}
	return s[:limit] + "..."
}
