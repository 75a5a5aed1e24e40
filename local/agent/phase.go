package agent

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// tally counts the containers of a pod the way that its phase is decided.
type tally struct {
	initPending, initFailed int // regular init containers
	sidecarPending          int // sidecars that have not started yet
	waiting, running        int // sidecars and mains
	unknown                 int
	ended, final, succeeded int // mains: ended; never to restart; with code 0
}

// podPhase is the phase that the kubelet gives a pod with these containers:
// only mains decide; a failed init container that will not be repeated fails
// the pod; a pod whose containers will be restarted is Running. A terminal
// phase is reported only once nothing runs any more, sidecars included, and
// is never taken back.
func podPhase(v *view, s stop, stopping bool) corev1.PodPhase {
	if old := v.Pod.Status.Phase; isTerminal(old) {
		return old
	}
	settled := stopping && !v.anyRunning()
	t := count(v)
	phase := phaseOf(t, v.mainStarted(), settled)
	if settled {
		switch {
		case s.Verdict != nil:
			phase = corev1.PodFailed
		case !isTerminal(phase):
			// Stopped before its mains had all ended by themselves.
			phase = corev1.PodFailed
		}
		return phase
	}
	if isTerminal(phase) {
		if v.mainStarted() {
			return corev1.PodRunning
		}
		return corev1.PodPending
	}
	return phase
}

func phaseOf(t tally, initialized, settled bool) corev1.PodPhase {
	switch {
	case t.initFailed > 0:
		return corev1.PodFailed
	case t.initPending > 0, t.sidecarPending > 0 && !initialized, t.waiting > 0:
		return corev1.PodPending
	case t.running > 0 && t.unknown == 0:
		return corev1.PodRunning
	case t.running > 0 || t.ended == 0 || t.unknown > 0:
		return corev1.PodPending
	case t.ended != t.final && !settled:
		return corev1.PodRunning
	case t.ended == t.succeeded:
		return corev1.PodSucceeded
	default:
		return corev1.PodFailed
	}
}

func count(v *view) tally {
	var t tally
	spec := &v.Pod.Spec
	for i := range spec.InitContainers {
		c := &spec.InitContainers[i]
		r, ok := v.last(c.Name)
		switch {
		case isSidecar(c):
			countSidecar(v, c, &t)
		case !ok || r.running():
			t.initPending++
		case r.failed():
			if !initShouldRestart(spec, c, r.ExitCode) {
				t.initFailed++
			} else {
				t.initPending++
			}
		}
	}
	for i := range spec.Containers {
		c := &spec.Containers[i]
		r, ok := v.last(c.Name)
		switch {
		case !ok:
			t.waiting++
		case r.running():
			t.running++
		default:
			t.ended++
			if r.ExitCode == 0 {
				t.succeeded++
			}
			if !shouldRestart(spec, c, r.ExitCode) {
				t.final++
			}
		}
	}
	return t
}

func countSidecar(v *view, c *corev1.Container, t *tally) {
	r, ok := v.last(c.Name)
	switch {
	case !ok:
		t.sidecarPending++
	case r.running():
		t.running++
		if !v.started(c) {
			t.sidecarPending++
		}
	}
	// A sidecar that has ended says nothing about its pod.
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
