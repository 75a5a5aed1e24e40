package trainer

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// ReasonDirectoryHidden is the reason of a pod that the embedded node rejected
// because the collector's directory would hide files of the machine.
const ReasonDirectoryHidden = "DirectoryHidden"

// crashes is how often a collector that does not start is restarted before its
// trial fails: two and a half minutes with Kubernetes' back-off.
const crashes = 4

// evictions is how often the pods of a job are replaced after their nodes ran short, for
// each that there is at once: as a Job's default backoffLimit has it, which does not count
// them.
const evictions = 6

// Hopeless says in one sentence why a job will never train, although Kubernetes
// would retry forever, or up to its backoffLimit: the collector cannot start, its
// directory is not empty, or pod after pod takes more than its node has. It is "" if
// there is hope. Pods are in the order in which they were made.
func Hopeless(pods []corev1.Pod) string {
	if why := evicted(pods); why != "" {
		return why
	}
	for i := range pods {
		pod := &pods[i]
		if pod.Status.Phase == corev1.PodFailed && pod.Status.Reason == ReasonDirectoryHidden {
			return podCause(pod)
		}
		if pod.Status.Phase != corev1.PodPending {
			continue
		}
		for _, s := range pod.Status.InitContainerStatuses {
			w := s.State.Waiting
			if w == nil || !slices.Contains([]string{SidecarLogger, Sidecar, InstallContainer}, s.Name) {
				continue
			}
			if w.Reason == "CrashLoopBackOff" && s.RestartCount >= crashes {
				if text := waitingCause(pod, s, w); text != "" {
					return "The metrics collector does not start: " + text
				}
			}
		}
	}
	return ""
}

// evicted says that nodes have evicted too many of a job's pods because they ran short of
// memory or disk. Pods that are drained or preempted are deleted, and not counted. A trial
// that trains at the moment is left alone: its node may have room this time.
func evicted(pods []corev1.Pod) string {
	var last *corev1.Pod
	n := 0
	for i := range pods {
		p := &pods[i]
		if p.Status.Phase == corev1.PodRunning {
			return ""
		}
		if p.Status.Phase == corev1.PodFailed && p.Status.Reason == "Evicted" && slices.ContainsFunc(p.Status.Conditions, disrupted) {
			n, last = n+1, p
		}
	}
	if n <= evictions*max(1, len(pods)-n) {
		return ""
	}
	return fmt.Sprintf("%d of its pods were evicted, one after the other. The last: %s", n, podCause(last))
}
