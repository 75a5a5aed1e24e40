package agent

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"
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
		if len(c.Command) == 0 {
			return &verdict{Reason: "NoCommand", Message: fmt.Sprintf("container %q (image %q): %v", c.Name, c.Image, errNoCommand)}
		}
	}
	return nil
}
