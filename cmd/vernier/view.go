package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/cmd/vernier/script"
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
	Waits   string
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
			if _, why, found := strings.Cut(last.Message, words); found && !view.finished() {
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
	if n, ok := interruptedAfter(experiment); ok && view.Reason == reasonMaxTrials {
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
	stateSuspended  = "Suspended"
	reasonMaxTrials = "ExperimentMaxTrialsReached"
)

// interruptedAfter returns "4 of 24" for an experiment that Ctrl-C limited to 4 of
// its 24 trials, unless its limit was changed since.
func interruptedAfter(e *v1beta1.Experiment) (trials string, ok bool) {
	trials = e.Annotations[v1beta1.AnnotationInterrupted]
	lowered, _, _ := strings.Cut(trials, " ")
	limit, err := strconv.Atoi(lowered)
	return trials, err == nil && e.Spec.MaxTrialCount != nil && int(*e.Spec.MaxTrialCount) == limit
}

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

// metricCell is a metric of a trial in a table, with "!" where it is out of bounds.
func (v experimentView) metricCell(t trialView, metric string) string {
	text := t.metric(metric)
	for _, c := range v.Experiment.Spec.Constraints {
		if value, ok := finite(text); c.MetricName == metric && t.finished() && (!ok || c.Outside(value) > 0) && !isBad(t.State) {
			return strings.TrimSpace(shortNumber(text) + " !")
		}
	}
	return shortNumber(text)
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
