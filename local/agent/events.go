package agent

import (
	corev1 "k8s.io/api/core/v1"
)

// event tells of something that happened to the pod. A pod that starts and
// ends well causes none: the API's writes are for what somebody must read.
func (w *worker) event(kind, reason, message string) {
	const most = 1000 // the API allows 1024 bytes
	if len(message) > most {
		message = message[:most] + "..."
	}
	w.recorder.Event(podReference(w.v.Pod), kind, reason, message)
}

func podReference(pod *corev1.Pod) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		Kind: "Pod", APIVersion: "v1", Namespace: pod.Namespace, Name: pod.Name,
		UID: pod.UID, ResourceVersion: pod.ResourceVersion,
	}
}
