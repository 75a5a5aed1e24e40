package agent

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
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
func checkSpec(pod *corev1.Pod) *verdict {
	for _, c := range allContainers(&pod.Spec) {
		if runsAsRoot(pod, c) && mustNotBeRoot(pod, c) {
			return &verdict{Reason: "RunAsNonRoot", Message: fmt.Sprintf(
				"container %q has runAsNonRoot and would run as root, as this node does: set runAsUser, or start the instance as another user", c.Name)}
		}
		if len(c.Command) == 0 {
			return &verdict{Reason: "NoCommand", Message: fmt.Sprintf("container %q (image %q): %v", c.Name, c.Image, errNoCommand)}
		}
	}
	return nil
}

func runsAsRoot(pod *corev1.Pod, c *corev1.Container) bool {
	var spec shim.ContainerSpec
	setUser(pod, c, &spec)
	return ptr.Deref(spec.UID, int64(os.Geteuid())) == 0
}

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

// ignoredFields names what a pod asks for and this node does not do.
func ignoredFields(pod *corev1.Pod) []string {
	ignored := map[string]bool{"hostAliases": len(pod.Spec.HostAliases) > 0}
	for _, c := range allContainers(&pod.Spec) {
		if sc := c.SecurityContext; sc != nil && c.Name != trainer.Sidecar && c.Name != trainer.SidecarLogger {
			ignored["readOnlyRootFilesystem"] = ignored["readOnlyRootFilesystem"] || ptr.Deref(sc.ReadOnlyRootFilesystem, false)
			// An ordinary user has no capabilities to drop.
			ignored["capabilities.drop"] = ignored["capabilities.drop"] || runsAsRoot(pod, c) && sc.Capabilities != nil && len(sc.Capabilities.Drop) > 0
		}
	}
	maps.DeleteFunc(ignored, func(_ string, is bool) bool { return !is })
	return slices.Sorted(maps.Keys(ignored))
}
