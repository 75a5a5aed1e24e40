package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/vernier-ml/vernier/local/shim"
)

// statusPatch is the strategic merge patch that makes the status of the pod
// with that UID what it is to be. Conditions of others are left alone.
func statusPatch(uid types.UID, status *corev1.PodStatus) ([]byte, error) {
	data, err := json.Marshal(status)
	if err != nil {
		return nil, err
	}
	var fields map[string]any
	if err := json.Unmarshal(data, &fields); err != nil {
		return nil, err
	}
	// A merge keeps what it is not told to drop.
	if conditions, ok := fields["conditions"].([]any); ok {
		for _, c := range conditions {
			condition, ok := c.(map[string]any)
			if !ok {
				continue
			}
			for _, name := range []string{"reason", "message"} {
				if _, ok := condition[name]; !ok {
					condition[name] = nil
				}
			}
		}
	}
	return json.Marshal(map[string]any{"metadata": map[string]any{"uid": uid}, "status": fields})
}

// writeStatus sends a status patch and returns the pod as it is then.
func writeStatus(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod, patch []byte) (*corev1.Pod, error) {
	updated, err := client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil {
		return nil, fmt.Errorf("writing the status of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return updated, nil
}

// deletePod removes the object of a pod whose processes are gone.
func deletePod(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod) error {
	now := int64(0)
	return client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: &now,
		Preconditions:      &metav1.Preconditions{UID: &pod.UID},
	})
}

// newer reports whether a is a later version of an object than b.
func newer(a, b *corev1.Pod) bool {
	x, errA := strconv.ParseUint(a.ResourceVersion, 10, 64)
	y, errB := strconv.ParseUint(b.ResourceVersion, 10, 64)
	return errA != nil || errB != nil || x > y
}

// podPhase is the phase that the kubelet gives a pod with these containers:
// only mains decide, and a pod whose containers will be restarted is Running. A
// terminal phase is reported once nothing runs any more, sidecars included, and
// is never taken back.
func podPhase(v *view, s stop, stopping bool) corev1.PodPhase {
	if old := v.Pod.Status.Phase; isTerminal(old) {
		return old
	}
	if stopping && !v.anyRunning() {
		if s.Verdict == nil && v.eachMain(func(r shim.Run) bool { return r.ExitCode == 0 }) {
			return corev1.PodSucceeded
		}
		return corev1.PodFailed
	}
	if v.eachMain(func(shim.Run) bool { return true }) {
		return corev1.PodRunning
	}
	return corev1.PodPending
}

// eachMain reports whether every main container was started and its newest run
// has the property.
func (v *view) eachMain(holds func(shim.Run) bool) bool {
	return !slices.ContainsFunc(v.Pod.Spec.Containers, func(c corev1.Container) bool {
		r, ok := v.last(c.Name)
		return !ok || !holds(r)
	})
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
			out.PodIP, out.PodIPs = v.PodIP, []corev1.PodIP{{IP: v.PodIP}}
		}
	}
	for _, c := range pointers(v.Pod.Spec.InitContainers) {
		out.InitContainerStatuses = append(out.InitContainerStatuses, containerStatus(v, c, now, stopping))
	}
	for _, c := range pointers(v.Pod.Spec.Containers) {
		out.ContainerStatuses = append(out.ContainerStatuses, containerStatus(v, c, now, stopping))
	}
	out.Conditions = podConditions(v, &out, now)
	return out
}

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
	for _, c := range pointers(v.Pod.Spec.InitContainers) {
		r, ok := v.last(c.Name)
		done := ok && !r.Running() && r.ExitCode == 0
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
	message := s.Message
	if s.Reason != reasonDown {
		message = "The processes of the pod were ended together with the node"
	}
	lost := func(c corev1.Container) bool {
		r, _ := v.last(c.Name)
		return r.Reason == shim.ReasonLost
	}
	if s.Phase != corev1.PodFailed || s.Reason != reasonDown && !slices.ContainsFunc(v.Pod.Spec.Containers, lost) {
		return nil
	}
	return &corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: corev1.PodReasonTerminationByKubelet, Message: message,
	}
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
