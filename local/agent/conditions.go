package agent

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// podConditions are the conditions that the node owns, in the kubelet's
// order. A condition keeps its transition time while its status stays.
func podConditions(v *view, s *corev1.PodStatus, now time.Time) []corev1.PodCondition {
	containersReady := containersReadyCondition(v, s)
	ready := containersReady
	ready.Type = corev1.PodReady
	if ready.Status == corev1.ConditionTrue {
		ready = readyWithGates(v.Pod)
	}
	conditions := []corev1.PodCondition{
		{Type: corev1.PodReadyToStartContainers, Status: conditionOf(v.SandboxReady && (!isTerminal(s.Phase) || v.anyRunning()))},
		initializedCondition(v, s),
		ready,
		containersReady,
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue},
	}
	if disrupted := disruptedCondition(v, s); disrupted != nil {
		conditions = append(conditions, *disrupted)
	}
	for i := range conditions {
		c := &conditions[i]
		c.ObservedGeneration = v.Pod.Generation
		c.LastTransitionTime = metav1.NewTime(now)
		if old := findCondition(v.Conditions, c.Type); old != nil && old.Status == c.Status {
			c.LastTransitionTime = old.LastTransitionTime
		}
	}
	return conditions
}

// condition is True when nothing is missing; otherwise it names what is.
func condition(t corev1.PodConditionType, missing []string, reason, message string) corev1.PodCondition {
	if len(missing) == 0 {
		return corev1.PodCondition{Type: t, Status: corev1.ConditionTrue}
	}
	return corev1.PodCondition{Type: t, Status: corev1.ConditionFalse, Reason: reason,
		Message: fmt.Sprintf("%s: [%s]", message, strings.Join(missing, " "))}
}

func initializedCondition(v *view, s *corev1.PodStatus) corev1.PodCondition {
	if s.Phase == corev1.PodSucceeded {
		return corev1.PodCondition{Type: corev1.PodInitialized, Status: corev1.ConditionTrue, Reason: "PodCompleted"}
	}
	var incomplete []string
	for i := range v.Pod.Spec.InitContainers {
		c := &v.Pod.Spec.InitContainers[i]
		r, ok := v.last(c.Name)
		done := ok && !r.running() && r.ExitCode == 0
		if isSidecar(c) {
			done = v.started(c)
		}
		if !done && !v.mainStarted() {
			incomplete = append(incomplete, c.Name)
		}
	}
	return condition(corev1.PodInitialized, incomplete, "ContainersNotInitialized", "containers with incomplete status")
}

func containersReadyCondition(v *view, s *corev1.PodStatus) corev1.PodCondition {
	switch s.Phase {
	case corev1.PodSucceeded:
		return corev1.PodCondition{Type: corev1.ContainersReady, Status: corev1.ConditionFalse, Reason: "PodCompleted"}
	case corev1.PodFailed:
		return corev1.PodCondition{Type: corev1.ContainersReady, Status: corev1.ConditionFalse, Reason: "PodFailed"}
	}
	var unready []string
	for i, c := range v.Pod.Spec.InitContainers {
		if isSidecar(&c) && !s.InitContainerStatuses[i].Ready {
			unready = append(unready, c.Name)
		}
	}
	for _, c := range s.ContainerStatuses {
		if !c.Ready {
			unready = append(unready, c.Name)
		}
	}
	return condition(corev1.ContainersReady, unready, "ContainersNotReady", "containers with unready status")
}

func readyWithGates(pod *corev1.Pod) corev1.PodCondition {
	var missing []string
	for _, gate := range pod.Spec.ReadinessGates {
		if c := findCondition(pod.Status.Conditions, gate.ConditionType); c == nil || c.Status != corev1.ConditionTrue {
			missing = append(missing, string(gate.ConditionType))
		}
	}
	return condition(corev1.PodReady, missing, "ReadinessGatesNotReady", "readiness gates that are not True")
}

// disruptedCondition marks a pod that failed because the node went down or lost
// its processes, with the condition that a kubelet sets when it ends pods at
// shutdown. It tells a job controller that this was no fault of the program.
func disruptedCondition(v *view, s *corev1.PodStatus) *corev1.PodCondition {
	if s.Phase != corev1.PodFailed {
		return nil
	}
	if s.Reason == reasonDown {
		return &corev1.PodCondition{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: corev1.PodReasonTerminationByKubelet, Message: s.Message,
		}
	}
	for i := range v.Pod.Spec.Containers {
		if r, ok := v.last(v.Pod.Spec.Containers[i].Name); ok && r.Reason == reasonLost {
			return &corev1.PodCondition{
				Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: corev1.PodReasonTerminationByKubelet,
				Message: "The processes of the pod were ended together with the node",
			}
		}
	}
	return nil
}

func findCondition(conditions []corev1.PodCondition, t corev1.PodConditionType) *corev1.PodCondition {
	if i := slices.IndexFunc(conditions, func(c corev1.PodCondition) bool { return c.Type == t }); i >= 0 {
		return &conditions[i]
	}
	return nil
}

func conditionOf(b bool) corev1.ConditionStatus {
	if b {
		return corev1.ConditionTrue
	}
	return corev1.ConditionFalse
}
