package kind

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/vernier-ml/vernier/trainer"
)

// trainJob is Kubeflow Trainer's. Its pods are those of its runtime: what looks like a
// pod template in it changes one that is there. JobSet copies none of its labels.
type trainJob struct{}

var _ trainer.Opaque = trainJob{}

func (trainJob) GVK() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "trainer.kubeflow.org", Version: "v1alpha1", Kind: "TrainJob"}
}

func (k trainJob) Roles(*unstructured.Unstructured) ([]trainer.Role, error) {
	return nil, noTemplate(k.GVK())
}

func (trainJob) Beside() bool { return true }

func (trainJob) PodLabels() []string { return nil }

// Replicas are the nodes that the TrainJob asks for; how many its runtime has otherwise
// is not known here.
func (trainJob) Replicas(obj *unstructured.Unstructured) ([]trainer.Replicas, error) {
	const port = 29500 // of all runtimes
	r := trainer.Replicas{
		Role: "node", Path: []string{"spec", "trainer"}, Index: completionIndex,
		Count: countAt(obj.Object, 0, "spec", "trainer", "numNodes"),
		Host:  func(i int) string { return fmt.Sprintf("%s-node-0-%d.%s:%d", obj.GetName(), i, obj.GetName(), port) },
	}
	if r.Count == 0 {
		r.NoHosts = "how many pods the runtime has is not known: set spec.trainer.numNodes"
	}
	return []trainer.Replicas{r}, nil
}
