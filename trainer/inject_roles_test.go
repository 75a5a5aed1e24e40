package trainer_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/vernier-ml/vernier/trainer"
	"github.com/vernier-ml/vernier/trainer/kind"
)

// replicas is a job of any kind with two roles that have the same container.
func replicas(t *testing.T, first, second string) *unstructured.Unstructured {
	t.Helper()
	template := func(labels string) map[string]any {
		m := map[string]any{}
		if labels != "" {
			m["role"] = labels
		}
		return map[string]any{"replicas": int64(1), "template": map[string]any{
			"metadata": map[string]any{"labels": m},
			"spec":     map[string]any{"containers": []any{map[string]any{"name": "main", "command": []any{"train"}}}},
		}}
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Things",
		"spec": map[string]any{"specs": map[string]any{first: template("a"), second: template("b")}},
	}}
}

func TestInjectChoosesThePrimaryRole(t *testing.T) {
	tests := map[string]struct {
		first, second string
		labels        map[string]string
		want, wantErr string
	}{
		"by labels of the template":                  {"x", "y", map[string]string{"role": "b"}, "y", ""},
		"by the name of the role":                    {"Worker", "PS", map[string]string{"training.kubeflow.org/replica-type": "ps"}, "PS", ""},
		"the master of a PyTorchJob":                 {"Master", "Worker", map[string]string{"training.kubeflow.org/job-role": "master"}, "Master", ""},
		"the launcher of an MPIJob":                  {"Launcher", "Worker", map[string]string{"training.kubeflow.org/job-role": "master"}, "Launcher", ""},
		"the worker of a TFJob without a chief":      {"PS", "Worker", map[string]string{"training.kubeflow.org/job-role": "master"}, "Worker", ""},
		"the task of a Volcano Job":                  {"master", "ps", map[string]string{"volcano.sh/task-spec": "ps"}, "ps", ""},
		"the one whose name says that it leads":      {"worker", "leader", nil, "leader", ""},
		"nothing tells them apart":                   {"x", "y", nil, "", `several pod templates have a container "main" (spec.specs.x.template, spec.specs.y.template): set primaryPodLabels`},
		"labels that neither of the templates bears": {"x", "y", map[string]string{"role": "c"}, "", "several pod templates"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			obj := replicas(t, tc.first, tc.second)
			c := collector(trainer.Push)
			c.PrimaryPodLabels = tc.labels
			err := trainer.Inject(obj, kind.For(obj.GroupVersionKind()), c)
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Fatalf("error %v, want %q in it", err, tc.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, role := range []string{tc.first, tc.second} {
				init, _, _ := unstructured.NestedSlice(obj.Object, "spec", "specs", role, "template", "spec", "initContainers")
				if got := len(init) > 0; got != (role == tc.want) {
					t.Errorf("role %s measured: %v", role, got)
				}
			}
		})
	}
}
