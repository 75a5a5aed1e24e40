package trainer_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/vernier-ml/vernier/collector/contract"
	"github.com/vernier-ml/vernier/trainer"
	"github.com/vernier-ml/vernier/trainer/kind"
)

// customCollector is like Katib's example.
func customCollector() *corev1.Container {
	return &corev1.Container{
		Name: "custom-collector", Image: "registry.example/custom:1", ImagePullPolicy: corev1.PullAlways,
		Args: []string{"-m", "loss", "-s", "katib-db-manager.kubeflow:6789", "-path", "/katib/mnist.log"}, Env: []corev1.EnvVar{{Name: "A", Value: "$(B)"}},
	}
}

func withCustom(path string, change func(*trainer.Collector)) trainer.Collector {
	c := collector(trainer.Custom)
	c.Custom, c.Path = customCollector(), path
	if change != nil {
		change(&c)
	}
	return c
}

func mountsOf(c corev1.Container) (out []string) {
	for _, m := range c.VolumeMounts {
		text := m.Name + " at " + m.MountPath
		if m.SubPath != "" {
			text += " sub " + m.SubPath
		}
		if m.ReadOnly {
			text += " ro"
		}
		out = append(out, text)
	}
	slices.Sort(out)
	return out
}

func TestInjectCustom(t *testing.T) {
	ours := trainer.MetricsVolume + " at /var/run/vernier"
	tests := map[string]struct {
		spec   string
		path   string
		change func(*trainer.Collector)
		main   []string // mounts
		custom []string
	}{
		"a file in a directory of its own": {
			spec: "containers: [{name: main, image: i}]", path: "/katib/mnist.log",
			main: []string{trainer.SourceVolume + " at /katib"}, custom: []string{ours, trainer.SourceVolume + " at /katib"},
		},
		"a directory": {
			spec: "containers: [{name: main, image: i}]", path: "/katib/logs", change: func(c *trainer.Collector) { c.Directory = true },
			main: []string{trainer.SourceVolume + " at /katib/logs"}, custom: []string{ours, trainer.SourceVolume + " at /katib/logs"},
		},
		"no path": {spec: "containers: [{name: main, image: i}]", custom: []string{ours}},
		"the template's volume, which the collector may write to": {
			spec: "volumes: [{name: v, emptyDir: {}}]\ncontainers: [{name: main, image: i, volumeMounts: [{name: v, mountPath: /katib, subPath: a}]}]", path: "/katib/mnist.log",
			main: []string{"v at /katib sub a"}, custom: []string{"v at /katib sub a", ours},
		},
		"a mount of the collector's own stays": {
			spec: "containers: [{name: main, image: i}]", path: "/katib/mnist.log",
			change: func(c *trainer.Collector) {
				c.Custom.VolumeMounts = []corev1.VolumeMount{{Name: "mine", MountPath: "/katib/"}}
			},
			main: []string{trainer.SourceVolume + " at /katib"}, custom: []string{"mine at /katib/", ours},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := injectedTwice(t, job(t, tc.spec), withCustom(tc.path, tc.change))
			if len(got.Containers) != 2 || len(got.InitContainers) != 1 {
				t.Fatalf("%d containers and %d init containers", len(got.Containers), len(got.InitContainers))
			}
			main, custom := got.Containers[0], got.Containers[1]
			if diff := cmp.Diff(tc.main, mountsOf(main)); diff != "" {
				t.Errorf("mounts of the program (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.custom, mountsOf(custom)); diff != "" {
				t.Errorf("mounts of the collector (-want +got):\n%s", diff)
			}
			want := customCollector()
			custom.VolumeMounts, want.Env = nil, custom.Env
			if diff := cmp.Diff(*want, custom); diff != "" {
				t.Errorf("the container (-want +got):\n%s", diff)
			}
			if got.ShareProcessNamespace == nil || !*got.ShareProcessNamespace {
				t.Error("the collector does not see when the program ends")
			}
		})
	}
}

