package kind

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/vernier-ml/vernier/trainer"
)

// pipelineRun is Tekton's: its tasks have steps, and their pods its own labels. Their
// names may be cut and hashed, so that the trial's cannot be told from them.
type pipelineRun struct{}

var _ trainer.Opaque = pipelineRun{}

func (pipelineRun) GVK() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "tekton.dev", Version: "v1", Kind: "PipelineRun"}
}

func (k pipelineRun) Roles(*unstructured.Unstructured) ([]trainer.Role, error) {
	return nil, noTemplate(k.GVK())
}

func (pipelineRun) Beside() bool { return true }

func (pipelineRun) PodLabels() []string { return []string{"metadata", "labels"} }
