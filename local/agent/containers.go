package agent

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vernier-ml/vernier/local/shim"
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
	runs := v.container(c.Name).Runs
	if len(runs) == 0 {
		out.ImageID = ""
		out.State.Waiting = waitingState(v, c)
		return out
	}
	r := runs[len(runs)-1]
	out.RestartCount = int32(r.Run)
	out.ContainerID = containerID(v.Pod, c.Name, r.Run)
	if len(runs) > 1 {
		out.LastTerminationState.Terminated = terminatedState(v.Pod, c, runs[len(runs)-2])
	}
	if r.Running() {
		out.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(r.StartedAt)}
		out.Ready = v.ready(c)
		if isRegularInit(&v.Pod.Spec, c) {
			out.Ready = false
		}
		return out
	}
	out.State.Terminated = terminatedState(v.Pod, c, r)
	out.Ready = isRegularInit(&v.Pod.Spec, c) && r.ExitCode == 0
	if again := restartWait(v, c, r, now, stopping); again != nil {
		out.LastTerminationState.Terminated = out.State.Terminated
		out.State = corev1.ContainerState{Waiting: again}
	}
	return out
}

// waitingState is the state of a container that was never started.
func waitingState(v *view, c *corev1.Container) *corev1.ContainerStateWaiting {
	if w := v.container(c.Name).Wait; w != nil {
		return w
	}
	if len(v.Pod.Spec.InitContainers) > 0 {
		return &corev1.ContainerStateWaiting{Reason: "PodInitializing"}
	}
	return &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}
}

// restartWait is the waiting state of a container that has ended and is kept
// from its next start, nil for any other.
func restartWait(v *view, c *corev1.Container, r shim.Run, now time.Time, stopping bool) *corev1.ContainerStateWaiting {
	if stopping || !v.restarts(c, r) {
		return nil
	}
	if w := v.container(c.Name).Wait; w != nil {
		return w
	}
	delay := restartDelay(v.container(c.Name).Runs)
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
func (v *view) restarts(c *corev1.Container, r shim.Run) bool {
	if isRegularInit(&v.Pod.Spec, c) && r.ExitCode == 0 {
		return false
	}
	return shouldRestart(&v.Pod.Spec, c, int32(r.ExitCode))
}

// isRegularInit tells init containers that are no sidecars.
func isRegularInit(spec *corev1.PodSpec, c *corev1.Container) bool {
	return !isSidecar(c) && slices.ContainsFunc(spec.InitContainers, func(i corev1.Container) bool { return i.Name == c.Name })
}

func terminatedState(pod *corev1.Pod, c *corev1.Container, r shim.Run) *corev1.ContainerStateTerminated {
	t := &corev1.ContainerStateTerminated{
		ExitCode:    int32(r.ExitCode),
		Signal:      int32(r.Signal),
		Reason:      r.Reason,
		Message:     r.Message,
		StartedAt:   metav1.NewTime(r.StartedAt),
		FinishedAt:  metav1.NewTime(r.FinishedAt),
		ContainerID: containerID(pod, c.Name, r.Run),
	}
	if t.Reason == "" {
		t.Reason = shim.ReasonError
		if r.ExitCode == 0 {
			t.Reason = shim.ReasonCompleted
		}
	}
	return t
}

func ptrTime(t time.Time) *metav1.Time {
	m := metav1.NewTime(t)
	return &m
}

// Restart back-off as the kubelet has it: the first restart is immediate, the
// next waits 10 s after the exit, then twice as long each time up to 300 s. A
// run of more than 10 minutes starts it anew.
const (
	backoffFirst = 10 * time.Second
	backoffMax   = 300 * time.Second
	backoffReset = 10 * time.Minute
)

// restartDelay is the time between the end of the newest run and the next
// start. It is derived from the runs alone, so it survives the agent. Where the
// oldest runs are no longer known, they count as short ones.
func restartDelay(runs []shim.Run) time.Duration {
	restarts := 0 // since the last run that was long enough
	for i, r := range runs {
		switch {
		case r.Running():
		case r.FinishedAt.Sub(r.StartedAt) > backoffReset:
			restarts = 0
		case i == 0:
			restarts = r.Run
		default:
			restarts++
		}
	}
	if restarts == 0 {
		return 0
	}
	return min(backoffFirst<<min(restarts-1, 8), backoffMax)
}

// shouldRestart reports whether a container that ended with the exit code is
// to be started again under the rules of the container and its pod.
func shouldRestart(spec *corev1.PodSpec, c *corev1.Container, exitCode int32) bool {
	if isSidecar(c) {
		return true
	}
	for i := range c.RestartPolicyRules {
		rule := &c.RestartPolicyRules[i]
		if rule.ExitCodes != nil && ruleMatches(rule.ExitCodes, exitCode) {
			return rule.Action == corev1.ContainerRestartRuleActionRestart
		}
	}
	if c.RestartPolicy != nil {
		return policyRestarts(corev1.RestartPolicy(*c.RestartPolicy), exitCode)
	}
	return policyRestarts(spec.RestartPolicy, exitCode)
}

func ruleMatches(rule *corev1.ContainerRestartRuleOnExitCodes, exitCode int32) bool {
	in := slices.Contains(rule.Values, exitCode)
	if rule.Operator == corev1.ContainerRestartRuleOnExitCodesOpNotIn {
		return !in
	}
	return in
}

func policyRestarts(policy corev1.RestartPolicy, exitCode int32) bool {
	switch policy {
	case corev1.RestartPolicyNever:
		return false
	case corev1.RestartPolicyOnFailure:
		return exitCode != 0
	default:
		return true
	}
}
