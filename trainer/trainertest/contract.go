package trainertest

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/vernier-ml/vernier/trainer"
)

// TestKind verifies the contract of a kind with one fixture.
func TestKind(t *testing.T, kind trainer.Kind, f Fixture) {
	t.Helper()
	if got, want := kind.GVK(), f.Object().GroupVersionKind(); got != want {
		t.Fatalf("GVK is %v, want %v", got, want)
	}
	t.Run("every phase is read", func(t *testing.T) { testStates(t, f) })
	t.Run("roles lead to pod templates", func(t *testing.T) { testRoles(t, kind, f) })
	if opaque, ok := kind.(trainer.Opaque); ok && (opaque.Beside() || len(f.Templates) == 0) {
		t.Run("pods without a template are injected when they are created", func(t *testing.T) { testAtPod(t, opaque, f) })
	}
	if f.PrimaryTemplate == "" {
		return
	}
	for _, c := range collectors(f) {
		t.Run(c.Kind+" is injected", func(t *testing.T) { testInject(t, kind, f, c) })
	}
	if opaque, ok := kind.(trainer.Opaque); ok && opaque.Beside() {
		return // a container that no template has is one of another pod
	}
	t.Run("a missing primary container is an error and changes nothing", func(t *testing.T) {
		job := f.Object()
		c := collectors(f)[0]
		c.PrimaryContainer = "absent"
		if err := trainer.Inject(job, kind, c); err == nil {
			t.Error("no error for a container that does not exist")
		}
		if diff := cmp.Diff(f.Object().Object, job.Object); diff != "" {
			t.Errorf("the job was changed (-want +got)\n%s", diff)
		}
	})
}

// phases that the fixtures of every kind must show.
var phases = []string{"running", "succeeded", "failed", "suspended", "preempted"}

func testStates(t *testing.T, f Fixture) {
	var names []string
	for _, s := range f.States {
		names = append(names, s.Name)
		raw, err := f.In(s).MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		got, err := trainer.Evaluate(string(raw), f.SuccessCondition, f.FailureCondition)
		if err != nil {
			t.Fatalf("%s: %v", s.Name, err)
		}
		if got.Phase != s.Phase || got.Reason != s.Reason || s.Message != "" && got.Message != s.Message {
			t.Errorf("%s: got %+v, want %s, reason %q, message %q", s.Name, got, s.Phase, s.Reason, s.Message)
		}
	}
	for _, p := range phases {
		if !slices.Contains(names, p) {
			t.Errorf("the fixture %s shows no job that is %s", f.File, p)
		}
	}
}