// The sidecar is that of Push, and stands in for Katib's DBManager.
func TestInjectCustomTellsWhereToReport(t *testing.T) {
	spec := injected(t, job(t, "containers: [{name: main, image: i, command: [a]}]"), withCustom("/katib/mnist.log", nil)).Spec
	main, custom, sidecar := spec.Containers[0], spec.Containers[1], spec.InitContainers[0]
	token := pushTokenOf(t, spec)
	want := map[string]string{
		"A": "$(B)", "KATIB_TRIAL_NAME": "", "VERNIER_PUSH_SOCKET": "/var/run/vernier/push.sock",
		"VERNIER_PUSH_URL": "http://127.0.0.1:6790/" + token + "/report",
	}
	got := map[string]string{}
	for _, e := range custom.Env {
		got[e.Name] = e.Value
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("environment of the collector (-want +got):\n%s", diff)
	}
	for _, e := range main.Env {
		if strings.HasPrefix(e.Name, "VERNIER_") || strings.HasPrefix(e.Name, "MLFLOW_") {
			t.Errorf("the program has %s", e.Name)
		}
	}
	if len(spec.HostAliases) != 1 || spec.HostAliases[0].IP != "127.0.0.1" || !slices.Contains(spec.HostAliases[0].Hostnames, "katib-db-manager.kubeflow") {
		t.Errorf("host aliases %v", spec.HostAliases)
	}
	if sidecar.Name != trainer.Sidecar || hook(sidecar) == nil || sidecar.RestartPolicy == nil || !slices.Equal(main.Command, []string{"a"}) {
		t.Errorf("sidecar %+v, command %q", sidecar, main.Command)
	}
	for _, arg := range []string{"--kind=Push", "--katib-address=127.0.0.1:6789", "--push-address=127.0.0.1:6790"} {
		if !slices.Contains(sidecar.Args, arg) {
			t.Errorf("the sidecar lacks %s: %q", arg, sidecar.Args)
		}
	}
}

func TestInjectCustomLeavesWhatTheTemplateSays(t *testing.T) {
	for name, spec := range map[string]string{
		"processes apart":           "shareProcessNamespace: false\ncontainers: [{name: main, image: i}]",
		"the processes of the node": "hostPID: true\ncontainers: [{name: main, image: i}]",
	} {
		if got := injected(t, job(t, spec), withCustom("", nil)).Spec.ShareProcessNamespace; got != nil && *got {
			t.Errorf("%s: shared", name)
		}
	}
	custom := customCollector()
	custom.Env = append(custom.Env, corev1.EnvVar{Name: "KATIB_TRIAL_NAME", Value: "other"})
	c := withCustom("", func(c *trainer.Collector) { c.Custom = custom })
	got := injected(t, job(t, "containers: [{name: main, image: i}]"), c).Spec.Containers[1]
	if got.Env[1].Value != "other" || len(custom.VolumeMounts) > 0 || len(custom.Env) != 2 {
		t.Errorf("%v; given %v", got.Env, custom)
	}
}

// In the embedded mode pods share the machine's network, unless they ask for their own.
func TestACustomCollectorHasANetworkOfItsOwn(t *testing.T) {
	embedded := func(c *trainer.Collector) {
		c.Binary = "/opt/collector"
		c.Commands = trainer.Commands{"team/*": {"collect", "-v"}}
		c.Custom.Image, c.Custom.Command = "team/collector:1", nil
	}
	obj := job(t, "containers: [{name: main, image: i, command: [train]}]")
	got := injected(t, obj, withCustom("/out/log", embedded))
	if network := got.Annotations[contract.AnnotationNetwork]; network != contract.NetworkPod {
		t.Errorf("the pod's network is %q, want one of its own", network)
	}
	if len(got.Spec.HostAliases) != 1 {
		t.Errorf("host aliases %v, want the names of Katib's DBManager", got.Spec.HostAliases)
	}
	if diff := cmp.Diff([]string{"collect", "-v"}, got.Spec.Containers[1].Command); diff != "" {
		t.Errorf("the collector runs (-want +got)\n%s", diff)
	}
	chosen := job(t, "containers: [{name: main, image: i}]")
	if err := unstructured.SetNestedStringMap(chosen.Object, map[string]string{contract.AnnotationNetwork: contract.NetworkHost}, "spec", "template", "metadata", "annotations"); err != nil {
		t.Fatal(err)
	}
	if err := trainer.Inject(chosen, kind.For(chosen.GroupVersionKind()), withCustom("/out/log", embedded)); err == nil || !strings.Contains(err.Error(), "vernier.ml/network: host") {
		t.Errorf("with the machine's network: %v", err)
	}
}

