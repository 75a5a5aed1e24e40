package kind

import (
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
