package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

// explanation is what `vernier explain` says of an experiment or a trial.
type explanation struct {
	Name  string `json:"name"`
	State string `json:"state"`
	// What happens or happened to it, and why.
	Why string `json:"why"`
	// Proposed is why the trial's point was proposed.
	Proposed string `json:"proposed,omitempty"`
	// Next is a command that shows or changes more.
	Next string `json:"next,omitempty"`
}

// quiet is how long ago the last value of a running trial came before that is told: a
// program may hang.
const quiet = time.Minute

func newExplainCommand(open opener) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "explain EXPERIMENT[/TRIAL]",
		Short: "Say in a sentence why a trial waits, failed, was stopped or was proposed",
		Example: `  vernier explain charlm
  vernier explain charlm/12`,
		Args: oneArgument,
		RunE: func(cmd *cobra.Command, args []string) error {
			found, err := explain(cmd.Context(), args[0], open)
			if err != nil || output != "text" {
				if err == nil {
					err = writeValue(cmd.OutOrStdout(), output, found)
				}
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s %s.\n", found.Name, strings.TrimSuffix(found.Why, "."))
			if found.Proposed != "" {
				fmt.Fprintf(cmd.OutOrStdout(), "Why this point: %s.\n", found.Proposed)
			}
			if found.Next != "" {
				fmt.Fprintf(cmd.OutOrStdout(), "See also: %s\n", found.Next)
			}
			return nil
		},
	}
	outputFlag(cmd, &output, "text, json or yaml", "text", "json", "yaml")
	return cmd
}

func explain(ctx context.Context, text string, open opener) (explanation, error) {
	session, err := open(ctx, false)
	if err != nil {
		return explanation{}, err
	}
	t, err := parseTarget(text)
	if err != nil {
		return explanation{}, err
	}
	view, err := loadExperiment(ctx, session.client, session.key(t.Experiment))
	if err != nil {
		return explanation{}, err
	}
	if t.Trial == "" {
		return explainExperiment(view, time.Now()), nil
	}
	trial, err := t.find(view)
	if err != nil {
		return explanation{}, err
	}
	now := time.Now()
	found := explainTrial(view, trial, now)
	if found.State == string(v1beta1.TrialRunning) {
		if at := session.lastValue(ctx, view, trial); !at.IsZero() && now.Sub(at) >= quiet {
			found.Why += "; its last value came " + age(now.Sub(at)) + " ago"
		}
	}
	if !trial.finished() {
		if warning, err := lastWarning(ctx, session, trial.Name); err == nil && warning != "" && !strings.Contains(found.Why, warning) {
			found.Why += "; the last warning was: " + warning
		}
	}
	return found, nil
}

// lastWarning is the message of the newest warning event of a trial.
func lastWarning(ctx context.Context, s *session, name string) (string, error) {
	var events corev1.EventList
	selector := fields.AndSelectors(
		fields.OneTermEqualSelector("involvedObject.kind", "Trial"),
		fields.OneTermEqualSelector("involvedObject.name", name),
	)
	if err := s.client.List(ctx, &events, client.InNamespace(s.namespace), client.MatchingFieldsSelector{Selector: selector}); err != nil {
		return "", fmt.Errorf("list the events of trial %s: %w", name, err)
	}
	message, newest := "", time.Time{}
	for _, e := range events.Items {
		at := e.LastTimestamp.Time
		if at.IsZero() {
			at = e.EventTime.Time
		}
		if e.Type == corev1.EventTypeWarning && !at.Before(newest) {
			message, newest = e.Message, at
		}
	}
	return message, nil
}

func explainTrial(v experimentView, t trialView, now time.Time) explanation {
	path := v.Experiment.Name + "/" + strings.TrimPrefix(t.Name, v.Experiment.Name+"/")
	if t.Number >= 0 {
		path = fmt.Sprintf("%s/%d", v.Experiment.Name, t.Number)
	}
	e := explanation{Name: t.Name, State: t.State}
	if t.Object != nil {
		e.Proposed = strings.TrimSuffix(t.Object.Annotations[v1beta1.AnnotationWhy], ".")
	}
	took := age(t.duration(now))
	message := afterWords(cause(t.Message), "Trial is running.", "Trial is created.", "Trial has failed.", "Trial is early stopped.", "Trial is killed.", "Trial waits:")
	switch state := v1beta1.TrialConditionType(t.State); {
	case t.stopping():
		why := t.Object.Annotations[v1beta1.AnnotationStop] + t.Object.Annotations[v1beta1.AnnotationStopEarly]
		e.State, e.Why = "Stopping", "is being stopped"+reported(v, t)+": "+why
	case t.Waits != "":
		e.State, e.Why = "Waiting", "waits: "+t.Waits
	case state == v1beta1.TrialRunning:
		e.Why, e.Next = "has been running for "+took+reported(v, t)+withReason(t.Lacks), "vernier logs "+path+" -f"
	case !t.finished():
		e.State, e.Why = "Created", "has not started"+withReason(message)
	case state == v1beta1.TrialSucceeded:
		e.Why = fmt.Sprintf("succeeded after %s%s%s", took, reported(v, t), place(v, t))
	case state == v1beta1.TrialEarlyStopped:
		e.Why = "was stopped early after " + took + reported(v, t) + withReason(message)
	case state == v1beta1.TrialKilled:
		e.Why = "was killed after " + took + withReason(message)
	case state == v1beta1.TrialMetricsUnavailable:
		e.Why, e.Next = "ended after "+took+" without a result"+withReason(message), "vernier logs "+path
	default:
		e.Why, e.Next = "failed after "+took+withReason(message), "vernier logs "+path
	}
	return e
}

