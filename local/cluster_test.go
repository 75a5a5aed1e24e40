package local

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"

	"github.com/vernier-ml/vernier/trainer"
)

// A training operator was installed in the instance: the next start does not
// take its kinds away from it.
func TestDefinitionsOfOthersStay(t *testing.T) {
	objects, err := manifests()
	if err != nil {
		t.Fatal(err)
	}
	ours := 0
	for _, object := range objects {
		if !trainer.IsOurs(object) {
			continue
		}
		ours++
		theirs := object.DeepCopy()
		versions, _, _ := unstructured.NestedSlice(theirs.Object, "spec", "versions")
		if err := unstructured.SetNestedMap(versions[0].(map[string]any), map[string]any{"type": "object"}, "schema", "openAPIV3Schema", "properties", "spec"); err != nil {
			t.Fatal(err)
		}
		if err := unstructured.SetNestedSlice(theirs.Object, versions, "spec", "versions"); err != nil {
			t.Fatal(err)
		}
		resource := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
		client := fake.NewSimpleDynamicClient(runtime.NewScheme(), theirs).Resource(resource)
		if err := apply(t.Context(), client, object); err != nil {
			t.Errorf("%s: %v", object.GetName(), err)
		}
		have, err := client.Get(t.Context(), object.GetName(), metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(theirs.Object, have.Object); diff != "" {
			t.Errorf("%s was changed (-theirs +now)\n%s", object.GetName(), diff)
		}
	}
	if ours != 7 {
		t.Errorf("%d definitions of training jobs are ours, want 7", ours)
	}
}
