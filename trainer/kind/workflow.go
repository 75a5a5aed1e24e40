package kind

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/vernier-ml/vernier/trainer"
)

// workflow is Argo's: its templates have containers, from which its controller makes pods.
type workflow struct{}

var _ trainer.Opaque = workflow{}

func (workflow) GVK() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: "Workflow"}
}

func (k workflow) Roles(*unstructured.Unstructured) ([]trainer.Role, error) {
	return nil, noTemplate(k.GVK())
}

func (workflow) Beside() bool { return true }

func (workflow) PodLabels() []string { return []string{"spec", "podMetadata", "labels"} }
