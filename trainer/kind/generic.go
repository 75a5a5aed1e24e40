package kind

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/vernier-ml/vernier/trainer"
	"github.com/vernier-ml/vernier/trainer/operator"
)

// generic is any kind of job. A pod template is anything with spec.containers, at
// any depth. None is primary. A job without one has pods that come from elsewhere.
type generic struct{ gvk schema.GroupVersionKind }

var (
	_ trainer.Opaque     = generic{}
	_ trainer.Replicated = generic{}
)

func (g generic) GVK() schema.GroupVersionKind { return g.gvk }

func (g generic) Roles(obj *unstructured.Unstructured) ([]trainer.Role, error) {
	var roles []trainer.Role
	find(obj.Object, nil, func(path []string) {
		roles = append(roles, trainer.Role{Name: roleName(obj.Object, path), TemplatePath: path})
	})
	if len(roles) == 0 {
		return nil, noTemplate(g.gvk)
	}
	return roles, nil
}

func (generic) Beside() bool { return false }

func (generic) PodLabels() []string { return nil }

// Replicas are known of the training operator's kinds.
func (generic) Replicas(obj *unstructured.Unstructured) ([]trainer.Replicas, error) {
	return operator.Replicas(obj)
}

func noTemplate(gvk schema.GroupVersionKind) error {
	return &trainer.FieldError{
		Problem: fmt.Sprintf("the %s shows no pod template (a field with spec.containers)", gvk.Kind),
		Cause:   trainer.ErrNoTemplate,
	}
}

// find calls yield with the path of every pod template, in order of sorted keys. It
// skips status.
func find(v any, path []string, yield func([]string)) {
	switch v := v.(type) {
	case map[string]any:
		if isTemplate(v) {
			yield(slices.Clone(path))
			return
		}
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if len(path) == 0 && (k == "status" || k == "metadata") {
				continue
			}
			find(v[k], append(slices.Clip(path), k), yield)
		}
	case []any:
		for i, e := range v {
			find(e, append(slices.Clip(path), strconv.Itoa(i)), yield)
		}
	}
}

func isTemplate(v map[string]any) bool {
	spec, _ := v["spec"].(map[string]any)
	containers, _ := spec["containers"].([]any)
	if len(containers) == 0 {
		return false
	}
	for _, c := range containers {
		if m, ok := c.(map[string]any); !ok || m["name"] == nil {
			return false
		}
	}
	return true
}

// roleName derives a role's name from the path of its template:
// spec.pytorchReplicaSpecs.Master.template is Master;
// spec.replicatedJobs[0].template.spec.template is the name of that entry.
func roleName(obj map[string]any, path []string) string {
	for n := len(path); n > 0; n-- {
		last := path[n-1]
		if last == "template" || last == "spec" {
			continue
		}
		if _, err := strconv.Atoi(last); err != nil {
			return strings.TrimSuffix(last, "Template") // leaderTemplate of a LeaderWorkerSet
		}
		entry := descend(obj, path[:n])
		for _, key := range []string{"name", "groupName"} {
			if name, ok := entry[key].(string); ok {
				return name
			}
		}
		return last
	}
	return ""
}

// descend follows path and returns the map there, or nil.
func descend(v any, path []string) map[string]any {
	for _, p := range path {
		switch c := v.(type) {
		case map[string]any:
			v = c[p]
		case []any:
			i, err := strconv.Atoi(p)
			if err != nil || i >= len(c) {
				return nil
			}
			v = c[i]
		}
	}
	m, _ := v.(map[string]any)
	return m
}
