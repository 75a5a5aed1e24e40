// Package alert tells people what happens to an experiment while they do not look: trials
// that diverge, an experiment that stalls or ends. What there is to tell is a function of
// the objects and the time (plan.go); the dashboard shows it, and webhooks get it
// (controller.go, send.go).
package alert

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/utils/ptr"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

// Reasons of alerts.
const (
	TrialDiverged     = "TrialDiverged"
	ExperimentStalled = "ExperimentStalled"
	GoalReached       = "GoalReached"
	ExperimentEnded   = "ExperimentEnded"
	ExperimentFailed  = "ExperimentFailed"
)

// DefaultStalledAfter is how long an experiment may do nothing; as in the alert for
// Prometheus, which has one for all.
const DefaultStalledAfter = time.Hour

// Alert is something that people want to know.
type Alert struct {
	// ID is the same whenever and wherever the alert is found. Mark tells it from
	// others of the same reason and experiment.
	ID, Mark string
	Reason   string
	// Warning: a person should look at it.
	Warning bool
	// Trial that it is about, if it is one.
	Trial   string
	Message string
	Time    time.Time
}

// Of are the alerts of an experiment and its trials, which are in order of number, the
// newest first. At most one has a given reason.
func Of(exp *v1beta1.Experiment, trials []*v1beta1.Trial, now time.Time) (alerts []Alert) {
	add := func(a Alert, mark int64) {
		a.Mark = strconv.FormatInt(mark, 10)
		a.ID = fmt.Sprintf("%s/%s/%s", v1beta1.Origin(&exp.ObjectMeta), a.Reason, a.Mark)
		alerts = append(alerts, a)
	}
	if a, level := diverged(exp, trials); level > 0 {
		add(a, level)
	}
	if c := exp.LastCondition(); c != nil && exp.IsCompleted() {
		add(ended(exp, *c), c.LastTransitionTime.Unix())
	}
	if since, after := idleSince(exp, trials), stalledAfter(exp); after > 0 && !since.IsZero() && now.Sub(since) >= after {
		add(Alert{Reason: ExperimentStalled, Warning: true, Time: since.Add(after),
			Message: fmt.Sprintf("No trial has begun, reported or ended since %s%s", since.UTC().Format(time.RFC3339), whyIdle(exp, trials))}, since.Unix())
	}
	slices.SortStableFunc(alerts, func(a, b Alert) int { return b.Time.Compare(a.Time) })
	return alerts
}

// diverged tells of the first trial that has diverged, and again whenever their number
// has doubled: level is 1, 2, 4 and so on.
func diverged(exp *v1beta1.Experiment, trials []*v1beta1.Trial) (a Alert, level int64) {
	o := exp.Spec.AllObjectives()
	if len(o) == 0 {
		return a, 0
	}
	n, what := 0, ""
	for _, t := range trials {
		value, bad := NotFinite(t, o[0].ObjectiveMetricName)
		if !bad {
			continue
		}
		n++
		if at := t.LastActivity(); n == 1 || !at.Before(a.Time) {
			a.Trial, a.Time, what = t.Name, at, value
		}
	}
	if n == 0 {
		return a, 0
	}
	a.Reason, a.Warning = TrialDiverged, true
	a.Message = fmt.Sprintf("%s of trial %s is %s. %d of %d trials have diverged", o[0].ObjectiveMetricName, a.Trial, what, n, len(trials))
	if n == 1 {
		a.Message = fmt.Sprintf("%s of trial %s is %s: it has diverged", o[0].ObjectiveMetricName, a.Trial, what)
	}
	return a, 1 << (bits.Len(uint(n)) - 1)
}

// NotFinite is the newest value of a metric, if it is a number that is not finite.
func NotFinite(t *v1beta1.Trial, metric string) (string, bool) {
	if t.Status.Observation == nil {
		return "", false
	}
	for _, m := range t.Status.Observation.Metrics {
		if v, err := strconv.ParseFloat(m.Latest, 64); m.Name == metric && err == nil && (math.IsNaN(v) || math.IsInf(v, 0)) {
			return m.Latest, true
		}
	}
	return "", false
}

