package trainer_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/vernier-ml/vernier/trainer"
	"github.com/vernier-ml/vernier/trainer/kind"
)

// job is a batch/v1 Job around the YAML of a pod spec.
func job(t *testing.T, podSpec string) *unstructured.Unstructured {
	t.Helper()
	var spec map[string]any
	if err := yaml.Unmarshal([]byte(podSpec), &spec); err != nil {
		t.Fatal(err)
	}
	raw, err := yaml.Marshal(map[string]any{
		"apiVersion": "batch/v1", "kind": "Job",
		"spec": map[string]any{"template": map[string]any{"spec": spec}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if raw, err = yaml.YAMLToJSON(raw); err != nil {
		t.Fatal(err)
	}
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON(raw); err != nil {
		t.Fatal(err)
	}
	return obj
}

// injected injects c into the job and returns the pod template as Kubernetes
// reads it.
func injected(t *testing.T, obj *unstructured.Unstructured, c trainer.Collector) corev1.PodTemplateSpec {
	t.Helper()
	if err := trainer.Inject(obj, kind.For(obj.GroupVersionKind()), c); err != nil {
		t.Fatal(err)
	}
	tpl, _, err := unstructured.NestedMap(obj.Object, "spec", "template")
	if err != nil {
		t.Fatal(err)
	}
	var typed corev1.PodTemplateSpec
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(tpl, &typed, true); err != nil {
		t.Fatal(err)
	}
	return typed
}

// injectedTwice is injected, and verifies that a second injection changes nothing.
func injectedTwice(t *testing.T, obj *unstructured.Unstructured, c trainer.Collector) corev1.PodSpec {
	t.Helper()
	got := injected(t, obj, c)
	once := obj.DeepCopy()
	injected(t, obj, c)
	if diff := cmp.Diff(once.Object, obj.Object); diff != "" {
		t.Errorf("the second injection changes the job (-once +twice):\n%s", diff)
	}
	return got.Spec
}

func collector(kind string) trainer.Collector {
	c := trainer.Collector{
		Image: "collector:1", Kind: kind, Metrics: []string{"loss", "acc=$(x)"},
		Experiment: "exp", Trial: "exp-0001", Number: 1,
		ReportURL: "https://manager:443", Token: "tok$en", CA: "PEM",
		PrimaryContainer: "main",
	}
	switch kind {
	case trainer.File:
		c.Path = "/data/out/metrics.log"
	case trainer.TensorFlowEvent:
		c.Path = "/data/events/"
	}
	return c
}

func TestInjectStdOut(t *testing.T) {
	c := collector(trainer.StdOut)
	c.Filters, c.Format, c.Grace = []string{`(\w+)=(.*)$`}, "TEXT", time.Minute
	c.Resources = corev1.ResourceRequirements{Limits: corev1.ResourceList{"memory": resource.MustParse("50Mi")}}
	got := injected(t, job(t, `
restartPolicy: Never
securityContext: {fsGroup: 5}
initContainers: [{name: fetch, image: data}]
containers:
- name: main
  image: train
  command: [python3, -c, "print('a  b'); import os # c"]
  args: ["--x=$(Y)", ""]
  securityContext: {runAsUser: 1000, runAsGroup: 100, privileged: true, capabilities: {add: [SYS_ADMIN], drop: [ALL]}}
`), c)
	metrics := []corev1.VolumeMount{{Name: "vernier-metrics", MountPath: "/var/run/vernier"}}
	user, group, always, grace := int64(1000), int64(100), corev1.ContainerRestartPolicyAlways, int64(60)
	fsGroup := int64(5)
	yes, no := true, false
	context := &corev1.SecurityContext{
		RunAsUser: &user, RunAsGroup: &group, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes, SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	want := corev1.PodSpec{
		RestartPolicy:                 corev1.RestartPolicyNever,
		SecurityContext:               &corev1.PodSecurityContext{FSGroup: &fsGroup},
		TerminationGracePeriodSeconds: &grace,
		InitContainers: []corev1.Container{
			{Name: "fetch", Image: "data"},
			{
				Name: "metrics-logger-and-collector", Image: "collector:1", Resources: c.Resources,
				Command: []string{"collector", "run"},
				Args: []string{
					"--kind=StdOut", "--dir=/var/run/vernier", "--install=/var/run/vernier/bin/collector", "--format=TEXT", `--filter=(\w+)=(.*)$$`,
					"--metric=loss", "--metric=acc=$$(x)", "--grace=55s",
				},
				Env: []corev1.EnvVar{
					{Name: "VERNIER_REPORT_URL", Value: "https://manager:443"},
					{Name: "VERNIER_REPORT_TOKEN", Value: "tok$$en"},
					{Name: "VERNIER_REPORT_CA", Value: "PEM"},
					{Name: "VERNIER_POD_UID", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.uid"}}},
				},
				Lifecycle: &corev1.Lifecycle{PostStart: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{
					Command: []string{"collector", "await", "--dir=/var/run/vernier"},
				}}},
				RestartPolicy: &always, VolumeMounts: metrics, SecurityContext: context,
				TerminationMessagePath: "/dev/termination-log", TerminationMessagePolicy: corev1.TerminationMessageReadFile,
			},
		},
		Containers: []corev1.Container{{
			Name: "main", Image: "train",
			Command: []string{"/var/run/vernier/bin/collector", "exec", "--dir=/var/run/vernier", "--", "python3", "-c", "print('a  b'); import os # c"},
			Args:    []string{"--x=$(Y)", ""},
			Env: []corev1.EnvVar{{Name: "KATIB_TRIAL_NAME", ValueFrom: &corev1.EnvVarSource{
				FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.labels['katib.kubeflow.org/trial']"}}}},
			VolumeMounts:             metrics,
			TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
			SecurityContext: &corev1.SecurityContext{RunAsUser: &user, RunAsGroup: &group, Privileged: &yes,
				Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"SYS_ADMIN"}, Drop: []corev1.Capability{"ALL"}}},
		}},
		Volumes: []corev1.Volume{{Name: "vernier-metrics", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
	}
	if diff := cmp.Diff(want, got.Spec); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestInjectInstallsNothingWhereTheCollectorIs(t *testing.T) {
	c := collector(trainer.StdOut)
	c.Binary = "/opt/vernier/collector"
	obj := job(t, "containers: [{name: main, image: i, command: [train]}]")
	injected(t, obj, c)
	got := injected(t, obj, c)
	if n := len(got.Spec.InitContainers); n != 1 || got.Spec.InitContainers[0].Name != trainer.SidecarLogger {
		t.Errorf("%d init containers, want the sidecar alone", n)
	}
	if h := hook(got.Spec.InitContainers[0]); h != nil {
		t.Errorf("the sidecar has the hook %q", h)
	}
	want := []string{"/opt/vernier/collector", "exec", "--dir=/var/run/vernier", "--", "train"}
	if diff := cmp.Diff(want, got.Spec.Containers[0].Command); diff != "" {
		t.Errorf("command (-want +got)\n%s", diff)
	}
}

// place is where the sidecar and the primary container see the metrics.
type place struct {
	Main, Sidecar []corev1.VolumeMount
	Volumes       []string
}

func TestInjectSharesWhatTheProgramWrites(t *testing.T) {
	own := corev1.VolumeMount{Name: "vernier-metrics", MountPath: "/var/run/vernier"}
	tests := map[string]struct {
		kind, mounts string
		want         place
	}{
		"a file gets an empty directory": {
			kind: trainer.File, mounts: "[]",
			want: place{
				Main:    []corev1.VolumeMount{{Name: "vernier-source", MountPath: "/data/out"}},
				Sidecar: []corev1.VolumeMount{own, {Name: "vernier-source", MountPath: "/data/out"}},
				Volumes: []string{"vernier-source", "vernier-metrics"},
			},
		},
		"events get an empty directory": {
			kind: trainer.TensorFlowEvent, mounts: "[]",
			want: place{
				Main:    []corev1.VolumeMount{{Name: "vernier-source", MountPath: "/data/events"}},
				Sidecar: []corev1.VolumeMount{own, {Name: "vernier-source", MountPath: "/data/events"}},
				Volumes: []string{"vernier-source", "vernier-metrics"},
			},
		},
		"a mount of the user above the file is shared": {
			kind: trainer.File, mounts: "[{name: pvc, mountPath: /data/, subPath: a}, {name: other, mountPath: /dat}]",
			want: place{
				Main:    []corev1.VolumeMount{{Name: "pvc", MountPath: "/data/", SubPath: "a"}, {Name: "other", MountPath: "/dat"}},
				Sidecar: []corev1.VolumeMount{own, {Name: "pvc", MountPath: "/data/", SubPath: "a", ReadOnly: true}},
				Volumes: []string{"vernier-metrics"},
			},
		},
		"a mount of the file itself is shared": {
			kind: trainer.File, mounts: "[{name: pvc, mountPath: /data/out/metrics.log}]",
			want: place{
				Main:    []corev1.VolumeMount{{Name: "pvc", MountPath: "/data/out/metrics.log"}},
				Sidecar: []corev1.VolumeMount{own, {Name: "pvc", MountPath: "/data/out/metrics.log", ReadOnly: true}},
				Volumes: []string{"vernier-metrics"},
			},
		},
		"a mount below the directory is shared beside the empty directory": {
			kind: trainer.TensorFlowEvent, mounts: "[{name: pvc, mountPath: /data/events/train}]",
			want: place{
				Main:    []corev1.VolumeMount{{Name: "pvc", MountPath: "/data/events/train"}, {Name: "vernier-source", MountPath: "/data/events"}},
				Sidecar: []corev1.VolumeMount{own, {Name: "vernier-source", MountPath: "/data/events"}, {Name: "pvc", MountPath: "/data/events/train", ReadOnly: true}},
				Volumes: []string{"vernier-source", "vernier-metrics"},
			},
		},
		"a program that pushes sees the socket": {
			kind: trainer.Push, mounts: "[]",
			want: place{
				Main:    []corev1.VolumeMount{own},
				Sidecar: []corev1.VolumeMount{own},
				Volumes: []string{"vernier-metrics"},
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := injectedTwice(t, job(t, "containers: [{name: main, image: i, args: [x], volumeMounts: "+tc.mounts+"}]"), collector(tc.kind))
			main := got.Containers[0]
			if main.Command != nil {
				t.Errorf("the command was wrapped: %q", main.Command)
			}
			p := place{Main: main.VolumeMounts, Sidecar: got.InitContainers[0].VolumeMounts}
			for _, v := range got.Volumes {
				p.Volumes = append(p.Volumes, v.Name)
			}
			if diff := cmp.Diff(tc.want, p); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if diff := cmp.Diff([]string{"collector", "await", "--dir=/var/run/vernier"}, hook(got.InitContainers[0])); diff != "" {
				t.Errorf("the program does not wait for the sidecar (-want +got):\n%s", diff)
			}
			if len(got.InitContainers) != 1 {
				t.Errorf("%d init containers, want the sidecar alone", len(got.InitContainers))
			}
		})
	}
}

// hook is what the kubelet runs before it starts the next container.
func hook(c corev1.Container) []string {
	if c.Lifecycle == nil || c.Lifecycle.PostStart == nil || c.Lifecycle.PostStart.Exec == nil {
		return nil
	}
	return c.Lifecycle.PostStart.Exec.Command
}

func TestInjectKeepsTheUsersGracePeriod(t *testing.T) {
	for text, want := range map[string]string{"7": "--grace=2s", "100": "--grace=1m35s", "0": "--grace=2s"} {
		c := collector(trainer.Push)
		c.Grace = time.Minute
		got := injected(t, job(t, "terminationGracePeriodSeconds: "+text+"\ncontainers: [{name: main, image: i}]"), c)
		args := got.Spec.InitContainers[0].Args
		if args[len(args)-1] != want {
			t.Errorf("grace period %s: %s, want %s", text, args[len(args)-1], want)
		}
	}
}

func TestInjectRerunsDisruptedPodsWhereAskedTo(t *testing.T) {
	for _, asked := range []bool{false, true} {
		c := collector(trainer.StdOut)
		c.RerunDisrupted = asked
		j := job(t, "restartPolicy: Never\ncontainers: [{name: main, image: i, command: [train]}]")
		if err := trainer.Inject(j, kind.For(j.GroupVersionKind()), c); err != nil {
			t.Fatal(err)
		}
		if _, has, err := unstructured.NestedMap(j.Object, "spec", "podFailurePolicy"); err != nil || has != asked {
			t.Errorf("asked %v, has a podFailurePolicy: %v (%v)", asked, has, err)
		}
	}
}

func TestInjectPassesTheCapOnTheRate(t *testing.T) {
	for rate, want := range map[int64]string{0: "", 5: "--rate=5", -1: "--rate=0"} {
		c := collector(trainer.StdOut)
		c.Rate = rate
		got := ""
		for _, arg := range injected(t, job(t, "containers: [{name: main, image: i, command: [train]}]"), c).Spec.InitContainers[0].Args {
			if strings.HasPrefix(arg, "--rate") {
				got = arg
			}
		}
		if got != want {
			t.Errorf("a rate of %d gives %q, want %q", rate, got, want)
		}
	}
}

// What a program that is root writes as another user, only root's capabilities read.
func TestASidecarOfRootKeepsItsCapabilities(t *testing.T) {
	for name, spec := range map[string]string{
		"root by its container":  "containers: [{name: main, image: i, command: [a], securityContext: {runAsUser: 0}}]",
		"root by its pod":        "securityContext: {runAsUser: 0}\ncontainers: [{name: main, image: i, command: [a]}]",
		"its image says who":     "containers: [{name: main, image: i, command: [a]}]",
		"another, in roots' pod": "securityContext: {runAsUser: 0}\ncontainers: [{name: main, image: i, command: [a], securityContext: {runAsUser: 7}}]",
	} {
		t.Run(name, func(t *testing.T) {
			c := injectedTwice(t, job(t, spec), collector(trainer.StdOut)).InitContainers[0].SecurityContext
			dropped := c != nil && c.Capabilities != nil && len(c.Capabilities.Drop) > 0
			if want := !strings.HasPrefix(name, "root"); dropped != want {
				t.Errorf("capabilities dropped: %v, want %v", dropped, want)
			}
		})
	}
}
