package agent

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// podPhase is the phase that the kubelet gives a pod with these containers:
// only mains decide, and a pod whose containers will be restarted is Running. A
// terminal phase is reported once nothing runs any more, sidecars included, and
// is never taken back.
func podPhase(v *view, s stop, stopping bool) corev1.PodPhase {
	if old := v.Pod.Status.Phase; isTerminal(old) {
		return old
	}
	if stopping && !v.anyRunning() {
		if s.Verdict == nil && v.eachMain(func(r run) bool { return r.ExitCode == 0 }) {
			return corev1.PodSucceeded
		}
		return corev1.PodFailed
	}
	if v.eachMain(func(run) bool { return true }) {
		return corev1.PodRunning
	}
	return corev1.PodPending
}

// eachMain reports whether every main container was started and its newest run
// has the property.
func (v *view) eachMain(holds func(run) bool) bool {
	for i := range v.Pod.Spec.Containers {
		if r, ok := v.last(v.Pod.Spec.Containers[i].Name); !ok || !holds(r) {
			return false
		}
	}
	return true
}

func isTerminal(p corev1.PodPhase) bool { return p == corev1.PodSucceeded || p == corev1.PodFailed }

// podStatus is the whole status that the node reports for a pod. Conditions
// that others own are not in it.
func podStatus(v *view, now time.Time) corev1.PodStatus {
	s, stopping := podStop(v, now)
	out := corev1.PodStatus{
		ObservedGeneration: v.Pod.Generation,
		Phase:              podPhase(v, s, stopping),
		QOSClass:           v.Pod.Status.QOSClass,
		Reason:             v.Pod.Status.Reason,
		Message:            v.Pod.Status.Message,
	}
	if s.Verdict != nil && out.Phase == corev1.PodFailed && !isTerminal(v.Pod.Status.Phase) {
		out.Reason, out.Message = s.Verdict.Reason, s.Verdict.Message
	}
	if !v.StartTime.IsZero() {
		out.StartTime = ptrTime(v.StartTime)
	}
	if v.HostIP != "" {
		out.HostIP, out.HostIPs = v.HostIP, []corev1.HostIP{{IP: v.HostIP}}
		if v.SandboxReady {
			out.PodIP, out.PodIPs = v.HostIP, []corev1.PodIP{{IP: v.HostIP}}
		}
	}
	spec := &v.Pod.Spec
	for i := range spec.InitContainers {
		out.InitContainerStatuses = append(out.InitContainerStatuses, containerStatus(v, &spec.InitContainers[i], now, stopping))
	}
	for i := range spec.Containers {
		out.ContainerStatuses = append(out.ContainerStatuses, containerStatus(v, &spec.Containers[i], now, stopping))
	}
	out.Conditions = podConditions(v, &out, now)
	return out
}
