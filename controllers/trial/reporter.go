package trial

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/trainer"
)

// OnlyReporters is store for what trials report: it takes points of the reporting
// pod of each trial, and passes those of its other pods over. Trials and pods are
// read from cache; what a pod sends that is gone, or not a pod, is taken.
func OnlyReporters(store collector.Store, cache client.Reader) collector.Store {
	return &reporters{store, cache}
}

type reporters struct {
	collector.Store
	cache client.Reader
}

func (r *reporters) Append(ctx context.Context, trial collector.TrialID, attempt collector.Attempt, points []collector.Point) error {
	if takes, err := r.takes(ctx, trial, attempt); err != nil || !takes {
		return err
	}
	return r.Store.Append(ctx, trial, attempt, points)
}

func (r *reporters) Finish(ctx context.Context, trial collector.TrialID, attempt collector.Attempt, note string) error {
	if takes, err := r.takes(ctx, trial, attempt); err != nil || !takes {
		return err
	}
	return r.Store.Finish(ctx, trial, attempt, note)
}

func (r *reporters) Note(ctx context.Context, trial collector.TrialID, attempt collector.Attempt, note string) error {
	if takes, err := r.takes(ctx, trial, attempt); err != nil || !takes {
		return err
	}
	return r.Store.Note(ctx, trial, attempt, note)
}

// takes says whether an attempt, whose ID begins with the UID of its pod, is of a
// pod that reports.
func (r *reporters) takes(ctx context.Context, trial collector.TrialID, attempt collector.Attempt) (bool, error) {
	var pods corev1.PodList
	err := r.cache.List(ctx, &pods, client.InNamespace(trial.Namespace), client.MatchingFields{podIndex: trial.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return false, err
	}
	i := slices.IndexFunc(pods.Items, func(p corev1.Pod) bool { return string(p.UID) == podOf(attempt) })
	if i < 0 {
		return true, nil
	}
	t := &v1beta1.Trial{}
	err = r.cache.Get(ctx, client.ObjectKey{Namespace: trial.Namespace, Name: trial.Name}, t)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	return err == nil && trainer.Reports(t.Spec.PrimaryPodLabels, pods.Items[i].Labels), err
}
