package experiment

import (
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

// Messages of the conditions; the first words are Katib's.
const (
	messageCreated       = "Experiment is created"
	messageRunning       = "Experiment is running"
	messageRestarting    = "Experiment is restarting"
	messageGoalReached   = "Experiment has succeeded because Objective goal has reached"
	messageMaxTrials     = "Experiment has succeeded because max trial count has reached"
	messageSuggestionEnd = "Experiment has succeeded because the algorithm has nothing left to try after %d trials"
	messageMaxFailed     = "Experiment has failed because max failed count has reached"
	messageFailures      = messageMaxFailed + ": %s failed and %s no metrics (maxFailedTrialCount is %d). The conditions of these trials say why"
	messageStop          = "the experiment has ended: %s"
)

// say changes the message of a condition and leaves its place in the list.
func say(exp *v1beta1.Experiment, kind v1beta1.ExperimentConditionType, message string, now metav1.Time) {
	if c := exp.Condition(kind); c != nil && c.Message != message {
		c.Message, c.LastUpdateTime = message, now
	}
}

// differs says whether want is worth a write, and whether that write can wait
// because the conditions are the same.
func differs(have, want *v1beta1.ExperimentStatus) (differ, canWait bool) {
	a, b := *have, *want
	a.LastReconcileTime, b.LastReconcileTime = nil, nil
	if equality.Semantic.DeepEqual(a, b) {
		return false, false
	}
	return true, equality.Semantic.DeepEqual(a.Conditions, b.Conditions)
}
