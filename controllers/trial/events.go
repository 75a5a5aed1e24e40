package trial

import (
	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/controllers/events"
	"strings"
)

func jobRecreated(t *v1beta1.Trial) events.Event {
	return events.Warning("JobRecreated", "CreateJob", "Job "+t.Name+" has failed, or was gone before it had ended, and is created again")
}

func jobDeleted(t *v1beta1.Trial) events.Event {
	return events.Normal("JobDeleted", "DeleteJob", "Job "+t.Name+" is deleted")
}

func endedAs(c v1beta1.TrialCondition) events.Event {
	switch c.Type {
	case v1beta1.TrialFailed:
		return events.Warning("JobFailed", "Finish", c.Message)
	case v1beta1.TrialMetricsUnavailable:
		return events.Warning(c.Reason, "Finish", c.Message)
	case v1beta1.TrialKilled, v1beta1.TrialEarlyStopped:
		return events.Normal(c.Reason, "Finish", c.Message)
	default:
		return events.Normal("JobSucceeded", "Finish", c.Message)
	}
}

func transitions(t *v1beta1.Trial, before, after *v1beta1.TrialStatus) []events.Event {
	had, has := last(before), last(after)
	_, outside := t.Lease()
	switch {
	case had.Type == has.Type && had.Message == has.Message:
		return nil
	case has.Type == v1beta1.TrialCreated && strings.HasPrefix(has.Message, messageWaits+noRoom):
		return []events.Event{events.Normal("JobQueued", "CreateJob", has.Message)}
	case has.Type == v1beta1.TrialCreated && has.Message != messageCreated:
		return []events.Event{events.Warning("ReconcileError", "CreateJob", has.Message)}
	case had.Type == has.Type && had.Suspension() != has.Suspension():
		return []events.Event{jobRuns(t, has)}
	case had.Type == has.Type || has.Type == v1beta1.TrialCreated:
		return nil
	case outside && (has.Type == v1beta1.TrialRunning || has.Type == v1beta1.TrialSucceeded):
		return nil // there is no job, and its worker knows
	case has.Type == v1beta1.TrialRunning:
		return []events.Event{
			events.Normal("JobCreated", "CreateJob", "Job "+t.Name+" is created"),
			jobRuns(t, has),
		}
	default:
		return []events.Event{endedAs(has)}
	}
}

// jobRuns says that a job runs, or why it is suspended.
func jobRuns(t *v1beta1.Trial, c v1beta1.TrialCondition) events.Event {
	switch c.Suspension() {
	case v1beta1.QueuedSays:
		return events.Normal("JobQueued", "RunJob", "Job "+t.Name+" is queued")
	case v1beta1.PreemptedSays:
		return events.Normal("JobPreempted", "RunJob", "Job "+t.Name+" was preempted, and waits to run again")
	}
	return events.Normal("JobRunning", "RunJob", "Job "+t.Name+" is running")
}

func last(s *v1beta1.TrialStatus) v1beta1.TrialCondition {
	if len(s.Conditions) == 0 {
		return v1beta1.TrialCondition{}
	}
	return s.Conditions[len(s.Conditions)-1]
}
