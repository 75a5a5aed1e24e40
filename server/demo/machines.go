package demo

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

const (
	gpu        = "nvidia.com/gpu"
	gpusOfNode = 8
)

var nodeNames = []string{"gpu-a", "gpu-b"}

// nodes of the demo have GPUs.
func nodes() (out []corev1.Node) {
	for _, name := range nodeNames {
		n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		n.Status.Allocatable = corev1.ResourceList{gpu: *resource.NewQuantity(gpusOfNode, resource.DecimalSI)}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		out = append(out, n)
	}
	return out
}

// pods of the running trials hold a GPU each, the first ones; the others wait.
func (m *made) pods() (out []corev1.Pod) {
	for _, t := range m.trials {
		if !t.IsRunning() {
			continue
		}
		p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: t.Namespace, Name: t.Name, Labels: map[string]string{v1beta1.LabelExperiment: m.object.Name, v1beta1.LabelTrial: t.Name}}}
		p.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{gpu: *resource.NewQuantity(1, resource.DecimalSI)}}}}
		if node := len(out) / gpusOfNode; node < len(nodeNames) {
			p.Spec.NodeName, p.Status.Phase = nodeNames[node], corev1.PodRunning
		} else {
			p.Status.Phase = corev1.PodPending
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/2 nodes are available: 2 Insufficient " + gpu + "."}}
		}
		out = append(out, p)
	}
	return out
}
