package trainer

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// unschedulableAdvice says what to do about a message of the scheduler.
func unschedulableAdvice(pod *corev1.Pod, message string) (string, Remedy) {
	if strings.Contains(message, "persistentvolumeclaim") && strings.Contains(message, "not found") {
		return "create the PersistentVolumeClaim, or correct its name in the template", Repair
	}
	if strings.Contains(message, "unbound immediate PersistentVolumeClaims") {
		var claims []string
		for _, v := range pod.Spec.Volumes {
			if v.PersistentVolumeClaim != nil {
				claims = append(claims, v.PersistentVolumeClaim.ClaimName)
			}
		}
		return fmt.Sprintf("a PersistentVolumeClaim (%s) has no volume: create one, or name a StorageClass that does", strings.Join(claims, ", ")), Repair
	}
	switch {
	case strings.Contains(message, "Insufficient"):
	case strings.Contains(message, "node affinity/selector"):
		return "correct nodeSelector and affinity in the template, or label a node as they ask", Room
	case strings.Contains(message, "untolerated taint"):
		return "give the template tolerations for a node's taints, or add nodes without them", Room
	}
	return "request less, run fewer trials at once, or add nodes", Room
}