// diverges says whether a change of a trial is that it has diverged.
func diverges(before, after *v1beta1.Trial) bool {
	bad := func(t *v1beta1.Trial) (yes bool) {
		if t != nil && t.Spec.Objective != nil {
			_, yes = NotFinite(t, t.Spec.Objective.ObjectiveMetricName)
		}
		return yes
	}
	return bad(after) && !bad(before)
}

func ended(exp *v1beta1.Experiment, c v1beta1.ExperimentCondition) Alert {
	a := Alert{Reason: ExperimentEnded, Message: c.Message, Time: c.LastTransitionTime.Time, Trial: exp.Status.CurrentOptimalTrial.BestTrialName}
	switch {
	case c.Type == v1beta1.ExperimentFailed:
		a.Reason, a.Warning = ExperimentFailed, true
	case c.Reason == v1beta1.ReasonExperimentGoalReached:
		a.Reason = GoalReached
	}
	if trials, yes := exp.Interrupted(); yes {
		a.Message = "It was interrupted: " + trials + " trials ran"
	}
	o := exp.Spec.AllObjectives()
	for _, m := range exp.Status.CurrentOptimalTrial.Observation.Metrics {
		if len(o) > 0 && m.Name == o[0].ObjectiveMetricName {
			a.Message += fmt.Sprintf(". The best trial is %s: %s min=%s max=%s latest=%s", a.Trial, m.Name, m.Min, m.Max, m.Latest)
		}
	}
	return a
}

// stalledAfter is how long an experiment may do nothing, 0: for ever.
func stalledAfter(exp *v1beta1.Experiment) time.Duration {
	d, err := time.ParseDuration(exp.Annotations[v1beta1.AnnotationStalledAfter])
	if err != nil || d < 0 {
		return DefaultStalledAfter
	}
	return d
}

// idleSince is since when an experiment does nothing; zero where nothing is to be
// expected of it.
func idleSince(exp *v1beta1.Experiment, trials []*v1beta1.Trial) time.Time {
	rests := exp.Spec.Suspend || exp.RunsOutside() // until a user does something
	if exp.IsCompleted() || rests && exp.Status.TrialsRunning == 0 {
		return time.Time{}
	}
	since := exp.LastActivity()
	for _, t := range trials {
		if at := t.LastActivity(); at.After(since) {
			since = at
		}
	}
	return since
}

// whyIdle is what is known of it: why its newest trial waits or has no value, or what is
// in its own way.
func whyIdle(exp *v1beta1.Experiment, trials []*v1beta1.Trial) string {
	for _, t := range slices.Backward(trials) {
		c := ptr.Deref(t.LastCondition(), v1beta1.TrialCondition{})
		_, why, waits := strings.Cut(c.Message, "Trial is running. ")
		switch {
		case c.Type == v1beta1.TrialCreated:
			return fmt.Sprintf(". Trial %s waits: %s", t.Name, cmp.Or(strings.TrimPrefix(c.Message, "Trial waits: "), "its job has not started"))
		case c.Type == v1beta1.TrialRunning && strings.HasPrefix(why, v1beta1.CollectorSays): // it trains
			return fmt.Sprintf(". Trial %s: %s", t.Name, why)
		case c.Type == v1beta1.TrialRunning && waits: // for a node, an image, a queue
			return fmt.Sprintf(". Trial %s waits: %s", t.Name, why)
		}
	}
	if c := exp.LastCondition(); c != nil && c.Message != "" {
		return ". " + c.Message
	}
	return ""
}

// next is when an experiment stalls if nothing happens; zero: never.
func next(exp *v1beta1.Experiment, trials []*v1beta1.Trial) time.Time {
	since, after := idleSince(exp, trials), stalledAfter(exp)
	if since.IsZero() || after == 0 {
		return time.Time{}
	}
	return since.Add(after)
}
