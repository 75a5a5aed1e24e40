package trainer_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/vernier-ml/vernier/trainer"
	"github.com/vernier-ml/vernier/trainer/kind"
)

func TestInjectMountsTheCollector(t *testing.T) {
	c := collector(trainer.StdOut)
	c.Mount, c.Grace, c.ImagePullPolicy = true, time.Minute, corev1.PullIfNotPresent
	got := injectedTwice(t, job(t, `
restartPolicy: Never
containers:
- name: main
  image: train
  command: [python3, -c, "print('a  b')"]
  args: ["--x=$(MINE)", ""]
  env: [{name: MINE, value: "1"}]
  terminationMessagePath: /tmp/end
`), c)
	grace := int64(60)
	want := corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: &grace,
		Containers: []corev1.Container{{
			Name: "main", Image: "train",
			Command: []string{"/var/run/vernier-collector/usr/local/bin/collector", "run", "--termination-log=/tmp/end", "--kind=StdOut", "--dir=/var/run/vernier",
				"--metric=loss", "--metric=acc=$$(x)", "--grace=55s", "--", "python3", "-c", "print('a  b')"},
			Args: []string{"--x=$(MINE)", ""},
			Env: []corev1.EnvVar{
				{Name: "MINE", Value: "1"},
				{Name: "KATIB_TRIAL_NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.labels['katib.kubeflow.org/trial']"}}},
				{Name: "VERNIER_REPORT_URL", Value: "https://manager:443"},
				{Name: "VERNIER_REPORT_TOKEN", Value: "tok$$en"},
				{Name: "VERNIER_REPORT_CA", Value: "PEM"},
				{Name: "VERNIER_POD_UID", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.uid"}}},
			},
			VolumeMounts: []corev1.VolumeMount{
				{Name: "vernier-metrics", MountPath: "/var/run/vernier"},
				{Name: "vernier-collector", MountPath: "/var/run/vernier-collector", ReadOnly: true},
			},
			TerminationMessagePath: "/tmp/end", TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		}},
		Volumes: []corev1.Volume{
			{Name: "vernier-metrics", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			{Name: "vernier-collector", VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: "collector:1", PullPolicy: corev1.PullIfNotPresent}}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A program with a span of its own keeps it.
func TestAMountedCollectorLeavesTheProgramsSpan(t *testing.T) {
	c := collector(trainer.StdOut)
	c.Mount, c.Traceparent = true, "00-ours"
	for env, want := range map[string]string{"[]": "00-ours", "[{name: TRACEPARENT, value: 00-theirs}]": "00-theirs"} {
		got := injected(t, job(t, `containers: [{name: main, image: train, command: [train], env: `+env+`}]`), c)
		for _, e := range got.Spec.Containers[0].Env {
			if e.Name == "TRACEPARENT" && e.Value != want {
				t.Errorf("%s gives %s, want %s", env, e.Value, want)
			}
		}
	}
}

func TestTheCollectorIsASidecarWhereItIsNotMounted(t *testing.T) {
	const spec = `containers: [{name: main, image: train, command: [train]}]`
	pod := func() *unstructured.Unstructured {
		tpl, _, err := unstructured.NestedMap(job(t, spec).Object, "spec", "template")
		if err != nil {
			t.Fatal(err)
		}
		tpl["apiVersion"], tpl["kind"] = "v1", "Pod"
		return &unstructured.Unstructured{Object: tpl}
	}
	other := job(t, spec)
	other.SetAPIVersion("example.com/v1")
	other.SetKind("Training")
	for name, tc := range map[string]struct {
		collector string
		inject    func(trainer.Collector) (*unstructured.Unstructured, error)
		at        []string
	}{
		"another collector": {trainer.File, func(c trainer.Collector) (*unstructured.Unstructured, error) {
			j := job(t, spec)
			return j, trainer.Inject(j, kind.For(j.GroupVersionKind()), c)
		}, []string{"spec", "template", "spec"}},
		"another kind of job": {trainer.StdOut, func(c trainer.Collector) (*unstructured.Unstructured, error) {
			return other, trainer.Inject(other, kind.For(other.GroupVersionKind()), c)
		}, []string{"spec", "template", "spec"}},
		"a pod that is injected when it is created": {trainer.StdOut, func(c trainer.Collector) (*unstructured.Unstructured, error) {
			p := pod()
			return p, trainer.InjectPod(p, "team", c)
		}, []string{"spec"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := collector(tc.collector)
			c.Mount = true
			got, err := tc.inject(c)
			if err != nil {
				t.Fatal(err)
			}
			sidecars, _, err := unstructured.NestedSlice(got.Object, append(tc.at, "initContainers")...)
			if err != nil || len(sidecars) != 1 {
				t.Errorf("sidecars %v, %v", sidecars, err)
			}
		})
	}
}
