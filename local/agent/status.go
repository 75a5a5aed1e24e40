package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
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
