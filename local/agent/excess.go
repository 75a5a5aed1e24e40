package agent

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// The Job controller gives its pods random names. When the API server dies
// between storing a pod and answering, the controller knows nothing of that pod
// and makes another one; later it sees both and deletes the one that is less far.
// A node that started both at once would run a program twice that should run
// once. This one holds a pod back while its Job has as many pods active here as
// it may have: it starts when the controller has deleted another one, or the Job may have more.

// excessRecheck is how often a pod that is held back is looked at again.
const excessRecheck = 200 * time.Millisecond

// jobOf is the UID and name of the Job that controls a pod.
func jobOf(pod *corev1.Pod) (uid types.UID, name string, ok bool) {
	owner := metav1.GetControllerOf(pod)
	if owner == nil || owner.Kind != "Job" || owner.APIVersion != batchv1.SchemeGroupVersion.String() {
		return "", "", false
	}
	return owner.UID, owner.Name, true
}

// isExcess reports whether a Job has limit pods active among others, and pod
// would be one more. A pod that is being deleted does not count: the Job
// controller replaces it at once, if the Job says so.
func isExcess(pod *corev1.Pod, others []*corev1.Pod, limit int32) bool {
	job, _, ok := jobOf(pod)
	if !ok {
		return false
	}
	active := int32(0)
	for _, other := range others {
		if uid, _, ok := jobOf(other); ok && uid == job && other.DeletionTimestamp == nil {
			active++
		}
	}
	return active >= limit
}

// hold keeps the pod from starting for now. Most Jobs have one pod at a time; a
// Job whose second pod comes is asked how many it may have.
func (w *worker) hold(ctx context.Context, now time.Time, next *decision) {
	if w.parallelismKnown {
		next.wakeAt(now.Add(excessRecheck))
		return
	}
	_, name, _ := jobOf(w.v.Pod)
	namespace := w.v.Pod.Namespace
	w.begin(ctx, &w.asking, next, "tell how many pods the Job may have", func(ctx context.Context) (func(), error) {
		limit, err := w.cluster.parallelism(ctx, namespace, name)
		if err != nil {
			return nil, err
		}
		return func() { w.parallelism, w.parallelismKnown = limit, true }, nil
	})
}

// parallelism is how many pods of a Job may be active at once, at least 1.
func (c *cluster) parallelism(ctx context.Context, namespace, name string) (int32, error) {
	job, err := c.client.BatchV1().Jobs(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return 0, fmt.Errorf("read job %s/%s: %w", namespace, name, err)
	}
	return max(ptr.Deref(job.Spec.Parallelism, 1), 1), nil
}
