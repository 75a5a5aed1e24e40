package trial

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

const gpu = "nvidia.com/gpu"

func list(cpu, gpus string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), gpu: resource.MustParse(gpus)}
}

func TestAGangIsPlacedWhole(t *testing.T) {
	tests := map[string]struct {
		nodes nodes
		gang  gang
		short string
	}{
		"all fit on one node":                 {nodes{"a": list("4", "2")}, gang{list("1", "1"), list("1", "1")}, ""},
		"each fits, but not all":              {nodes{"a": list("4", "2")}, gang{list("1", "1"), list("1", "1"), list("1", "1")}, gpu},
		"all fit on two nodes":                {nodes{"a": list("4", "1"), "b": list("4", "1")}, gang{list("1", "1"), list("1", "1")}, ""},
		"a pod is not spread over two nodes":  {nodes{"a": list("4", "1"), "b": list("4", "1")}, gang{list("1", "2")}, gpu},
		"what a node does not have":           {nodes{"a": {corev1.ResourceCPU: resource.MustParse("4")}}, gang{list("1", "1")}, gpu},
		"storage is not accounted for":        {nodes{"a": list("4", "1")}, gang{{corev1.ResourceEphemeralStorage: resource.MustParse("1Ti")}}, ""},
		"there is no node":                    {nodes{}, gang{list("1", "0")}, "no node"},
		"what is short is named, also if two": {nodes{"a": list("1", "1")}, gang{list("2", "2")}, "cpu, " + gpu},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			short := tc.nodes.place(tc.gang)
			if (short == "") != (tc.short == "") || !strings.Contains(short, tc.short) {
				t.Errorf("short of %q, want %q", short, tc.short)
			}
		})
	}
}

// ranks is a PyTorchJob of some pods with a GPU each.
func ranks(t *testing.T, pods int) *unstructured.Unstructured {
	t.Helper()
	job := &unstructured.Unstructured{}
	text := fmt.Sprintf(`{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: j, namespace: ns}, spec: {pytorchReplicaSpecs: {
      Master: {replicas: 1, template: &t {spec: {containers: [{name: pytorch, image: i, resources: {limits: {nvidia.com/gpu: 1}, requests: {cpu: 1}}}]}}},
      Worker: {replicas: %d, template: *t}}}}`, pods-1)
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = job.UnmarshalJSON(raw)
	}
	if err != nil {
		t.Fatal(err)
	}
	return job
}

// asking is a trial that was made some seconds after noon.
func asking(name string, after int) *v1beta1.Trial {
	return &v1beta1.Trial{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(noon.Add(time.Duration(after) * time.Second))}}
}

func TestJobsOfSeveralPodsWaitForRoom(t *testing.T) {
	first, second, third := asking("first", 0), asking("second", 1), asking("third", 2)
	b := newBench(t, first)
	raw, err := ranks(t, 2).MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	second.Spec.RunSpec = &runtime.RawExtension{Raw: raw}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: corev1.NodeStatus{Allocatable: list("8", "3")}}
	for _, o := range []client.Object{second, third, asking("never", -1), node} {
		if err := b.client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	r := newRooms(b.client, b.client)
	take := func(tr *v1beta1.Trial, pods int, want string) {
		t.Helper()
		why, err := r.take(t.Context(), tr, ranks(t, pods), noon)
		if err != nil || (why == "") != (want == "") || !strings.Contains(why, want) {
			t.Errorf("%s with %d pods: %q, %v; want %q", tr.Name, pods, why, err, want)
		}
	}
	take(first, 2, "")
	take(first, 2, "") // its job is made again
	take(second, 2, gpu)
	take(third, 2, "ns/second comes first") // nor may it pass the second
	take(asking("alone", 3), 1, "")         // others are the scheduler's
	take(asking("never", -1), 4, "")        // its pods will say that they do not fit

	r.release("never")
	r.release(first.UID) // its job was refused
	take(second, 2, "")
	take(third, 2, gpu)

	r = newRooms(b.client, b.client) // after a restart
	change := func(f func()) {
		t.Helper()
		f()
		if err := b.client.Status().Update(t.Context(), second); err != nil {
			t.Fatal(err)
		}
	}
	change(func() { second.MarkRunning("", metav1.NewTime(noon)) })
	take(third, 2, gpu)
	change(func() { second.MarkSucceeded("", metav1.NewTime(noon)) })
	take(third, 2, "")
}
