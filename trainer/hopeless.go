package trainer

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// ReasonDirectoryHidden is the reason of a pod that the embedded node rejected
// because the collector's directory would hide files of the machine.
const ReasonDirectoryHidden = "DirectoryHidden"

// crashes is how often a collector that does not start is restarted before its
// trial fails: two and a half minutes with Kubernetes' back-off.
const crashes = 4

// Hopeless says in one sentence why a job will never train, although Kubernetes
// would retry forever, or up to its backoffLimit: the collector cannot start, or its
// directory is not empty. It is "" if there is hope. It considers only pods whose
// program has not started.
func Hopeless(pods []corev1.Pod) string {
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
