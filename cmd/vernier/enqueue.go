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
	var point []v1beta1.ParameterAssignment
	var exp *v1beta1.Experiment
	made, ahead := 0, 0
	id := rand.Text()
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		exp, point, made, ahead, err = queue(ctx, session, at, values, id)
		return err
	})
	if err != nil {
		return err
	}
	var words []string
	for _, a := range point {
		words = append(words, a.Name+"="+shownParam(a.Value))
	}
	fmt.Fprintf(s.out, "experiment %s tries %s %s\n", at.Experiment, strings.Join(words, " "), whenQueued(exp, made, ahead))
	return nil
}

// whenQueued says when a point of the queue is tried, behind others and so many trials.
func whenQueued(exp *v1beta1.Experiment, made, ahead int) string {
	need := int32(made + ahead + 1)
	if m := exp.Spec.MaxTrialCount; m != nil && need > *m {
		return fmt.Sprintf("once its limit of %d trials is raised: vernier edit %s --max-trials %d", *m, exp.Name, need)
	}
	when := "next"
	if ahead > 0 {
		when = fmt.Sprintf("after %s of the queue", others(ahead))
	}
	if m := exp.Spec.MaxTrialCount; exp.IsCompleted() && m != nil {
		when += fmt.Sprintf(": it goes on, and its limit of trials is %d now", *m)
	}
	return when
}

// queue adds a point to those that an experiment tries next, with an ID of the caller. It
// says how many trials were made, and how many points wait already.
func queue(ctx context.Context, s *session, at target, values []string, id string) (exp *v1beta1.Experiment, point []v1beta1.ParameterAssignment, made, ahead int, err error) {
	view, err := loadExperiment(ctx, s.client, s.key(at.Experiment))
	if err != nil {
		return nil, nil, 0, 0, err
	}
	if err := takesPoints(view.Experiment); err != nil {
		return nil, nil, 0, 0, err
	}
	if at.Trial != "" {
		trial, err := at.find(view)
		if err != nil {
			return nil, nil, 0, 0, err
		}
		point = append(point, trial.Params...)
	}
	if point, err = assigned(point, values); err != nil {
		return nil, nil, 0, 0, err
	}
	if len(point) == 0 {
		return nil, nil, 0, 0, usageErrorf("give the parameters as NAME=VALUE, or name a trial as %s/NUMBER", at.Experiment)
	}
	trials := make([]*v1beta1.Trial, len(view.Trials))
	for i, t := range view.Trials {
		trials[i] = t.Object
	}
	ahead = len(study.Queued(view.Experiment, trials))
	initial := 0 // those without an ID are tried first, one by one
	for _, t := range view.Experiment.Spec.InitialTrials {
		if t.ID == "" {
			initial++
		}
	}
	made = max(len(trials), int(view.Experiment.Status.Trials)) // the status comes after the trials
	ahead += max(0, initial-made)
	changed := view.Experiment.DeepCopy()
	changed.Spec.InitialTrials = append(changed.Spec.InitialTrials, v1beta1.InitialTrial{ID: id, ParameterAssignments: point})
	// One that has ended goes on with the point: a limit that is raised before is the algorithm's to use.
	if need := int32(made + ahead + 1); changed.IsCompleted() && changed.Spec.MaxTrialCount != nil && *changed.Spec.MaxTrialCount < need {
		changed.Spec.MaxTrialCount = &need
	}
	patch := client.MergeFromWithOptions(view.Experiment, client.MergeFromWithOptimisticLock{})
	if err := s.client.Patch(ctx, changed, patch, fieldOwner); err != nil {
		return nil, nil, 0, 0, fmt.Errorf("queue a point in experiment %s: %w", at.Experiment, err)
	}
	return changed, point, made, ahead, nil
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
