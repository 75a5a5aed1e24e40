package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
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

// With the values of a component the chart installs what config/default does with it, in
// another namespace.
func TestTheChartInstallsWhatTheManifestsDo(t *testing.T) {
	for name, tc := range map[string]struct {
		components []string
		values     string
	}{
		"default":          {},
		"alerts":           {[]string{"alerts"}, "alerts: {enabled: true}"},
		"cert-manager":     {[]string{"cert-manager"}, "certManager: {enabled: true}"},
		"kubeflow":         {[]string{"kubeflow"}, "kubeflow: {enabled: true}"},
		"impersonation":    {[]string{"impersonation"}, "access: {impersonate: true}"},
		"network policies": {[]string{"network-policies"}, "networkPolicies: {enabled: true}"},
		"a database": {[]string{"database"}, `
store: {url: "env:VERNIER_STORE"}
manager:
  replicas: 2
  env: [{name: VERNIER_STORE, valueFrom: {secretKeyRef: {name: vernier-store, key: url}}}]`},
		"all that have a value": {
			slices.Sorted(maps.Keys(components)),
			"{access: {impersonate: true}, alerts: {enabled: true}, certManager: {enabled: true}, kubeflow: {enabled: true}, networkPolicies: {enabled: true}}",
		},
	} {
		t.Run(name, func(t *testing.T) {
			manifests, err := buildWith(configDir, tc.components...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(byName(t, manifests, "tuning"), withoutHelm(rendered(t, tc.values))); diff != "" {
				t.Errorf("(-manifests +chart):\n%s", diff)
			}
		})
	}
}

// byName are objects in another namespace, but that itself.
func byName(t *testing.T, objects []object, in string) map[string]object {
	t.Helper()
	all := map[string]object{}
	for _, o := range objects {
		raw, err := yaml.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		var moved object
		if err := yaml.Unmarshal([]byte(strings.ReplaceAll(string(raw), namespace, in)), &moved); err != nil {
			t.Fatal(err)
		}
		if moved.kind() != "Namespace" {
			all[moved.kind()+" "+moved.name()] = moved
		}
	}
	return all
}

// withoutHelm takes away what says which objects helm uninstall leaves.
func withoutHelm(objects map[string]object) map[string]object {
	for _, o := range objects {
		annotations, _ := o["metadata"].(map[string]any)["annotations"].(map[string]any)
		delete(annotations, "helm.sh/resource-policy")
		if len(annotations) == 0 {
			delete(o["metadata"].(map[string]any), "annotations")
		}
	}
	return objects
}

func TestKubeflowsProfileIsTheDefaultInItsNamespace(t *testing.T) {
	profile, err := build("../../config/kubeflow")
	if err != nil {
		t.Fatal(err)
	}
	want, err := buildWith(configDir, "kubeflow")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(byName(t, want, "kubeflow"), byName(t, profile, "kubeflow")); diff != "" {
		t.Errorf("(-default with the component +profile):\n%s", diff)
	}
	for _, o := range profile {
		if raw, err := yaml.Marshal(o); err != nil || o.kind() == "Namespace" || strings.Contains(string(raw), namespace) {
			t.Errorf("%s %s is in %s still, or would change a namespace of Kubeflow (%v)", o.kind(), o.name(), namespace, err)
		}
	}
}

// Helm upgrades no definitions of a folder crds; these are templates, which it does.
func TestDefinitionsAreUpgradedAndKept(t *testing.T) {
	if n := len(load(t).CRDObjects()); n > 0 {
		t.Errorf("%d definitions are in crds, where Helm leaves them as they are", n)
	}
	for values, want := range map[string]any{"": "keep", "crds: {keep: false}": nil} {
		definitions := 0
		for _, o := range rendered(t, values) {
			if o.kind() != "CustomResourceDefinition" {
				continue
			}
			definitions++
			annotations, _ := o["metadata"].(map[string]any)["annotations"].(map[string]any)
			if got := annotations["helm.sh/resource-policy"]; got != want {
				t.Errorf("with %q the policy of %s is %v, want %v", values, o.name(), got, want)
			}
		}
		if definitions != 3 {
			t.Errorf("%d definitions with %q, want 3", definitions, values)
		}
	}
}

func TestComponentsThatChangeTheSameLinesAreRefused(t *testing.T) {
	const base = "a\nb\nc\nd\n"
	got, err := merge(base, map[string]string{"x": "a\nB\nc\nd\n", "y": "a\nb\nc\nd\ne\n", "z": base})
	want := "a\n{{- if x }}\nB\n{{- else }}\nb\n{{- end }}\nc\nd\n{{- if y }}\ne\n{{- end }}\n"
	if got != want || err != nil {
		t.Errorf("%v, got\n%s", err, got)
	}
	if got, err := merge(base, map[string]string{"x": "a\nB\nc\nd\n", "y": "a\nc\nd\n"}); err == nil {
		t.Errorf("two changes of one line give\n%s", got)
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
access:
  basePath: /vernier/
  oidc: {issuer-url: "https://idp.example", client-id: vernier, scopes: "openid,email,offline_access"}
  proxy: {username-headers: kubeflow-userid, source-cidrs: 10.0.0.0/8}
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
			"--collector-cpu-limit=2", "--collector-memory-limit=256Mi", "--collector-memory-request=32Mi",
			"--oidc-client-id=vernier", "--oidc-issuer-url=https://idp.example", "--oidc-scopes=openid,email,offline_access",
			"--requestheader-source-cidrs=10.0.0.0/8", "--requestheader-username-headers=kubeflow-userid", "--dashboard-base-path=/vernier/", "--store-max-age=720h"},
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
	for _, values := range []string{"manger: {}", "webhook: {replicas: two}", "image: {tags: v1}", "collector: {resources: {limits: {gpu: 1}}}", "manager: {replicas: 2}",
		"alerts: {hosts: hooks.slack.com}", "access: {oidc: {issuer: a}}", "access: {oidc: {client-secret: s3cret}}", "access: {proxy: {secret: s3cret}}", "access: {basePath: vernier}"} {
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
