package trial

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestMountImages(t *testing.T) {
	node := func(kubelet, runtime string) corev1.Node {
		return corev1.Node{Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{KubeletVersion: kubelet, ContainerRuntimeVersion: runtime}}}
	}
	old, good := node("v1.35.2", "containerd://1.7.29"), node("v1.36.0", "containerd://2.1.0")
	cordoned := *old.DeepCopy()
	cordoned.Spec.Unschedulable = true
	for name, tc := range map[string]struct {
		nodes []corev1.Node
		want  bool
	}{
		"no nodes":             {nil, false},
		"one that does":        {[]corev1.Node{good}, true},
		"later ones":           {[]corev1.Node{node("v1.37.1-gke.100", "containerd://2.4.2-k3s1"), node("v2.0.0", "containerd://3.0.0")}, true},
		"an old runtime":       {[]corev1.Node{good, node("v1.36.0", "containerd://2.0.9")}, false},
		"an old kubelet":       {[]corev1.Node{good, node("v1.35.9", "containerd://2.1.0")}, false},
		"another runtime":      {[]corev1.Node{node("v1.36.0", "cri-o://1.36.0")}, false},
		"no version":           {[]corev1.Node{node("v1.36.0", "containerd://")}, false},
		"an old one, cordoned": {[]corev1.Node{good, cordoned}, true},
		"all cordoned":         {[]corev1.Node{cordoned}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := mountImages(tc.nodes); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}
