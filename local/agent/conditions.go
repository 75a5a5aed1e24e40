package agent

import (
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// podConditions are the conditions that the node owns, in the kubelet's
// order. A condition keeps its transition time while its status stays.
func podConditions(v *view, s *v1.PodStatus, now time.Time) []v1.PodCondition {
	containersReady := containersReadyCondition(v, s)
	ready := containersReady
	ready.Type = v1.PodReady
	if ready.Status == v1.ConditionTrue {
		ready = readyWithGates(v.Pod, ready)
	}
	conditions := []v1.PodCondition{
		{Type: v1.PodReadyToStartContainers, Status: conditionOf(v.SandboxReady && !(isTerminal(s.Phase) && !v.anyRunning()))},
		initializedCondition(v, s),
		ready,
		containersReady,
		{Type: v1.PodScheduled, Status: v1.ConditionTrue},
	}
	if lost := lostCondition(v, s); lost != nil {
		conditions = append(conditions, *lost)
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

func initializedCondition(v *view, s *v1.PodStatus) v1.PodCondition {
	cond := v1.PodCondition{Type: v1.PodInitialized, Status: v1.ConditionTrue}
	if s.Phase == v1.PodSucceeded {
		cond.Reason = "PodCompleted"
		return cond
	}
	if v.mainStarted() {
		return cond
	}
	var incomplete []string
	for i := range v.Pod.Spec.InitContainers {
		c := &v.Pod.Spec.InitContainers[i]
		done := v.started(c)
		if !isSidecar(c) {
			r, ok := v.last(c.Name)
			done = ok && !r.running() && r.ExitCode == 0
		}
		if !done {
			incomplete = append(incomplete, c.Name)
		}
	}
	if len(incomplete) > 0 {
		cond.Status, cond.Reason = v1.ConditionFalse, "ContainersNotInitialized"
		cond.Message = fmt.Sprintf("containers with incomplete status: [%s]", strings.Join(incomplete, " "))
	}
	return cond
}

func containersReadyCondition(v *view, s *v1.PodStatus) v1.PodCondition {
	cond := v1.PodCondition{Type: v1.ContainersReady, Status: v1.ConditionFalse}
	switch s.Phase {
	case v1.PodSucceeded:
		cond.Reason = "PodCompleted"
		return cond
	case v1.PodFailed:
		cond.Reason = "PodFailed"
		return cond
	}
	var unready []string
	for i, c := range v.Pod.Spec.InitContainers {
		if isSidecar(&c) && !s.InitContainerStatuses[i].Ready {
			unready = append(unready, c.Name)
		}
	}
	for i, c := range v.Pod.Spec.Containers {
		if !s.ContainerStatuses[i].Ready {
			unready = append(unready, c.Name)
		}
	}
	if len(unready) > 0 {
		cond.Reason = "ContainersNotReady"
		cond.Message = fmt.Sprintf("containers with unready status: [%s]", strings.Join(unready, " "))
		return cond
	}
	cond.Status = v1.ConditionTrue
	return cond
}

func readyWithGates(pod *v1.Pod, ready v1.PodCondition) v1.PodCondition {
	var missing []string
	for _, gate := range pod.Spec.ReadinessGates {
		if c := findCondition(pod.Status.Conditions, gate.ConditionType); c == nil || c.Status != v1.ConditionTrue {
			missing = append(missing, string(gate.ConditionType))
		}
	}
	if len(missing) > 0 {
		ready.Status, ready.Reason = v1.ConditionFalse, "ReadinessGatesNotReady"
		ready.Message = fmt.Sprintf("readiness gates that are not True: [%s]", strings.Join(missing, " "))
	}
	return ready
}

// lostCondition marks a pod that failed because the node lost its processes,
// with the condition that a kubelet sets when it ends pods at shutdown. It
// tells a job controller that this was no fault of the program.
func lostCondition(v *view, s *v1.PodStatus) *v1.PodCondition {
	if s.Phase != v1.PodFailed {
		return nil
	}
	for i := range v.Pod.Spec.Containers {
		if r, ok := v.last(v.Pod.Spec.Containers[i].Name); ok && r.Reason == reasonLost {
			return &v1.PodCondition{
				Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Reason: v1.PodReasonTerminationByKubelet,
				Message: "The processes of the pod were ended together with the node",
			}
		}
	}
	return nil
}

func findCondition(conditions []v1.PodCondition, t v1.PodConditionType) *v1.PodCondition {
	if i := slices.IndexFunc(conditions, func(c v1.PodCondition) bool { return c.Type == t }); i >= 0 {
		return &conditions[i]
	}
	return nil
}

func conditionOf(b bool) v1.ConditionStatus {
	if b {
		return v1.ConditionTrue
	}
	return v1.ConditionFalse
}
