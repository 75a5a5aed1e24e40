package agent

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/moby/sys/capability"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/resource"
	"k8s.io/utils/ptr"

	"github.com/vernier-ml/vernier/local/shim"
	"github.com/vernier-ml/vernier/trainer"
)

// admit decides whether the node can take a pod beside those that it already
// has. It returns nil, or why not, in the kubelet's words: OutOfcpu,
// OutOfmemory, OutOfpods and so on.
func admit(pod *corev1.Pod, others []*corev1.Pod, allocatable corev1.ResourceList) *verdict {
	if pods := allocatable[corev1.ResourcePods]; int64(len(others)) >= pods.Value() {
		return outOf(corev1.ResourcePods, 1, int64(len(others)), pods.Value())
	}
	requests := resource.PodRequests(pod, resource.PodResourcesOptions{})
	used := corev1.ResourceList{}
	for _, other := range others {
		for name, q := range resource.PodRequests(other, resource.PodResourcesOptions{}) {
			sum := used[name]
			sum.Add(q)
			used[name] = sum
		}
	}
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		have, known := allocatable[name]
		if !known && !strings.Contains(string(name), "/") {
			// ephemeral-storage and huge pages are not accounted for.
			continue
		}
		want, taken := requests[name], used[name]
		total := want.DeepCopy()
		total.Add(taken)
		if total.Cmp(have) > 0 {
			if name == corev1.ResourceCPU {
				return outOf(name, want.MilliValue(), taken.MilliValue(), have.MilliValue())
			}
			return outOf(name, want.Value(), taken.Value(), have.Value())
		}
	}
	return nil
}

func outOf(name corev1.ResourceName, requested, used, capacity int64) *verdict {
	return &verdict{
		Reason: "OutOf" + string(name),
		Message: fmt.Sprintf("Node didn't have enough resource: %s, requested: %d, used: %d, capacity: %d",
			name, requested, used, capacity),
	}
}

// checkSpec finds what this kind of node can never run, so that a pod fails
// with a clear message instead of waiting for ever.
func checkSpec(pod *corev1.Pod, mounts shim.MountMode) *verdict {
	for _, c := range allContainers(&pod.Spec) {
		var spec shim.ContainerSpec
		secure(pod, c, &spec)
		if spec.ReadOnly && mounts == shim.MountsNone {
			return &verdict{Reason: "ReadOnlyRootFilesystem", Message: fmt.Sprintf(
				"container %q has readOnlyRootFilesystem, which needs mount namespaces, and this machine does not allow them", c.Name)}
		}
		if asRoot(spec) && mustNotBeRoot(pod, c) {
			return &verdict{Reason: "RunAsNonRoot", Message: fmt.Sprintf(
				"container %q has runAsNonRoot and would run as root, as this node does: set runAsUser, or start the instance as another user", c.Name)}
		}
		if len(c.Command) == 0 {
			return &verdict{Reason: "NoCommand", Message: fmt.Sprintf("container %q (image %q): %v", c.Name, c.Image, errNoCommand)}
		}
	}
	return nil
}

// asRoot tells whether a run has the rights of root.
func asRoot(spec shim.ContainerSpec) bool { return ptr.Deref(spec.UID, int64(os.Geteuid())) == 0 }

func mustNotBeRoot(pod *corev1.Pod, c *corev1.Container) bool {
	must := false
	if sc := pod.Spec.SecurityContext; sc != nil {
		must = ptr.Deref(sc.RunAsNonRoot, must)
	}
	if sc := c.SecurityContext; sc != nil {
		must = ptr.Deref(sc.RunAsNonRoot, must)
	}
	return must
}

// secure takes user, groups and rights from the security contexts; the container's
// come before the pod's. Our own sidecars are programs of this machine: they read
// what any user's program writes.
func secure(pod *corev1.Pod, c *corev1.Container, spec *shim.ContainerSpec) {
	if sc := pod.Spec.SecurityContext; sc != nil {
		spec.UID, spec.GID = sc.RunAsUser, sc.RunAsGroup
		spec.SupplementalGroups = slices.Clone(sc.SupplementalGroups)
		if sc.FSGroup != nil {
			spec.SupplementalGroups = append(spec.SupplementalGroups, *sc.FSGroup)
		}
	}
	sc := c.SecurityContext
	if sc == nil {
		return
	}
	spec.UID, spec.GID = cmp.Or(sc.RunAsUser, spec.UID), cmp.Or(sc.RunAsGroup, spec.GID)
	if c.Name == trainer.Sidecar || c.Name == trainer.SidecarLogger {
		return
	}
	spec.ReadOnly = ptr.Deref(sc.ReadOnlyRootFilesystem, false)
	if sc.Capabilities != nil && asRoot(*spec) { // another user has none
		spec.DropCapabilities = dropped(sc.Capabilities)
	}
}

// dropped are the numbers of the capabilities to drop: those that are named, and
// with ALL those that are not to be added again.
func dropped(c *corev1.Capabilities) (numbers []int) {
	named := func(list []corev1.Capability, want string) bool {
		return slices.ContainsFunc(list, func(name corev1.Capability) bool {
			return strings.TrimPrefix(strings.ToLower(string(name)), "cap_") == want
		})
	}
	for _, known := range capability.ListKnown() {
		if named(c.Drop, known.String()) || named(c.Drop, "all") && !named(c.Add, known.String()) {
			numbers = append(numbers, int(known))
		}
	}
	return numbers
}

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
	next.wakeAt(now.Add(excessRecheck))
	if w.parallelism > 0 {
		return
	}
	_, name, _ := jobOf(w.v.Pod)
	namespace := w.v.Pod.Namespace
	w.begin(ctx, &w.asking, next, "tell how many pods the Job may have", func(ctx context.Context) (func(), error) {
		limit, err := w.cluster.parallelism(ctx, namespace, name)
		if err != nil {
			return nil, err
		}
		return func() { w.parallelism = limit }, nil
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
