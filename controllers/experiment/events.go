package experiment

import (
	"fmt"
	"strconv"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/controllers/events"
	"github.com/vernier-ml/vernier/controllers/katib"
)

var leftToKatib = events.Warning("LeftToKatib", "Leave", katib.Warning)

func newBest(o v1beta1.OptimalTrial, metric string) events.Event {
	note := "Trial " + o.BestTrialName + " is the best so far"
	for _, m := range o.Observation.Metrics {
		if m.Name == metric {
			note += fmt.Sprintf(": %s min=%s max=%s latest=%s", m.Name, rounded(m.Min), rounded(m.Max), rounded(m.Latest))
		}
	}
	return events.Normal("NewBest", "Compare", note)
}

// rounded is a number with six digits, as the tables have it.
func rounded(text string) string {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return text
	}
	return fmt.Sprintf("%.6g", v)
}

func endedWith(c v1beta1.ExperimentCondition) events.Event {
	if c.Type == v1beta1.ExperimentFailed {
		return events.Warning(c.Reason, "Finish", c.Message)
	}
	return events.Normal(c.Reason, "Finish", c.Message)
}

func transitions(exp *v1beta1.Experiment, before, after *v1beta1.ExperimentStatus) []events.Event {
	var out []events.Event
	had, has := current(before), current(after)
	if len(before.Conditions) == 0 {
		out = append(out, events.Normal(v1beta1.ReasonExperimentCreated, "Start", "Experiment "+exp.Name+" is started"))
	}
	if before.CurrentOptimalTrial.BestTrialName != after.CurrentOptimalTrial.BestTrialName && after.CurrentOptimalTrial.BestTrialName != "" && exp.Spec.Objective != nil {
		out = append(out, newBest(after.CurrentOptimalTrial, exp.Spec.Objective.ObjectiveMetricName))
	}
	switch {
	case has.Message == messageSuspended:
		if had.Message != has.Message {
			out = append(out, events.Normal("Suspended", "Suspend", has.Message))
		}
	case has.Message == messageStopping:
		if had.Message != has.Message {
			out = append(out, events.Normal("Stopping", "Stop", has.Message))
		}
	case has.Type == v1beta1.ExperimentFailed: // its message counts trials, and goes on doing so
	case had.Type == has.Type && had.Message != has.Message && has.Message != messageRunning && has.Message != createdMessage(exp),
		len(before.Conditions) == 0 && has.Type == v1beta1.ExperimentCreated && has.Message != createdMessage(exp):
		out = append(out, events.Warning("ReconcileError", "Suggest", has.Message))
	}
	if had.Type != has.Type {
		switch has.Type {
		case v1beta1.ExperimentSucceeded, v1beta1.ExperimentFailed:
			out = append(out, endedWith(has))
		case v1beta1.ExperimentRestarting:
			out = append(out, events.Normal(v1beta1.ReasonExperimentRestarting, "Resume", fmt.Sprintf("Experiment %s goes on after %d trials", exp.Name, exp.Status.Trials)))
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