// Without images the pods that are not measured write to directories of their own too.
func TestReplicasThatAreNotMeasuredWriteNothingToTheMachine(t *testing.T) {
	obj := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(`{apiVersion: kubeflow.org/v1, kind: TFJob, metadata: {namespace: ml}, spec: {tfReplicaSpecs: {
Chief: {template: {spec: {containers: [{name: main, image: i, command: [train]}]}}},
Worker: {template: {spec: {containers: [{name: main, image: i, command: [train]}]}}}}}}`), &obj.Object); err != nil {
		t.Fatal(err)
	}
	c := collector(trainer.TensorFlowEvent)
	c.Binary, c.Path = "/opt/collector", "/logs/test"
	if err := trainer.Inject(obj, kind.For(obj.GroupVersionKind()), c); err != nil {
		t.Fatal(err)
	}
	for _, role := range []string{"Chief", "Worker"} {
		spec, _, err := unstructured.NestedMap(obj.Object, "spec", "tfReplicaSpecs", role, "template", "spec")
		if err != nil {
			t.Fatal(err)
		}
		main, _ := spec["containers"].([]any)[0].(map[string]any)
		mounts, _ := main["volumeMounts"].([]any)
		if !slices.ContainsFunc(mounts, func(m any) bool { return m.(map[string]any)["mountPath"] == "/logs/test" }) {
			t.Errorf("the %s mounts %v, want something at /logs/test", role, mounts)
		}
	}
}

func TestInjectCustomFaults(t *testing.T) {
	named := func(name string) func(*trainer.Collector) {
		return func(c *trainer.Collector) { c.Custom.Name = name }
	}
	tests := map[string]struct {
		spec   string
		path   string
		change func(*trainer.Collector)
		want   string
	}{
		"no container":              {change: func(c *trainer.Collector) { c.Custom = nil }, want: "the Custom collector has no container: write customCollector"},
		"the sidecar's name":        {change: named(trainer.Sidecar), want: `the container of the Custom collector is named "metrics-collector", which the sidecar beside it has: rename it`},
		"the program's name":        {change: named("main"), want: `the container name "main" is taken by the Custom collector: rename one of them`},
		"another container's name":  {spec: "containers: [{name: main, image: i}, {name: helper, image: i}]", change: named("helper"), want: `the container name "helper" is taken`},
		"an init container's name":  {spec: "initContainers: [{name: first, image: i}]\ncontainers: [{name: main, image: i}]", change: named("first"), want: `initContainers: the container name "first" is taken`},
		"the host's network":        {spec: "hostNetwork: true\ncontainers: [{name: main, image: i}]", want: "leave hostNetwork out"},
		"a file in the root":        {path: "/mnist.log", want: `the path "/mnist.log" of the Custom collector cannot be shared`},
		"a system directory":        {path: "/etc/mnist.log", want: "/etc, which the container needs: write the metrics to a directory of their own, for instance /etc/metrics/mnist.log"},
		"a path by the environment": {spec: "volumes: [{name: v, emptyDir: {}}]\ncontainers: [{name: main, image: i, volumeMounts: [{name: v, mountPath: /a, subPathExpr: $(X)}]}]", path: "/a/b", want: "subPathExpr"},
		"the collector's own place": {spec: "volumes: [{name: v, emptyDir: {}}]\ncontainers: [{name: main, image: i}]", path: "/var/run/vernier/x", want: "outside /var/run/vernier"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if tc.spec == "" {
				tc.spec = "containers: [{name: main, image: i}]"
			}
			obj := job(t, tc.spec)
			before := obj.DeepCopy()
			err := trainer.Inject(obj, kind.For(obj.GroupVersionKind()), withCustom(tc.path, tc.change))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
			if diff := cmp.Diff(before.Object, obj.Object); diff != "" {
				t.Errorf("the job was changed:\n%s", diff)
			}
		})
	}
}
