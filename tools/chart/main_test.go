package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	helm "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"sigs.k8s.io/yaml"
)

const (
	chartDir  = "../../charts/vernier"
	configDir = "../../config/default"
)

func load(t *testing.T) *helm.Chart {
	t.Helper()
	c, err := loader.Load(chartDir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// rendered are the objects of the chart with some values, by kind and name.
func rendered(t *testing.T, values string) map[string]object {
	t.Helper()
	c := load(t)
	given, err := chartutil.ReadValues([]byte(values))
	if err != nil {
		t.Fatal(err)
	}
	all, err := chartutil.ToRenderValues(c, given, chartutil.ReleaseOptions{Name: "vernier", Namespace: "tuning"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	files, err := engine.Render(c, all)
	if err != nil {
		t.Fatal(err)
	}
	objects := map[string]object{}
	for name, text := range files {
		if !strings.HasSuffix(name, ".yaml") {
			continue
		}
		var o object
		if err := yaml.UnmarshalStrict([]byte(text), &o); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, text)
		}
		if len(o) > 0 {
			objects[o.kind()+" "+o.name()] = o
		}
	}
	return objects
}

func TestTheTemplatesAreThoseOfTheManifests(t *testing.T) {
	out := t.TempDir()
	if err := run(configDir, out); err != nil {
		t.Fatal(err)
	}
	want, got := read(t, out), read(t, filepath.Join(chartDir, "templates"))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("run make chart and commit (-want +got):\n%s", diff)
	}
}

func read(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, e := range entries {
		content, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[e.Name()] = string(content)
	}
	return files
}

// With the default values the chart installs what config/default does, in another
// namespace.
func TestTheChartInstallsWhatTheManifestsDo(t *testing.T) {
	manifests, err := build(configDir)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]object{}
	for _, o := range manifests {
		raw, err := yaml.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		var moved object
		if err := yaml.Unmarshal([]byte(strings.ReplaceAll(string(raw), namespace, "tuning")), &moved); err != nil {
			t.Fatal(err)
		}
		if moved.kind() != "Namespace" {
			want[moved.kind()+" "+moved.name()] = moved
		}
	}
	got := rendered(t, "")
	for _, o := range got {
		// Helm's own: what helm uninstall leaves.
		annotations, _ := o["metadata"].(map[string]any)["annotations"].(map[string]any)
		delete(annotations, "helm.sh/resource-policy")
		if len(annotations) == 0 {
			delete(o["metadata"].(map[string]any), "annotations")
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-config/default +chart):\n%s", diff)
	}
}

func TestValuesOfTheChart(t *testing.T) {
	objects := rendered(t, `
image: {registry: registry.example.com/v, tag: v1.2.3, pullSecrets: [{name: pull}]}
collector: {image: "registry.example.com/c:1", resources: {requests: {memory: 32Mi}, limits: {cpu: 2, memory: 256Mi}}}
store: {url: "env:STORE_URL"}
crds: {install: false}
manager:
  replicas: 2
  extraArgs: [--store-max-age=720h]
  env: [{name: STORE_URL, valueFrom: {secretKeyRef: {name: store, key: url}}}]
  nodeSelector: {pool: cpu}
webhook: {replicas: 3}
`)
	if objects["PersistentVolumeClaim vernier-store"] != nil || objects["CustomResourceDefinition experiments.kubeflow.org"] != nil {
		t.Error("what was turned off is there, or a claim for a store that has a server")
	}
	if got := objects["Deployment vernier-webhook"]["spec"].(map[string]any)["replicas"]; got != float64(3) {
		t.Errorf("%v replicas of the webhook", got)
	}
	spec := objects["Deployment vernier-manager"]["spec"].(map[string]any)
	pod := spec["template"].(map[string]any)["spec"].(map[string]any)
	c := pod["containers"].([]any)[0].(map[string]any)
	got := []any{c["image"], c["args"], c["env"], pod["nodeSelector"], pod["imagePullSecrets"], pod["volumes"].([]any)[0],
		spec["replicas"], spec["strategy"], c["lifecycle"]}
	want := []any{
		"registry.example.com/v/manager:v1.2.3",
		[]any{"--leader-elect", "--store=env:STORE_URL", "--webhook-bind-address=0", "--collector-image=registry.example.com/c:1",
			"--collector-cpu-limit=2", "--collector-memory-limit=256Mi", "--collector-memory-request=32Mi", "--store-max-age=720h"},
		[]any{map[string]any{"name": "STORE_URL", "valueFrom": map[string]any{"secretKeyRef": map[string]any{"name": "store", "key": "url"}}}},
		map[string]any{"pool": "cpu"},
		[]any{map[string]any{"name": "pull"}},
		map[string]any{"name": "store", "emptyDir": map[string]any{}},
		float64(2), map[string]any{"rollingUpdate": map[string]any{"maxUnavailable": float64(0)}},
		map[string]any{"preStop": map[string]any{"sleep": map[string]any{"seconds": float64(5)}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMonitoringIsThatOfTheManifests(t *testing.T) {
	manifests, err := build("../../config/prometheus")
	if err != nil {
		t.Fatal(err)
	}
	got := rendered(t, "monitoring: {serviceMonitor: true, rules: true, dashboard: true, labels: {release: mine}, katibMetrics: true}")
	for _, want := range manifests {
		want["metadata"].(map[string]any)["namespace"] = "tuning"
		want["metadata"].(map[string]any)["labels"].(map[string]any)["release"] = "mine"
		raw, err := yaml.Marshal(want) // numbers as in what is rendered
		if err != nil {
			t.Fatal(err)
		}
		var again object
		if err := yaml.Unmarshal(raw, &again); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(again, got[want.kind()+" "+want.name()]); diff != "" {
			t.Errorf("%s (-config/prometheus +chart):\n%s", want.kind(), diff)
		}
	}
	raw, err := yaml.Marshal(got["Deployment vernier-manager"])
	if err != nil || !strings.Contains(string(raw), "- --metrics-compat=katib\n") {
		t.Errorf("the manager has no Katib's metrics: %v\n%s", err, raw)
	}
}

func TestWrongValuesAreRefused(t *testing.T) {
	for _, values := range []string{"manger: {}", "webhook: {replicas: two}", "image: {tags: v1}", "collector: {resources: {limits: {gpu: 1}}}", "manager: {replicas: 2}"} {
		given, err := chartutil.ReadValues([]byte(values))
		if err != nil {
			t.Fatal(err)
		}
		all, err := chartutil.ToRenderValues(load(t), given, chartutil.ReleaseOptions{}, nil)
		if err == nil {
			_, err = engine.Render(load(t), all)
		}
		if err == nil {
			t.Errorf("%s was taken", values)
		}
	}
}
