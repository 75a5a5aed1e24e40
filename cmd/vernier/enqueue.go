package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/controllers/study"
)

func newEnqueueCommand(open opener) *cobra.Command {
	return &cobra.Command{
		Use:   "enqueue EXPERIMENT[/TRIAL] [PARAMETER=VALUE...]",
		Short: "Queue a point, or that of a trial again: it is tried next",
		Long: `Queue a point of the search space, with a value for each active parameter, or the
point of a trial once more, with some parameters changed if they are given. The next
trial takes it, before the algorithm proposes more. Where the budget has no room for
another trial, it waits until vernier edit --max-trials makes some; an experiment that
has ended with all of its trials goes on for it, if its resumePolicy is LongRunning.`,
		Example: `  vernier enqueue charlm lr=0.003 layers=4
  vernier enqueue charlm/12
  vernier enqueue charlm/best lr=0.003`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return enqueue(cmd.Context(), args[0], args[1:], streams{out: cmd.OutOrStdout()}, open)
		},
	}
}

func enqueue(ctx context.Context, text string, values []string, s streams, open opener) error {
	at, err := parseTarget(text)
	if err != nil {
		return err
	}
	session, err := open(ctx, false)
	if err != nil {
		return err
	}
	var q queued
	id := rand.Text()
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		q, err = queue(ctx, session, at, values, id)
		return err
	})
	if err != nil {
		return err
	}
	var words []string
	for _, a := range q.point {
		words = append(words, a.Name+"="+shownParam(a.Value))
	}
	fmt.Fprintf(s.out, "experiment %s tries %s %s\n", at.Experiment, strings.Join(words, " "), q.when())
	return nil
}

// queued is a point in the queue of an experiment.
type queued struct {
	exp   *v1beta1.Experiment
	point []v1beta1.ParameterAssignment
	// made is how many trials there were, and ahead how many points wait before it.
	made, ahead int
}

// need is how many trials there are with that of the point.
func (q queued) need() int32 { return int32(q.made + q.ahead + 1) }

// when says when the point is tried.
func (q queued) when() string {
	exp, need := q.exp, q.need()
	if m := exp.Spec.MaxTrialCount; m != nil && need > *m {
		return fmt.Sprintf("once its limit of %d trials is raised: vernier edit %s --max-trials %d", *m, exp.Name, need)
	}
	when := "next"
	if q.ahead > 0 {
		when = fmt.Sprintf("after %s of the queue", others(q.ahead))
	}
	if m := exp.Spec.MaxTrialCount; exp.IsCompleted() && m != nil {
		when += fmt.Sprintf(": it goes on, and its limit of trials is %d now", *m)
	}
	return when
}

// queue adds a point to those that an experiment tries next, with an ID of the caller.
func queue(ctx context.Context, s *session, at target, values []string, id string) (queued, error) {
	view, err := loadExperiment(ctx, s.client, s.key(at.Experiment))
	if err != nil {
		return queued{}, err
	}
	if err := takesPoints(view.Experiment); err != nil {
		return queued{}, err
	}
	var point []v1beta1.ParameterAssignment
	if at.Trial != "" {
		trial, err := at.find(view)
		if err != nil {
			return queued{}, err
		}
		point = append(point, trial.Params...)
	}
	if point, err = assigned(point, values); err != nil {
		return queued{}, err
	}
	if len(point) == 0 {
		return queued{}, usageErrorf("give the parameters as NAME=VALUE, or name a trial as %s/NUMBER", at.Experiment)
	}
	trials := make([]*v1beta1.Trial, len(view.Trials))
	for i, t := range view.Trials {
		trials[i] = t.Object
	}
	ahead := len(study.Queued(view.Experiment, trials))
	initial := 0 // those without an ID are tried first, one by one
	for _, t := range view.Experiment.Spec.InitialTrials {
		if t.ID == "" {
			initial++
		}
	}
	made := max(len(trials), int(view.Experiment.Status.Trials)) // the status comes after the trials
	ahead += max(0, initial-made)
	changed := view.Experiment.DeepCopy()
	q := queued{exp: changed, point: point, made: made, ahead: ahead}
	changed.Spec.InitialTrials = append(changed.Spec.InitialTrials, v1beta1.InitialTrial{ID: id, ParameterAssignments: point})
	// One that has ended goes on with the point: a limit that is raised before is the algorithm's to use.
	if need := q.need(); changed.IsCompleted() && changed.Spec.MaxTrialCount != nil && *changed.Spec.MaxTrialCount < need {
		changed.Spec.MaxTrialCount = &need
	}
	patch := client.MergeFromWithOptions(view.Experiment, client.MergeFromWithOptimisticLock{})
	if err := s.client.Patch(ctx, changed, patch, fieldOwner); err != nil {
		return queued{}, fmt.Errorf("queue a point in experiment %s: %w", at.Experiment, err)
	}
	return q, nil
}

func others(n int) string {
	if n == 1 {
		return "1 other"
	}
	return fmt.Sprintf("%d others", n)
}

// takesPoints says why an experiment tries no queued point.
func takesPoints(exp *v1beta1.Experiment) error {
	switch {
	case study.ProposedByService(&exp.Spec):
		return &exitError{exitConflict, fmt.Errorf("the algorithm %s of experiment %s is a service, which proposes all trials itself: it has no queue", exp.Spec.Algorithm.AlgorithmName, exp.Name)}
	case exp.IsCompleted() && !exp.CanResume():
		return &exitError{exitConflict, fmt.Errorf("experiment %s has ended, and its resumePolicy does not let it go on: make a new one", exp.Name)}
	}
	return nil
}

// assigned is a point with some values changed or added.
func assigned(point []v1beta1.ParameterAssignment, values []string) ([]v1beta1.ParameterAssignment, error) {
	for _, text := range values {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return nil, usageErrorf("write NAME=VALUE in place of %q", text)
		}
		found := false
		for i := range point {
			if point[i].Name == name {
				point[i].Value, found = value, true
			}
		}
		if !found {
			point = append(point, v1beta1.ParameterAssignment{Name: name, Value: value})
		}
	}
	return point, nil
}
