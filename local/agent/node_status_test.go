package agent

import (
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func TestANodeOffersNoGPUsThatAnEarlierAgentHad(t *testing.T) {
	client := fake.NewClientset()
	register := func(gpus corev1.ResourceList) corev1.NodeStatus {
		t.Helper()
		capacity, err := capacityOf(Config{CPU: resource.MustParse("4"), Memory: resource.MustParse("8Gi")}, gpus)
		if err != nil {
			t.Fatal(err)
		}
		n := &node{client: client, name: "local", hostIP: "127.0.0.1", capacity: capacity, network: &network{}, log: logr.Discard()}
		if err := n.register(t.Context()); err != nil {
			t.Fatal(err)
		}
		got, err := client.CoreV1().Nodes().Get(t.Context(), "local", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return got.Status
	}
	had := register(corev1.ResourceList{resourceGPU: resource.MustParse("2"), resourceMIG + "1g.5gb": resource.MustParse("7")})
	if q := had.Allocatable[resourceGPU]; q.Value() != 2 {
		t.Fatalf("allocatable %v, want 2 GPUs", had.Allocatable)
	}
	has := register(nil)
	for _, name := range []corev1.ResourceName{resourceGPU, resourceMIG + "1g.5gb"} {
		if q := has.Allocatable[name]; !q.IsZero() {
			t.Errorf("%s: %s are still allocatable, and this agent has none", name, q.String())
		}
		if q := has.Capacity[name]; !q.IsZero() {
			t.Errorf("%s: the capacity is still %s, and this agent has none", name, q.String())
		}
	}
	if q := has.Allocatable[corev1.ResourceCPU]; q.Value() != 4 {
		t.Errorf("allocatable %v, want 4 CPUs", has.Allocatable)
	}
}
