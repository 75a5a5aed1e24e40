package trainertest

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// Job reads a job from YAML.
func Job(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	job := &unstructured.Unstructured{}
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = job.UnmarshalJSON(raw)
	}
	if err != nil {
		t.Fatal(err)
	}
	return job
}
