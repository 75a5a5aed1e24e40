package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/cmd/vernier/script"
)

type experimentView struct {
	Experiment *v1beta1.Experiment
	State      string
	Reason     string
	Message    string
	// Trials in order of their numbers.
	Trials []trialView
	// Also is a metric that a table of trials shows beside the objectives, or "".
	Also string
	// BestStep is the step of the best trial's objective, nil when it is not known.
	BestStep *int64
}

func newExperimentView(experiment *v1beta1.Experiment, trials []v1beta1.Trial) experimentView {
	view := experimentView{Experiment: experiment}
	if n := len(experiment.Status.Conditions); n > 0 {
		last := experiment.Status.Conditions[n-1]
		view.State, view.Reason, view.Message = string(last.Type), last.Reason, script.InFlags(experiment, last.Message)
	}
	if n, ok := experiment.Interrupted(); ok {
		view.State, view.Reason, view.Message = stateInterrupted, "", n+" trials ran"
	}
	if experiment.Spec.Suspend && !view.finished() {
		view.State = stateSuspended
	}
	for i := range trials {
		trial := newTrialView(&trials[i])
		if isBad(trial.State) {
			trial.Message = script.Sentences(experiment, trial.Message)
		}
		view.Trials = append(view.Trials, trial)
	}
	slices.SortFunc(view.Trials, func(a, b trialView) int {
		return cmp.Or(a.Number-b.Number, strings.Compare(a.Name, b.Name))
	})
	return view
}

const (
	// stateInterrupted is shown for an experiment that Ctrl-C ended. Its condition is
	// Succeeded, because its maxTrialCount was lowered.
	stateInterrupted = "Interrupted"
	// stateSuspended is shown while no new trials are made.
	stateSuspended = "Suspended"
)

func (v experimentView) finished() bool {
	switch v.State {
	case string(v1beta1.ExperimentSucceeded), string(v1beta1.ExperimentFailed), stateInterrupted:
		return true
	}
	return false
}

// waits is what is in the way of an experiment that has not ended, if anything.
func (v experimentView) waits() string {
	switch {
	case !v.finished() && strings.Contains(v.Message, v1beta1.MessageSlow):
		return "the last trials have failed, so " + v1beta1.MessageSlow
	case v.finished() || strings.HasPrefix(v.Message, "Experiment is "):
		return ""
	}
	return v.Message
}

// waiting says which trials cannot start, and why the first of them cannot.
func (v experimentView) waiting() string {
	first, n := trialView{}, 0
	for _, t := range v.Trials {
		if t.Waits == "" {
			continue
		}
		if n++; n == 1 {
			first = t
		}
	}
	switch n {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("trial %s waits: %s", first.Name, first.Waits)
	}
	return fmt.Sprintf("%d trials wait, such as %s: %s", n, first.Name, first.Waits)
}

func (v experimentView) best() (trialView, bool) {
	name := v.Experiment.Status.CurrentOptimalTrial.BestTrialName
	i := slices.IndexFunc(v.Trials, func(t trialView) bool { return name != "" && t.Name == name })
	if i >= 0 {
		return v.Trials[i], true
	}
	if name == "" {
		return trialView{}, false
	}
	optimal := v.Experiment.Status.CurrentOptimalTrial
	return trialView{
		Name: name, Number: -1, State: string(v1beta1.TrialSucceeded),
		Params:  optimal.ParameterAssignments,
		Metrics: condense(v.Experiment.Spec.Objective, optimal.Observation.Metrics),
	}, true
}

// front are the trials that the status names as those that none beats, of several
// objectives.
func (v experimentView) front() []trialView {
	var out []trialView
	names := v.Experiment.Status.ParetoTrialList
	for _, t := range v.Trials {
		if slices.Contains(names, t.Name) {
			out = append(out, t)
		}
	}
	return out
}

