package kind

import (
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/vernier-ml/vernier/trainer"
)

// job is batch/v1 Job: one role.
type job struct{}

var _ trainer.Kind = job{}

func (job) GVK() schema.GroupVersionKind { return batchv1.SchemeGroupVersion.WithKind("Job") }

func (job) Roles(obj *unstructured.Unstructured) ([]trainer.Role, error) {
	containers, found, err := unstructured.NestedSlice(obj.Object, "spec", "template", "spec", "containers")
	if err != nil || !found || len(containers) == 0 {
		return nil, &trainer.FieldError{
			Field:   "spec.template.spec.containers",
			Problem: "is missing: a Job needs a pod template with at least one container",
			Cause:   trainer.ErrNoTemplate,
		}
	}
	return []trainer.Role{{TemplatePath: []string{"spec", "template"}, Primary: true}}, nil
}
