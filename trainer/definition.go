package trainer

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// LabelOperator marks the definitions of the kinds that Vernier's own training operator
// runs, and what it makes for their jobs.
const LabelOperator = "vernier.ml/operator"

// IsOurs says whether a CustomResourceDefinition is one of config/operator. The label
// stays when a user applies another definition over ours; the schema, which takes
// anything, does not.
func IsOurs(crd *unstructured.Unstructured) bool {
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	if crd.GetLabels()[LabelOperator] != "true" || len(versions) == 0 {
		return false
	}
	for _, v := range versions {
		if at(v, "schema", "openAPIV3Schema", "properties", "spec", "x-kubernetes-preserve-unknown-fields") != true {
			return false
		}
	}
	return true
}
