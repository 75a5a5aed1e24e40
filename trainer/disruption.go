package trainer

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// rerunDisrupted gives a batch/v1 Job, or each Job of a JobSet, a policy that ignores
// the failure of a pod with the condition DisruptionTarget, so that another pod
// replaces it. A Job or JobSet that has its own policy keeps it. Kubernetes accepts the
// policy only with the restart policy Never and if pods are replaced after their end;
// other Jobs stay unchanged.
func rerunDisrupted(work *unstructured.Unstructured) {
	switch gvk := work.GroupVersionKind(); {
	case gvk == batchv1.SchemeGroupVersion.WithKind("Job"):
		ignoreDisruption(work.Object["spec"])
	case gvk.Group == "jobset.x-k8s.io" && gvk.Kind == "JobSet":
		if at(work.Object, "spec", "failurePolicy") != nil {
			return // it says what a lost pod does: often all start again, since they train together
		}
		jobs, _ := at(work.Object, "spec", "replicatedJobs").([]any)
		for _, job := range jobs {
			ignoreDisruption(at(job, "template", "spec"))
		}
	}
}

func ignoreDisruption(job any) {
	spec, ok := job.(map[string]any)
	if !ok || spec["podFailurePolicy"] != nil || spec["managedBy"] != nil {
		return
	}
	if at(spec, "template", "spec", "restartPolicy") != string(corev1.RestartPolicyNever) {
		return
	}
	if p := spec["podReplacementPolicy"]; p != nil && p != string(batchv1.Failed) {
		return
	}
	spec["podFailurePolicy"] = map[string]any{"rules": []any{map[string]any{
		"action": string(batchv1.PodFailurePolicyActionIgnore),
		"onPodConditions": []any{map[string]any{
			"type": string(corev1.DisruptionTarget), "status": string(corev1.ConditionTrue),
		}},
	}}}
}
