package trial

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector"
)

var ranks = []string{
	"batch.kubernetes.io/job-completion-index",
	"jobset.sigs.k8s.io/job-index",
	"training.kubeflow.org/replica-index",
	"leaderworkerset.sigs.k8s.io/worker-index",
	"volcano.sh/task-index",
}

// Labels of the training operator's pods.
const (
	jobRole     = "training.kubeflow.org/job-role"
	replicaType = "training.kubeflow.org/replica-type"
)

// reports says whether a pod's metrics are its trial's: of several pods with a
// collector one reports, the one that primaryPodLabels select, else rank 0. A label
// that the pod does not have selects nothing: the defaults of a kind name labels that
// not every operator writes. The training operator writes which pod is the master.
func reports(primary map[string]string, pod *corev1.Pod) bool {
	ranked := false
	for key, want := range primary {
		have, ok := pod.Labels[key]
		// The MPI operator's word for what the training operator calls a master.
		launcher := want == "master" && have == "launcher"
		if ok && !strings.EqualFold(have, want) && !launcher {
			return false
		}
		if _, typed := pod.Labels[replicaType]; key == jobRole && typed && !ok {
			return false
		}
		ranked = ranked || ok && slices.Contains(ranks, key)
	}
	if ranked {
		return true
	}
	for _, key := range ranks {
		if rank, ok := pod.Labels[key]; ok && rank != "0" {
			return false
		}
	}
	return true
}

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
	return err == nil && reports(t.Spec.PrimaryPodLabels, &pods.Items[i]), err
}
