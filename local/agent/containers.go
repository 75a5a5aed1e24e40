package agent

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// containerID names one run of one container: vernier://<pod uid>/<name>/<run>.
func containerID(pod *corev1.Pod, name string, number int) string {
	return fmt.Sprintf("vernier://%s/%s/%d", pod.UID, name, number)
}

// containerStatus is the status of one container, init or main.
func containerStatus(v *view, c *corev1.Container, now time.Time, stopping bool) corev1.ContainerStatus {
	out := corev1.ContainerStatus{Name: c.Name, Image: c.Image, ImageID: c.Image}
	started := v.started(c)
	out.Started = &started
	runs := v.Runs[c.Name]
	if len(runs) == 0 {
		out.ImageID = ""
		out.State.Waiting = waitingState(v, c)
		return out
	}
	r := runs[len(runs)-1]
	out.RestartCount = int32(r.Number)
	out.ContainerID = containerID(v.Pod, c.Name, r.Number)
	if len(runs) > 1 {
		out.LastTerminationState.Terminated = terminatedState(v.Pod, c, runs[len(runs)-2])
	}
	if r.running() {
		out.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(r.StartedAt)}
		out.Ready = v.ready(c)
		if isRegularInit(v, c) {
			out.Ready = false
		}
		return out
	}
	out.State.Terminated = terminatedState(v.Pod, c, r)
	out.Ready = isRegularInit(v, c) && r.ExitCode == 0
	if again := restartWait(v, c, r, now, stopping); again != nil {
		out.LastTerminationState.Terminated = out.State.Terminated
		out.State = corev1.ContainerState{Waiting: again}
	}
	return out
}

// waitingState is the state of a container that was never started.
func waitingState(v *view, c *corev1.Container) *corev1.ContainerStateWaiting {
	if w, ok := v.Waits[c.Name]; ok {
		return &corev1.ContainerStateWaiting{Reason: w.Reason, Message: w.Message}
	}
	if len(v.Pod.Spec.InitContainers) > 0 {
		return &corev1.ContainerStateWaiting{Reason: "PodInitializing"}
	}
	return &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}
}

// restartWait is the waiting state of a container that has ended and is kept
// from its next start, nil for any other.
func restartWait(v *view, c *corev1.Container, r run, now time.Time, stopping bool) *corev1.ContainerStateWaiting {
	if stopping || !v.restarts(c, r) {
		return nil
	}
	if w, ok := v.Waits[c.Name]; ok {
		return &corev1.ContainerStateWaiting{Reason: w.Reason, Message: w.Message}
	}
	delay := restartDelay(v.Runs[c.Name])
	if !now.Before(r.FinishedAt.Add(delay)) {
		return nil
	}
	return &corev1.ContainerStateWaiting{
		Reason: "CrashLoopBackOff",
		Message: fmt.Sprintf("back-off %s restarting failed container=%s pod=%s_%s(%s)",
			delay, c.Name, v.Pod.Name, v.Pod.Namespace, v.Pod.UID),
	}
}

// restarts reports whether a container of the pod is to run again after r.
func (v *view) restarts(c *corev1.Container, r run) bool {
	if isRegularInit(v, c) && r.ExitCode == 0 {
		return false
	}
	return shouldRestart(&v.Pod.Spec, c, r.ExitCode)
}

func isRegularInit(v *view, c *corev1.Container) bool {
	return !isSidecar(c) && slices.ContainsFunc(v.Pod.Spec.InitContainers, func(i corev1.Container) bool { return i.Name == c.Name })
}

func terminatedState(pod *corev1.Pod, c *corev1.Container, r run) *corev1.ContainerStateTerminated {
	t := &corev1.ContainerStateTerminated{
		ExitCode:    r.ExitCode,
		Signal:      r.Signal,
		Reason:      r.Reason,
		Message:     r.Message,
		StartedAt:   metav1.NewTime(r.StartedAt),
		FinishedAt:  metav1.NewTime(r.FinishedAt),
		ContainerID: containerID(pod, c.Name, r.Number),
	}
	if t.Reason == "" {
		t.Reason = reasonError
		if r.ExitCode == 0 {
			t.Reason = reasonCompleted
		}
	}
	return t
}

func ptrTime(t time.Time) *metav1.Time {
	m := metav1.NewTime(t)
	return &m
}
