package kind_test

import (
	"errors"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/vernier-ml/vernier/trainer"
	"github.com/vernier-ml/vernier/trainer/kind"
	"github.com/vernier-ml/vernier/trainer/trainertest"
)

func TestKinds(t *testing.T) {
	fixtures, err := trainertest.Fixtures()
	if err != nil {
		t.Fatal(err)
	}
	tested := map[schema.GroupVersionKind]bool{}
	for _, f := range fixtures {
		gvk := f.Object().GroupVersionKind()
		tested[gvk] = true
		t.Run(gvk.Kind, func(t *testing.T) { trainertest.TestKind(t, kind.For(gvk), f) })
	}
	for _, k := range kind.All() {
		if !tested[k.GVK()] {
			t.Errorf("%v has no fixture: add trainer/trainertest/fixtures/%s.yaml", k.GVK(), k.GVK().Kind)
		}
	}
}

func TestAllIsSortedAndUnique(t *testing.T) {
	var names []string
	for _, k := range kind.All() {
		names = append(names, k.GVK().String())
	}
	if !slices.IsSorted(names) || len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Errorf("kinds %v, want them sorted and each once", names)
	}
}

func TestKindsWithoutTemplates(t *testing.T) {
	for name, tc := range map[string]struct{ obj map[string]any }{
		"a Job without a template":   {map[string]any{"apiVersion": "batch/v1", "kind": "Job"}},
		"a Job without containers":   {map[string]any{"apiVersion": "batch/v1", "kind": "Job", "spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{}}}}}},
		"a Job of odd types":         {map[string]any{"apiVersion": "batch/v1", "kind": "Job", "spec": map[string]any{"template": "x"}}},
		"anything without templates": {map[string]any{"apiVersion": "example.com/v1", "kind": "Thing", "spec": map[string]any{"steps": []any{"a"}}}},
		"containers only in status":  {map[string]any{"apiVersion": "example.com/v1", "kind": "Thing", "status": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "x"}}}}}}},
	} {
		t.Run(name, func(t *testing.T) {
			job := &unstructured.Unstructured{Object: tc.obj}
			_, err := kind.For(job.GroupVersionKind()).Roles(job)
			if !errors.Is(err, trainer.ErrNoTemplate) {
				t.Errorf("error %v, want ErrNoTemplate", err)
			}
		})
	}
}

// A LeaderWorkerSet never ends by itself, so there is no fixture of its phases.
func TestRolesOfALeaderWorkerSet(t *testing.T) {
	template := map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "main"}}}}
	lws := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet",
		"spec": map[string]any{"leaderWorkerTemplate": map[string]any{"leaderTemplate": template, "workerTemplate": template}},
	}}
	roles, err := kind.For(lws.GroupVersionKind()).Roles(lws)
	if err != nil || len(roles) != 2 || roles[0].Name != "leader" || roles[1].Name != "worker" {
		t.Errorf("roles %+v, %v, want leader and worker", roles, err)
	}
}
