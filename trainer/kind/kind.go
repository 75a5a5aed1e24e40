// Package kind holds the kinds of job, one file each.
package kind

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/vernier-ml/vernier/trainer"
)

// All returns the kinds that are known by name, sorted.
func All() []trainer.Kind {
	all := []trainer.Kind{
		job{}, newJobSet(), newRayJob(), newSparkApplication(), pipelineRun{}, trainJob{}, workflow{},
	}
	slices.SortFunc(all, func(a, b trainer.Kind) int { return cmp.Compare(a.GVK().String(), b.GVK().String()) })
	return all
}

// For returns the known kind for gvk, whatever its version, or the generic one, which
// finds pod templates by their structure.
func For(gvk schema.GroupVersionKind) trainer.Kind {
	for _, k := range All() {
		if k.GVK().GroupKind() == gvk.GroupKind() {
			return k
		}
	}
	return generic{gvk}
}
