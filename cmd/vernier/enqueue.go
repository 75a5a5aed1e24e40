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
)

func newEnqueueCommand(open opener) *cobra.Command {
	return &cobra.Command{
		Use:   "enqueue EXPERIMENT[/TRIAL] [PARAMETER=VALUE...]",
		Short: "Queue a point, or that of a trial again: it is tried next",
		Long: `Queue a point of the search space, with a value for each active parameter, or the
point of a trial once more, with some parameters changed if they are given. The next
trial takes it, before the algorithm proposes more.`,
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
	id := rand.Text()
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		point, err = queue(ctx, session, at, values, id)
		return err
	})
	if err != nil {
		return err
	}
	var words []string
	for _, a := range point {
		words = append(words, a.Name+"="+shownParam(a.Value))
	}
	fmt.Fprintf(s.out, "experiment %s tries %s next\n", at.Experiment, strings.Join(words, " "))
	return nil
}

// queue adds a point to those that an experiment tries next, with an ID of the caller.
func queue(ctx context.Context, s *session, at target, values []string, id string) (point []v1beta1.ParameterAssignment, err error) {
	view, err := loadExperiment(ctx, s.client, s.key(at.Experiment))
	if err != nil {
		return nil, err
	}
	if at.Trial != "" {
		trial, err := at.find(view)
		if err != nil {
			return nil, err
		}
		point = append(point, trial.Object.Spec.ParameterAssignments...)
	}
	if point, err = assigned(point, values); err != nil {
		return nil, err
	}
	if len(point) == 0 {
		return nil, usageErrorf("give the parameters as NAME=VALUE, or name a trial as %s/NUMBER", at.Experiment)
	}
	changed := view.Experiment.DeepCopy()
	changed.Spec.InitialTrials = append(changed.Spec.InitialTrials, v1beta1.InitialTrial{ID: id, ParameterAssignments: point})
	patch := client.MergeFromWithOptions(view.Experiment, client.MergeFromWithOptimisticLock{})
	if err := s.client.Patch(ctx, changed, patch, fieldOwner); err != nil {
		return nil, fmt.Errorf("queue a point in experiment %s: %w", at.Experiment, err)
	}
	return point, nil
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
