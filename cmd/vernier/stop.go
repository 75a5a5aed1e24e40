package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	vernierv1 "github.com/vernier-ml/vernier/api/proto/vernier/v1"
	"github.com/vernier-ml/vernier/api/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// newStopCommand makes the command that ends an experiment, or one of its trials, and
// keeps the results.
func newStopCommand(open opener) *cobra.Command {
	var now bool
	cmd := &cobra.Command{
		Use:   "stop EXPERIMENT[/TRIAL]",
		Short: "End an experiment, or stop one of its trials, and keep the results",
		Long: `End an experiment as Ctrl-C in vernier run does: maxTrialCount is lowered to the
trials that exist, and those that run may finish. With --now these are stopped too.
What was found is kept, and with resumePolicy LongRunning the experiment goes on when
its maxTrialCount is raised.

If a trial is named, only that trial is stopped, and the experiment goes on. On a cluster,
users with the role vernier-edit may not patch trials: for them, set VERNIER_SERVER and
VERNIER_TOKEN, so that the API stops the trials.`,
		Example: `  vernier stop charlm
  vernier stop charlm/12`,
		Args: oneArgument,
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := parseTarget(args[0])
			if err != nil {
				return err
			}
			if t.Trial != "" && now {
				return usageErrorf("--now is for an experiment: a trial that is named is stopped at once")
			}
			session, err := open(cmd.Context(), false)
			if err != nil {
				return err
			}
			if t.Trial != "" {
				return stopOne(cmd.Context(), session, args[0], cmd.OutOrStdout())
			}
			return stopAll(cmd.Context(), session, args[0], now, cmd.OutOrStdout())
		},
	}
	cmd.Flags().BoolVar(&now, "now", false, "stop the trials that run, too")
	return cmd
}

func stopAll(ctx context.Context, s *session, name string, now bool, out io.Writer) error {
	key := s.key(name)
	if err := stopGrowing(ctx, s.client, key); err != nil {
		return fmt.Errorf("stop experiment %s: %w", name, err)
	}
	view, err := loadExperiment(ctx, s.client, key)
	if err != nil {
		return err
	}
	stopped := 0
	for _, t := range view.Trials {
		if !now || t.finished() {
			continue
		}
		if err := stopTrial(ctx, s, t.Object, "vernier stop --now"); client.IgnoreNotFound(err) != nil {
			return err
		}
		stopped++
	}
	text := fmt.Sprintf("experiment %s makes no new trials: %s", name, countsLine(view))
	switch stopped {
	case 0:
	case 1:
		text += "; the one that runs was asked to stop"
	default:
		text += fmt.Sprintf("; the %d that run were asked to stop", stopped)
	}
	_, err = fmt.Fprintln(out, text)
	return err
}

func stopOne(ctx context.Context, s *session, name string, out io.Writer) error {
	t, err := s.findTrial(ctx, name)
	if err != nil {
		return err
	}
	if t.finished() {
		_, err = fmt.Fprintf(out, "trial %s has ended already: %s\n", t.Name, t.State)
		return err
	}
	if err := stopTrial(ctx, s, t.Object, "vernier stop"); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "trial %s was asked to stop: what it has reported is kept, and its experiment goes on\n", t.Name)
	return err
}

// stopTrial asks for the end of a trial, and not of another that has its name by now. The
// role vernier-edit may do that through the API only.
func stopTrial(ctx context.Context, s *session, t *v1beta1.Trial, why string) error {
	if t.AskedToStop() {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": t.UID, "annotations": map[string]string{v1beta1.AnnotationStop: why}}})
	if err == nil {
		err = s.client.Patch(ctx, t, client.RawPatch(types.MergePatchType, patch))
	}
	if apierrors.IsForbidden(err) {
		api, unknown := s.api()
		if unknown != nil {
			return fmt.Errorf("stop trial %s: %w; the API may do it for you: %w", t.Name, err, unknown)
		}
		name := fmt.Sprintf("namespaces/%s/experiments/%s/trials/%s", t.Namespace, t.Labels[v1beta1.LabelExperiment], t.Name)
		_, err = api.StopTrial(ctx, &vernierv1.StopTrialRequest{Name: name, Reason: why})
	}
	if err != nil {
		return fmt.Errorf("stop trial %s: %w", t.Name, err)
	}
	return nil
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

// stopOnInterrupt is what the first signal does to an experiment: SIGTERM leaves it alone.
// stopped tells once whether it gets no more trials. The second Ctrl-C often comes at
// once; it does not break off what the first began, unless that takes long.
func stopOnInterrupt(c client.Client, key types.NamespacedName, say func(string)) (first func(context.Context, os.Signal) (leave bool), stopped <-chan bool) {
	told := make(chan bool, 1)
	return func(ctx context.Context, sig os.Signal) bool {
		if sig == syscall.SIGTERM {
			told <- false
			return true
		}
		say("no new trials; waiting for the running ones. Ctrl-C again to leave at once.")
		stopping, cancel := context.WithCancel(context.WithoutCancel(ctx))
		defer cancel()
		defer context.AfterFunc(ctx, func() { time.AfterFunc(stopPatience, cancel) })()
		err := stopGrowing(stopping, c, key)
		if err != nil {
			say(fmt.Sprintf("cannot stop the experiment: %v", err))
		}
		told <- err == nil
		return false
	}, told
}

// stopPatience is how long who leaves waits until the experiment is stopped.
const stopPatience = 2 * time.Second

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