// afterWords leaves the words out with which Katib begins each message.
func afterWords(message string, words ...string) string {
	for _, w := range words {
		if rest, found := strings.CutPrefix(message, w); found {
			return strings.TrimSpace(rest)
		}
	}
	for _, w := range words { // the words alone say nothing more
		if message == strings.TrimSuffix(w, ".") {
			return ""
		}
	}
	return message
}

func withReason(message string) string {
	if message == "" {
		return ""
	}
	return ": " + message
}

// reported is " with loss=0.25", of all objectives.
func reported(v experimentView, t trialView) string {
	var parts []string
	for _, name := range v.objectiveNames() {
		if value := t.metric(name); value != "" {
			parts = append(parts, name+"="+shortNumber(value)+t.divergence(name))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return " with " + strings.Join(parts, " and ")
}

// place is the trial's rank among those that have ended, where there is a single
// objective.
func place(v experimentView, t trialView) string {
	best, ok := v.best()
	switch {
	case t.notFinite():
		return ", which is " + neverBest
	case !v.feasible(t):
		return ", but it breaks the bound " + v.broken(t) + ", so that it is never the best"
	case v.several() && slices.Contains(v.marked(), t.Name):
		return ", which none beats in all of them"
	case v.several() || !ok:
		return ""
	case best.Name == t.Name:
		return ", which is the best so far"
	}
	value, okValue := t.score()
	if !okValue {
		return ""
	}
	better, all := 0, 0
	for _, other := range v.Trials {
		score, ok := other.score()
		if !ok || !other.finished() || !v.feasible(other) {
			continue
		}
		all++
		if v.better(score, value) {
			better++
		}
	}
	return fmt.Sprintf(", number %d of %d; the best is %s with %s", better+1, all, best.Name, shortNumber(best.objective()))
}

func explainExperiment(v experimentView, now time.Time) explanation {
	name := v.Experiment.Name
	e := explanation{Name: name, State: v.State}
	c, limit := v.counts(), v.Experiment.Spec.MaxTrialCount
	switch {
	case v.State == stateInterrupted:
		e.Why, e.Next = "was interrupted: "+v.Message, "vernier edit "+name+" --max-trials N"
	case v.State == stateSuspended:
		e.Why, e.Next = fmt.Sprintf("is suspended: no new trials are made, and %d run", c.Running), "vernier resume "+name
	case v.State == string(v1beta1.ExperimentFailed):
		e.Why = "failed: " + afterWords(v.brief(v.Message), "Experiment has failed.") + firstFailure(v, false)
	case v.finished():
		e.Why = "ended: " + reasonWords(v) + fmt.Sprintf(" (%s)", countsLine(v))
		if c.Running > 0 {
			e.Why += "; those that run are being stopped"
		}
	case v.Experiment.Annotations[v1beta1.AnnotationEnd] != "":
		e.Why = "was stopped, and ends when the trials that run have ended: " + countsLine(v)
	case v.waits() != "":
		e.Why = "waits: " + v.waits()
	case v.waiting() != "":
		e.Why = "runs, but " + v.waiting()
	case v.Experiment.RunsOutside() && c.Running == 0 && (limit == nil || len(v.Trials) < int(*limit)):
		e.Why = "waits for a program that asks for trials (docs/api.md): " + countsLine(v)
	default:
		e.Why = "runs: " + countsLine(v)
		if limit != nil && len(v.Trials) >= int(*limit) {
			e.Why = "runs its last trials: " + countsLine(v)
		}
		if start := v.Experiment.Status.StartTime; start != nil {
			e.Why += ", for " + age(now.Sub(start.Time))
		}
	}
	return e
}

// reasonWords is why an experiment ended well.
func reasonWords(v experimentView) string {
	switch v.Reason {
	case v1beta1.ReasonExperimentGoalReached:
		return "a trial reached the goal"
	case v1beta1.ReasonExperimentMaxTrialsReached:
		return "all of its trials have ended"
	case v1beta1.ReasonExperimentSuggestionEndReached:
		return "every point of the search space has been tried"
	case v1beta1.ReasonExperimentMaxDurationReached:
		return "its maxDuration is over"
	case v1beta1.ReasonExperimentMaxGPUHoursReached:
		return "its maxGPUHours are used up"
	}
	return v.Message
}
