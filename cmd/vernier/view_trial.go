package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

type trialView struct {
	Name string
	// Number in the experiment, -1 for a trial that was created by hand.
	Number int
	// State is that of the Trial's conditions.
	State string
	// Message is the message of the last condition.
	Message string
	// Waits is why a trial that was started does not train, or "".
	Waits string
	// Lacks is what the collector of a running trial did not find so far, or "".
	Lacks   string
	Params  []v1beta1.ParameterAssignment
	Metrics []metricView
	Started time.Time
	Ended   time.Time
	// Object is nil for the best trial of an experiment that no longer has it.
	Object *v1beta1.Trial
}

type metricView struct {
	Name  string
	Value string
	// strategy is min, max or latest, and last the last value of the curve.
	strategy, last string
}

// origin is "(min, at step 7; the last value was 0.31)": where the value of a
// curve comes from. It is "" where the value is simply the last one.
func (m metricView) origin(step *int64) string {
	value, last := shortNumber(m.Value), shortNumber(m.last)
	if m.strategy == "" || m.last == "" || m.strategy == string(v1beta1.ExtractByLatest) || value == last && step == nil {
		return ""
	}
	text := m.strategy
	if step != nil {
		text += fmt.Sprintf(", at step %d", *step)
	}
	if value != last {
		text += "; the last value was " + last
	}
	if _, ok := finite(m.last); !ok {
		text += ": it diverged"
	}
	return "(" + text + ")"
}

// objective is the value of the objective as text, or "" when there is none.
func (t trialView) objective() string {
	if len(t.Metrics) == 0 {
		return ""
	}
	return t.Metrics[0].Value
}

// metric is the value of a metric as text, or "" when there is none.
func (t trialView) metric(name string) string {
	i := slices.IndexFunc(t.Metrics, func(m metricView) bool { return m.Name == name })
	if i < 0 {
		return ""
	}
	return t.Metrics[i].Value
}

// score is the value of the objective as a number; ok is false when there is
// none, or it is not finite.
func (t trialView) score() (value float64, ok bool) { return finite(t.objective()) }

func finite(text string) (value float64, ok bool) {
	v, err := strconv.ParseFloat(text, 64)
	return v, err == nil && !math.IsNaN(v) && !math.IsInf(v, 0)
}

// shownState is the state as a table has it.
func (t trialView) shownState() string {
	switch {
	case t.stopping():
		return "· Stopping"
	case strings.HasPrefix(t.Waits, v1beta1.QueuedSays):
		return "· Queued"
	case strings.HasPrefix(t.Waits, v1beta1.PreemptedSays):
		return "· Preempted"
	case t.Waits != "":
		return "· Waiting"
	}
	return signOf(v1beta1.TrialConditionType(t.State)) + " " + t.State
}

func (t trialView) finished() bool {
	switch v1beta1.TrialConditionType(t.State) {
	case v1beta1.TrialCreated, v1beta1.TrialRunning, "":
		return false
	}
	return true
}

// stopping says whether the trial was asked to stop, and has not ended yet.
func (t trialView) stopping() bool {
	return !t.finished() && t.Object != nil && t.Object.AskedToStop()
}

// duration is how long the trial ran, or has been running at now.
func (t trialView) duration(now time.Time) time.Duration {
	if t.Started.IsZero() {
		return 0
	}
	if t.Ended.IsZero() {
		return now.Sub(t.Started)
	}
	return t.Ended.Sub(t.Started)
}

func newTrialView(trial *v1beta1.Trial) trialView {
	view := trialView{
		Name:   trial.Name,
		Number: -1,
		State:  string(trial.State()),
		Params: trial.Spec.ParameterAssignments,
		Object: trial,
	}
	if n, ok := trial.Number(); ok {
		view.Number = n
	}
	if last := trial.LastCondition(); last != nil {
		view.Message = last.Message
		// No node has room; it has no job yet; its worker is lost.
		for _, words := range []string{"Trial is running. ", "Trial waits: ", "Trial is pending: "} {
			_, why, found := strings.Cut(last.Message, words)
			switch note, said := strings.CutPrefix(why, v1beta1.CollectorSays); {
			case !found || view.finished():
			case said:
				view.Lacks = note
			default:
				view.Waits = why
			}
		}
	}
	if t := trial.Status.StartTime; t != nil {
		view.Started = t.Time
	}
	if t := trial.Status.CompletionTime; t != nil {
		view.Ended = t.Time
	}
	if trial.Status.Observation != nil {
		view.Metrics = condense(trial.Spec.Objective, trial.Status.Observation.Metrics)
	}
	return view
}

// condense picks, for each metric, the value that its strategy names, the
// objective first.
func condense(objective *v1beta1.ObjectiveSpec, metrics []v1beta1.Metric) []metricView {
	views := make([]metricView, 0, len(metrics))
	for _, m := range metrics {
		strategy := objective.Strategy(m.Name, v1beta1.ExtractByLatest)
		views = append(views, metricView{Name: m.Name, Value: m.By(strategy), strategy: string(strategy), last: m.Latest})
	}
	if objective == nil {
		return views
	}
	slices.SortStableFunc(views, func(a, b metricView) int {
		return rank(a.Name == objective.ObjectiveMetricName) - rank(b.Name == objective.ObjectiveMetricName)
	})
	return views
}

func rank(first bool) int {
	if first {
		return 0
	}
	return 1
}
