package trainer

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// GPUs is how many GPUs the pods of a job ask for, all that run at the same time
// together. A part of a GPU (MIG) counts as one. Pods that the job does not show, as those
// of a Workflow, count as none.
func GPUs(job *unstructured.Unstructured, kind Kind) (sum int) {
	roles, err := kind.Roles(job)
	if err != nil {
		return gpusOfNodes(job, kind)
	}
	for _, r := range roles {
		var pod corev1.PodTemplateSpec
		tpl, err := Template(job, r)
		if err == nil && runtime.DefaultUnstructuredConverter.FromUnstructured(tpl, &pod) == nil {
			sum += podsAtOnce(job, r.TemplatePath) * gpus(pod.Spec)
		}
	}
	return sum
}

// gpusOfNodes are those of a TrainJob, whose nodes have resources and no template.
func gpusOfNodes(job *unstructured.Unstructured, kind Kind) (sum int) {
	replicated, ok := kind.(Replicated)
	if !ok {
		return 0
	}
	all, err := replicated.Replicas(job)
	if err != nil {
		return 0
	}
	for _, r := range all {
		var node corev1.Container
		has, _ := at(job.Object, under(r.Path, "resourcesPerNode")...).(map[string]any)
		if runtime.DefaultUnstructuredConverter.FromUnstructured(has, &node.Resources) == nil {
			sum += max(1, r.Count) * gpus(corev1.PodSpec{Containers: []corev1.Container{node}})
		}
	}
	return sum
}

// podsAtOnce is how many pods are made of a template, by what the objects around it say.
// A Job with more completions than parallelism makes the others later.
func podsAtOnce(job *unstructured.Unstructured, template []string) int {
	n := int64(1)
	for i := range template {
		around, _ := at(job.Object, template[:i]...).(map[string]any)
		number := func(name string, otherwise int64) int64 {
			if v, found, err := unstructured.NestedInt64(around, name); found && err == nil {
				return v
			}
			return otherwise
		}
		parallel := number("parallelism", 1)
		n *= max(number("replicas", 1), number("minReplicas", 0)) * max(1, number("numOfHosts", 1)) * min(parallel, number("completions", parallel))
	}
	return int(max(0, n))
}

func gpus(pod corev1.PodSpec) (n int) {
	for name, q := range Requests(pod) {
		if strings.HasSuffix(string(name), "/gpu") || strings.HasPrefix(string(name), "nvidia.com/mig-") {
			n += int(q.Value())
		}
	}
	return n
}
