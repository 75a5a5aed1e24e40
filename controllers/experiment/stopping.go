package experiment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

const (
	// judgeEvery is how often the curves of running trials are looked at.
	judgeEvery = 2 * time.Second
	judgeShare = 20
)

// stopEarly asks the trials to stop that the experiment's early stopping rule
// gives up, and says when to look again; 0 when there is nothing to look at.
func (c *Controller) stopEarly(ctx context.Context, exp *v1beta1.Experiment, s *kept, active bool) (time.Duration, error) {
	if !s.StopsEarly() || !active {
		return 0, nil
	}
	began := c.Now()
	if left := max(judgeEvery, s.judging*judgeShare) - began.Sub(s.judged); left > 0 {
		return left, nil
	}
	stops, spared, err := s.Judge(ctx, c.Scan)
	if err != nil {
		return 0, err
	}
	for _, v := range stops {
		if err := c.ask(ctx, v.Trial, v1beta1.AnnotationStopEarly, v.Why); err != nil {
			return 0, err
		}
		c.Metrics.pruned.WithLabelValues(exp.Spec.EarlyStopping.AlgorithmName, "stop").Inc()
	}
	c.Metrics.pruned.WithLabelValues(exp.Spec.EarlyStopping.AlgorithmName, "continue").Add(float64(spared))
	s.judged = c.Now()
	s.judging = s.judged.Sub(began)
	return max(judgeEvery, s.judging*judgeShare), nil
}

// stop asks trials to stop. The trial controller does it.
func (c *Controller) stop(ctx context.Context, a actions) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for _, t := range a.stop {
		group.Go(func() error { return c.ask(ctx, t, v1beta1.AnnotationStop, a.stopWhy) })
	}
	return group.Wait()
}

// ask asks the trial controller to stop a trial, by an annotation that says why.
func (c *Controller) ask(ctx context.Context, t *v1beta1.Trial, annotation, why string) error {
	// The UID is a condition: a trial of the same name that was made since must not stop.
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid":         t.UID,
		"annotations": map[string]string{annotation: why},
	}})
	if err != nil {
		return fmt.Errorf("encode a patch: %w", err)
	}
	target := &v1beta1.Trial{ObjectMeta: metav1.ObjectMeta{Namespace: t.Namespace, Name: t.Name}}
	err = c.Client.Patch(ctx, target, client.RawPatch("application/merge-patch+json", patch))
	if client.IgnoreNotFound(err) != nil && !isAnother(err) {
		return fmt.Errorf("ask trial %s to stop: %w", t.Name, err)
	}
	return nil
}

// isAnother says whether a patch was refused because the object has another UID
// than the patch.
func isAnother(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	return slices.ContainsFunc(status.Status().Details.Causes, func(c metav1.StatusCause) bool { return c.Field == "metadata.uid" })
}