// feasible says whether a trial meets the bounds on metrics. What was not measured
// does not.
func (v experimentView) feasible(t trialView) bool {
	return !slices.ContainsFunc(v.Experiment.Spec.Constraints, func(c v1beta1.MetricConstraint) bool {
		value, ok := finite(t.metric(c.MetricName))
		return !ok || c.Outside(value) > 0
	})
}

// better says whether a value of the objective beats another one.
func (v experimentView) better(a, b float64) bool {
	if o := v.Experiment.Spec.Objective; o != nil && o.Type == v1beta1.ObjectiveTypeMaximize {
		return a > b
	}
	return a < b
}

// broken are the bounds that a trial does not meet: "memory <= 500 with 504".
func (v experimentView) broken(t trialView) string {
	var parts []string
	for _, c := range v.Experiment.Spec.Constraints {
		text := t.metric(c.MetricName)
		value, ok := finite(text)
		switch {
		case text == "":
			parts = append(parts, boundText(c)+" without a value")
		case !ok || c.Outside(value) > 0:
			parts = append(parts, boundText(c)+" with "+shortNumber(text))
		}
	}
	return strings.Join(parts, " and ")
}

func (v experimentView) several() bool { return len(v.Experiment.Spec.Objectives) > 1 }

func (v experimentView) hasResult() bool {
	best, ok := v.best()
	if !ok {
		return false
	}
	_, finite := best.score()
	return finite
}

func (v experimentView) metricName() string {
	if v.Experiment.Spec.Objective == nil {
		return "objective"
	}
	return v.Experiment.Spec.Objective.ObjectiveMetricName
}

// objectiveNames are the names of the objectives, the main one first.
func (v experimentView) objectiveNames() []string {
	if !v.several() {
		return []string{v.metricName()}
	}
	var names []string
	for _, o := range v.Experiment.Spec.Objectives {
		names = append(names, o.ObjectiveMetricName)
	}
	return names
}

// shownMetrics are the metrics of a table of trials: the objectives, then what has
// a bound.
func (v experimentView) shownMetrics() []string {
	names := v.objectiveNames()
	for _, c := range v.Experiment.Spec.Constraints {
		if !slices.Contains(names, c.MetricName) {
			names = append(names, c.MetricName)
		}
	}
	return names
}

// metricCell is a metric of a trial in a table, with "!" where it is out of bounds, and
// "0.25, then NaN" where it diverged.
func (v experimentView) metricCell(t trialView, metric string) string {
	text := t.metric(metric)
	cell := shortNumber(text)
	if last := t.divergedTo(metric); last != "" {
		cell += ", then " + last
	}
	for _, c := range v.Experiment.Spec.Constraints {
		if value, ok := finite(text); c.MetricName == metric && t.finished() && (!ok || c.Outside(value) > 0) && !isBad(t.State) {
			return strings.TrimSpace(cell + " !")
		}
	}
	return cell
}

// goalReached says whether the experiment ended because of its goal.
func (v experimentView) goalReached() bool {
	return v.State == string(v1beta1.ExperimentSucceeded) && v.Reason == "ExperimentGoalReached"
}

// shortNumber shortens a number for a table: at most six significant digits.
// Anything else is returned as it is.
func shortNumber(text string) string {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || len(text) <= 8 {
		return text
	}
	return strconv.FormatFloat(v, 'g', 6, 64)
}

// shownParam is the value of a parameter for people, without the digits that a scale
// leaves behind: 0.001, not 0.0010000000000000002. Whole numbers are whole.
func shownParam(text string) string {
	if !strings.ContainsAny(text, ".eE") {
		return text
	}
	return shortNumber(text)
}

// paramText is "lr=0.01 width=64", numbers shortened.
func paramText(params []v1beta1.ParameterAssignment) string {
	parts := make([]string, len(params))
	for i, p := range params {
		parts[i] = p.Name + "=" + shownParam(p.Value)
	}
	return strings.Join(parts, " ")
}

func age(d time.Duration) string {
	return duration.HumanDuration(max(d.Round(time.Second), 0))
}
