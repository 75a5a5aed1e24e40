package trainer

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/component-helpers/resource"
)

// Together are the templates of a job's pods, one for each pod, where the pods find each
// other by name and so need to run at the same time. It is nil for a job of one pod at a
// time, of pods that have no names, and of a kind that does not show its templates.
func Together(job *unstructured.Unstructured, kind Kind) (pods []corev1.PodTemplateSpec) {
	replicated, ok := kind.(Replicated)
	if !ok {
		return nil
	}
	all, err := replicated.Replicas(job)
	if err != nil {
		return nil
	}
	roles, err := kind.Roles(job)
	if err != nil {
		return nil
	}
	for _, replicas := range all {
		i := slices.IndexFunc(roles, func(r Role) bool {
			return len(r.TemplatePath) >= len(replicas.Path) && slices.Equal(r.TemplatePath[:len(replicas.Path)], replicas.Path)
		})
		if i < 0 || replicas.NoHosts != "" {
			return nil
		}
		tpl, err := Template(job, roles[i])
		var pod corev1.PodTemplateSpec
		if err != nil || runtime.DefaultUnstructuredConverter.FromUnstructured(tpl, &pod) != nil {
			return nil
		}
		n := min(podsAtOnce(job, roles[i].TemplatePath), maxHosts)
		pods = append(pods, slices.Repeat([]corev1.PodTemplateSpec{pod}, n)...)
	}
	if len(pods) < 2 {
		return nil
	}
	return pods
}

// Requests are those of a pod, with limits for the requests that are not given, as the
// API server has them.
func Requests(pod corev1.PodSpec) corev1.ResourceList {
	pod = *pod.DeepCopy()
	for _, containers := range [][]corev1.Container{pod.Containers, pod.InitContainers} {
		for i := range containers {
			r := &containers[i].Resources
			requests := corev1.ResourceList{}
			maps.Copy(requests, r.Limits)
			maps.Copy(requests, r.Requests)
			r.Requests = requests
		}
	}
	return resource.PodRequests(&corev1.Pod{Spec: pod}, resource.PodResourcesOptions{})
}
