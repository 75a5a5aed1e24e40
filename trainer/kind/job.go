package kind

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/vernier-ml/vernier/trainer"
)

// job is batch/v1 Job: one role.
type job struct{}

var _ trainer.Replicated = job{}

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

// completionIndex is the field of a pod that has its index in an Indexed Job.
const completionIndex = "metadata.annotations['" + batchv1.JobCompletionIndexAnnotation + "']"

// Replicas of an Indexed Job have names if its pods have a subdomain: that of a headless
// Service.
func (job) Replicas(obj *unstructured.Unstructured) ([]trainer.Replicas, error) {
	template, _, err := unstructured.NestedMap(obj.Object, "spec", "template")
	if err != nil {
		return nil, fmt.Errorf("the pods of the Job are not known: %w", err)
	}
	subdomain, _, _ := unstructured.NestedString(template, "spec", "subdomain")
	mode, _, _ := unstructured.NestedString(obj.Object, "spec", "completionMode")
	r := trainer.Replicas{
		Path: []string{"spec", "template"}, Index: completionIndex,
		Count: countAt(obj.Object, 1, "spec", "completions"),
		Host: func(i int) string {
			return fmt.Sprintf("%s-%d.%s%s", obj.GetName(), i, subdomain, port(template))
		},
	}
	switch {
	case mode != string(batchv1.IndexedCompletion):
		r.NoIndex = "the pods of this Job have no index: set spec.completionMode: Indexed"
		r.NoHosts = r.NoIndex
	case subdomain == "":
		r.NoHosts = "the pods of this Job have no names: set spec.template.spec.subdomain to the name of a headless Service"
	}
	return []trainer.Replicas{r}, nil
}

// countAt is the number at a path, or what is meant where there is none.
func countAt(obj map[string]any, otherwise int, path ...string) int {
	if n, found, err := unstructured.NestedInt64(obj, path...); found && err == nil {
		return int(n)
	}
	return otherwise
}

// port is the first one that a container of the pods declares, as :2222, or empty.
func port(template map[string]any) string {
	containers, _, _ := unstructured.NestedSlice(template, "spec", "containers")
	for _, c := range containers {
		container, _ := c.(map[string]any)
		ports, _, _ := unstructured.NestedSlice(container, "ports")
		for _, p := range ports {
			if declared, ok := p.(map[string]any); ok {
				return fmt.Sprintf(":%d", countAt(declared, 0, "containerPort"))
			}
		}
	}
	return ""
}
