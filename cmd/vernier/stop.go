package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/vernier-ml/vernier/api/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// newStopCommand makes the command that ends an experiment and keeps its results.
func newStopCommand(open opener) *cobra.Command {
	var now bool
	cmd := &cobra.Command{
		Use:   "stop EXPERIMENT",
		Short: "End an experiment: no new trials, and those that run may finish",
		Long: `End an experiment as Ctrl-C in vernier run does: maxTrialCount is lowered to the
trials that exist, and those that run may finish. With --now these are stopped too.
What was found is kept, and with resumePolicy LongRunning the experiment goes on when
its maxTrialCount is raised.`,
		Args: oneExperiment,
		RunE: func(cmd *cobra.Command, args []string) error {
			session, err := open(cmd.Context(), false)
			if err != nil {
				return err
			}
			key := session.key(args[0])
			if err := stopGrowing(cmd.Context(), session.client, key); err != nil {
				return fmt.Errorf("stop experiment %s: %w", args[0], err)
			}
			view, err := loadExperiment(cmd.Context(), session.client, key)
			if err != nil {
				return err
			}
			stopped := 0
			for _, t := range view.Trials {
				if !now || t.finished() {
					continue
				}
				patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": t.Object.UID, "annotations": map[string]string{v1beta1.AnnotationStop: "vernier stop --now"}}})
				if err != nil {
					return err
				}
				if err := session.client.Patch(cmd.Context(), t.Object, client.RawPatch(types.MergePatchType, patch)); client.IgnoreNotFound(err) != nil {
					return fmt.Errorf("stop trial %s: %w", t.Name, err)
				}
				stopped++
			}
			fmt.Fprintf(cmd.OutOrStdout(), "experiment %s makes no new trials: %s", args[0], countsLine(view))
			if stopped > 0 {
				fmt.Fprintf(cmd.OutOrStdout(), ", %d of which are stopped now", stopped)
			}
			fmt.Fprintln(cmd.OutOrStdout())
			return nil
		},
	}
	cmd.Flags().BoolVar(&now, "now", false, "stop the trials that run, too")
	return cmd
}

// stopGrowing lowers maxTrialCount to the trials that exist, so that the
// experiment ends when the running ones have. A trial that was being made meanwhile is
// one of them: it would be stopped otherwise.
func stopGrowing(ctx context.Context, c client.Client, key types.NamespacedName) error {
	var asked *int32
	for known := -1; ; {
		view, err := loadExperiment(ctx, c, key)
		if err != nil {
			return err
		}
		if len(view.Trials) == known || view.finished() {
			return nil
		}
		if known < 0 {
			asked = view.Experiment.Spec.MaxTrialCount
		}
		known = len(view.Trials)
		if err := limitTrials(ctx, c, key, asked); err != nil {
			return err
		}
		if err := pause(ctx, makingTime); err != nil {
			return err
		}
	}
}

// makingTime is how long a manager that has not seen a new limit may still make trials.
const makingTime = 200 * time.Millisecond

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// limitTrials makes the trials that exist all that there will be, of those that were
// asked for.
func limitTrials(ctx context.Context, c client.Client, key types.NamespacedName, asked *int32) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		view, err := loadExperiment(ctx, c, key)
		if err != nil {
			return err
		}
		limit := max(int32(len(view.Trials)), 1)
		spec := &view.Experiment.Spec
		if asked == nil || limit < *asked {
			value := strconv.Itoa(int(limit))
			if asked != nil {
				value = fmt.Sprintf("%d of %d", limit, *asked)
			}
			metav1.SetMetaDataAnnotation(&view.Experiment.ObjectMeta, v1beta1.AnnotationInterrupted, value)
		}
		spec.MaxTrialCount = &limit
		for _, count := range []**int32{&spec.ParallelTrialCount, &spec.MaxFailedTrialCount} {
			if *count != nil && **count > limit {
				*count = &limit
			}
		}
		return c.Update(ctx, view.Experiment, fieldOwner)
	})
}