func testRoles(t *testing.T, kind trainer.Kind, f Fixture) {
	job := f.Object()
	roles, err := kind.Roles(job)
	if len(f.Templates) == 0 {
		if err == nil {
			t.Fatalf("roles %v, want an error", roles)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	again, err := kind.Roles(job)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(roles, again); diff != "" {
		t.Errorf("roles change from call to call\n%s", diff)
	}
	var paths []string
	primary := 0
	for _, r := range roles {
		paths = append(paths, trainer.FieldPath(r.TemplatePath))
		if r.Primary {
			primary++
		}
		tpl, err := trainer.Template(job, r)
		if err != nil {
			t.Fatal(err)
		}
		if containers, _, _ := unstructured.NestedSlice(tpl, "spec", "containers"); len(containers) == 0 {
			t.Errorf("%s has no containers", trainer.FieldPath(r.TemplatePath))
		}
	}
	if primary > 1 {
		t.Errorf("%d roles are primary", primary)
	}
	if diff := cmp.Diff(f.Templates, paths); diff != "" {
		t.Errorf("templates (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(f.Object().Object, job.Object); diff != "" {
		t.Errorf("Roles changes the job\n%s", diff)
	}
}

func collectors(f Fixture) []trainer.Collector {
	base := trainer.Collector{
		Image:      "vernier/collector:test",
		Metrics:    []string{"loss"},
		Experiment: "exp", Trial: "exp-0001",
		Labels:           map[string]string{"generation": "3"},
		ReportURL:        "http://127.0.0.1:1",
		Token:            "token",
		PrimaryContainer: f.PrimaryContainer,
		PrimaryPodLabels: f.PrimaryPodLabels,
	}
	var all []trainer.Collector
	for _, kind := range []string{trainer.StdOut, trainer.File, trainer.TensorFlowEvent, trainer.Push} {
		c := base
		c.Kind = kind
		if kind == trainer.File || kind == trainer.TensorFlowEvent {
			c.Path = "/logs/metrics"
		}
		all = append(all, c)
	}
	return all
}

func testInject(t *testing.T, kind trainer.Kind, f Fixture, c trainer.Collector) {
	job := f.Object()
	if err := trainer.Inject(job, kind, c); err != nil {
		t.Fatal(err)
	}
	if job.GetLabels()[trainer.LabelTrial] != c.Trial || job.GetLabels()[trainer.LabelExperiment] != c.Experiment {
		t.Errorf("labels of the job: %v", job.GetLabels())
	}
	roles, err := kind.Roles(job)
	if err != nil {
		t.Fatal(err)
	}
	var measured []string
	for _, r := range roles {
		tpl, err := trainer.Template(job, r)
		if err != nil {
			t.Fatal(err)
		}
		labels, _, _ := unstructured.NestedStringMap(tpl, "metadata", "labels")
		if labels[trainer.LabelTrial] != c.Trial || labels[trainer.LabelExperiment] != c.Experiment || labels["generation"] != "3" {
			t.Errorf("labels of %s: %v", trainer.FieldPath(r.TemplatePath), labels)
		}
		for _, s := range sidecars(t, tpl) {
			if s["name"] != trainer.Sidecar && s["name"] != trainer.SidecarLogger {
				t.Errorf("the sidecar is named %v", s["name"])
			}
			measured = append(measured, trainer.FieldPath(r.TemplatePath))
		}
	}
	if diff := cmp.Diff([]string{f.PrimaryTemplate}, measured); diff != "" {
		t.Errorf("templates with a sidecar (-want +got)\n%s", diff)
	}
	once := job.DeepCopy()
	if err := trainer.Inject(job, kind, c); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(once.Object, job.Object); diff != "" {
		t.Errorf("the second injection changes the job (-once +twice)\n%s", diff)
	}
}

// testAtPod verifies that the job is labelled only, and the pods that come of it are
// injected as they are created: the one that reports, once.
func testAtPod(t *testing.T, kind trainer.Opaque, f Fixture) {
	if f.Pod == nil || f.OtherPod == nil {
		t.Fatalf("the fixture %s shows no pod and otherPod", f.File)
	}
	c := collectors(f)[0]
	if f.PodContainer != "" {
		c.PrimaryContainer = f.PodContainer
	}
	job := f.Object()
	if c.PrimaryContainer == f.PrimaryContainer && f.PrimaryTemplate != "" {
		unstructured.RemoveNestedField(job.Object, strings.Split(f.PrimaryTemplate, ".")...)
	}
	want := job.DeepCopy()
	if err := trainer.Inject(job, kind, c); err != nil {
		t.Fatal(err)
	}
	marked := map[string]string{trainer.LabelTrial: c.Trial, trainer.LabelExperiment: c.Experiment, trainer.LabelInject: trainer.InjectAtPod, "generation": "3"}
	passed := map[string]string{}
	if got := trainer.FieldPath(kind.PodLabels()); got != f.PodLabels {
		t.Errorf("labels of pods at %q, want %q", got, f.PodLabels)
	}
	if path := kind.PodLabels(); len(path) > 0 {
		passed, _, _ = unstructured.NestedStringMap(job.Object, path...)
		containsLabels(t, "what the pods get", passed, marked)
		unstructured.RemoveNestedField(job.Object, path...)
	}
	if f.PodLabels != "metadata.labels" {
		containsLabels(t, "the job", job.GetLabels(), marked)
	}
	for _, o := range []*unstructured.Unstructured{job, want} {
		o.SetLabels(nil)
		prune(o.Object, kind.PodLabels())
	}
	if diff := cmp.Diff(want.Object, job.Object); diff != "" {
		t.Errorf("the job is changed beside its labels (-want +got)\n%s", diff)
	}
	for name, tc := range map[string]struct {
		pod  map[string]any
		want int
	}{"the pod that reports": {f.Pod, 1}, "another pod": {f.OtherPod, 0}} {
		pod := (&unstructured.Unstructured{Object: tc.pod}).DeepCopy()
		labels := pod.GetLabels()
		maps.Copy(labels, passed)
		pod.SetLabels(labels)
		for range 2 {
			if err := trainer.InjectPod(pod, "team", c); err != nil {
				t.Fatal(err)
			}
			containsLabels(t, name, pod.GetLabels(), marked)
			if got := len(sidecars(t, pod.Object)); got != tc.want {
				t.Errorf("%s has %d collectors, want %d", name, got, tc.want)
			}
		}
	}
}

// prune removes maps that are empty, from the end of path.
func prune(o map[string]any, path []string) {
	for n := len(path); n > 0; n-- {
		if m, ok, _ := unstructured.NestedMap(o, path[:n]...); ok && len(m) == 0 {
			unstructured.RemoveNestedField(o, path[:n]...)
		}
	}
}

func containsLabels(t *testing.T, what string, have, want map[string]string) {
	t.Helper()
	for k, v := range want {
		if have[k] != v {
			t.Errorf("%s has the labels %v, want %s=%s", what, have, k, v)
		}
	}
}

func sidecars(t *testing.T, tpl map[string]any) []map[string]any {
	t.Helper()
	list, _, err := unstructured.NestedSlice(tpl, "spec", "initContainers")
	if err != nil {
		t.Fatal(err)
	}
	var out []map[string]any
	for _, v := range list {
		if m := v.(map[string]any); m["restartPolicy"] == string(corev1.ContainerRestartPolicyAlways) {
			out = append(out, m)
		}
	}
	return out
}
