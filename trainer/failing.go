package trainer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// settling is how long a Job has to notice that its last pod has failed for good.
const settling = 5 * time.Second

// Failing says that all pods of a Job have failed, how the last one ended, and that the
// Job pauses before it makes another. Disrupted pods are not the program's failures.
func Failing(pods []corev1.Pod, primaryContainer string, now time.Time) Wait {
	var failed []corev1.Pod
	for _, pod := range pods {
		owner := metav1.GetControllerOf(&pod)
		switch {
		case slices.ContainsFunc(pod.Status.Conditions, disrupted):
		case pod.Status.Phase != corev1.PodFailed || owner == nil || owner.Kind != "Job" || owner.APIVersion != "batch/v1":
			return Wait{}
		default:
			failed = append(failed, pod)
		}
	}
	if len(failed) == 0 {
		return Wait{}
	}
	last := slices.MaxFunc(failed, func(a, b corev1.Pod) int {
		return cmp.Or(endOf(&a).Compare(endOf(&b)), strings.Compare(a.Name, b.Name))
	})
	if now.Sub(endOf(&last)) < settling {
		return Wait{}
	}
	how := Explain([]corev1.Pod{last}, primaryContainer)
	if how == "" {
		how = fmt.Sprintf("pod %s failed", last.Name)
	}
	return Wait{fmt.Sprintf("%d of its pods failed and none runs: %s. The Job makes another after a pause that grows, as often as its backoffLimit allows (6 times unless it is set): set backoffLimit: 0 in the spec of the Job to let the trial fail at once", len(failed), how), Retries, endOf(&last)}
}

// outlasting is how long other containers may take after the program before that is
// worth a word: to upload what it wrote, for example.
const outlasting = time.Minute

// Outlived says that the program of a pod has ended while another container runs on, and
// with it the pod and its Job: a proxy without an end, for example.
func Outlived(pods []corev1.Pod, primaryContainer string, now time.Time) Wait {
	for _, pod := range pods {
		var ended *corev1.ContainerStateTerminated
		var others []string
		for _, s := range pod.Status.ContainerStatuses {
			switch t := s.State.Terminated; {
			case s.Name == primaryContainer && t != nil && (t.ExitCode == 0 || pod.Spec.RestartPolicy == corev1.RestartPolicyNever):
				ended = t
			case s.State.Running != nil:
				others = append(others, s.Name)
			}
		}
		if ended != nil && len(others) > 0 && now.Sub(ended.FinishedAt.Time) >= outlasting {
			return Wait{fmt.Sprintf("container %s of pod %s has exited with code %d, but %s runs on, and the pod ends with its last container: let it end with the program, or make it a sidecar (one of initContainers, with restartPolicy: Always)",
				primaryContainer, pod.Name, ended.ExitCode, strings.Join(others, ", ")), Retries, ended.FinishedAt.Time}
		}
	}
	return Wait{}
}

func disrupted(c corev1.PodCondition) bool {
	return c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue
}

// unstarted reports that a container ended as its program could not be started.
func unstarted(t *corev1.ContainerStateTerminated) bool {
	return t.Reason == "StartError" || t.Reason == "ContainerCannotRun" || t.Reason == "RunContainerError"
}

// endOf is when the last container of a pod ended, or else when the pod began.
func endOf(pod *corev1.Pod) time.Time {
	end := startOf(pod)
	for _, s := range pod.Status.ContainerStatuses {
		if t := s.State.Terminated; t != nil && t.FinishedAt.After(end) {
			end = t.FinishedAt.Time
		}
	}
	return end
}
