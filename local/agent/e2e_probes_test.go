package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/vernier-ml/vernier/trainer"
)

func TestWhatTheNodeCannotRunFailsClearly(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	tests := map[string]struct {
		change     func(*corev1.Pod)
		wantReason string
		wantText   string
	}{
		"more cpu than there is": {func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("64")}
		}, "OutOfcpu", "requested: 64000"},
		"no command":                    {func(p *corev1.Pod) { p.Spec.Containers[0].Command, p.Spec.Containers[0].Args = nil, []string{"x"} }, "NoCommand", "give a command"},
		"a program that does not exist": {func(p *corev1.Pod) { p.Spec.Containers[0].Command = []string{"no-such-program"} }, "", "no-such-program"},
		"a directory with files that the collector would hide": {func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: trainer.SourceVolume, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
			p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: trainer.SourceVolume, MountPath: world.dir}}
		}, trainer.ReasonDirectoryHidden, "has files on this machine"},
		"too long": {func(p *corev1.Pod) {
			p.Spec.Containers[0] = shell("main", "sleep 1000")
			p.Spec.ActiveDeadlineSeconds = ptr.To[int64](1)
		}, "DeadlineExceeded", "active"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := &rig{t: t, client: r.client, node: r.node, namespace: r.namespace}
			pod := r.pod(lowerName(t)[20:], "true")
			test.change(pod)
			r.create(pod)
			got := r.awaitPhase(pod.Name, corev1.PodFailed)
			text := got.Status.Message
			if s := got.Status.ContainerStatuses[0].State.Terminated; s != nil {
				text += s.Message
			}
			if got.Status.Reason != test.wantReason || !strings.Contains(text, test.wantText) {
				t.Errorf("reason %q, text %q; want %q, %q", got.Status.Reason, text, test.wantReason, test.wantText)
			}
		})
	}
}

func TestProtectionIsHonoured(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	outside := t.TempDir()
	pod := r.pod("protected", "(: > "+outside+"/f) 2>/dev/null || echo refused; grep CapEff /proc/self/status")
	pod.Spec.HostAliases = []corev1.HostAlias{{IP: "10.0.0.1", Hostnames: []string{"db"}}}
	pod.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{ReadOnlyRootFilesystem: ptr.To(true), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}
	r.create(pod)
	r.awaitPhase("protected", corev1.PodSucceeded)
	if got := r.logs("protected", corev1.PodLogOptions{}); got != "refused\nCapEff:\t0000000000000000\n" {
		t.Errorf("log = %q", got)
	}
	eventually(t, "what has no effect is told", func() bool {
		events, err := r.client.CoreV1().Events(r.namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "reason=Ignored"})
		return err == nil && len(events.Items) == 1 && strings.Contains(events.Items[0].Message, "hostAliases")
	})
}

func TestProbesDecideReadinessAndRestarts(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	dir := t.TempDir()
	pod := r.pod("probed", "echo up; trap 'exit 0' TERM; while :; do sleep 0.02; done")
	pod.Spec.RestartPolicy = corev1.RestartPolicyAlways
	c := &pod.Spec.Containers[0]
	exists := func(name string) *corev1.Probe {
		return &corev1.Probe{PeriodSeconds: 1, TimeoutSeconds: 60, FailureThreshold: 1, ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"test", "-e", filepath.Join(dir, name)}}}}
	}
	c.ReadinessProbe, c.LivenessProbe = exists("ready"), exists("live")
	touch(t, filepath.Join(dir, "live"))
	r.create(pod)
	ready := func(p *corev1.Pod) bool {
		cond := findCondition(p.Status.Conditions, corev1.PodReady)
		return cond != nil && cond.Status == corev1.ConditionTrue
	}
	if got := r.awaitPhase("probed", corev1.PodRunning); ready(got) {
		t.Error("ready before its probe passed")
	}
	touch(t, filepath.Join(dir, "ready"))
	r.await("probed", "the pod is ready", ready)
	if err := os.Remove(filepath.Join(dir, "live")); err != nil {
		t.Fatal(err)
	}
	r.await("probed", "the container was restarted", func(p *corev1.Pod) bool { return p.Status.ContainerStatuses[0].RestartCount == 1 })
}

// An empty directory at /tmp is the usual place for what a probe looks at.
func TestProbesAndHooksSeeTheFilesOfTheirContainer(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	pod := r.pod("inside", "touch /tmp/healthy; trap 'exit 0' TERM; while :; do sleep 0.02; done")
	pod.Spec.Volumes = []corev1.Volume{{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	c := &pod.Spec.Containers[0]
	c.VolumeMounts = []corev1.VolumeMount{{Name: "tmp", MountPath: "/tmp"}}
	sees := func(file string) corev1.ProbeHandler {
		return corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"/bin/sh", "-c", "while ! test -e " + file + "; do sleep 0.02; done; touch /tmp/probed"}}}
	}
	c.ReadinessProbe = &corev1.Probe{PeriodSeconds: 1, TimeoutSeconds: 60, ProbeHandler: sees("/tmp/healthy")}
	r.create(pod)
	r.await("inside", "the probe finds the container's file", func(p *corev1.Pod) bool {
		cond := findCondition(p.Status.Conditions, corev1.PodReady)
		return cond != nil && cond.Status == corev1.ConditionTrue
	})
	if exists("/tmp/probed") {
		t.Error("the probe wrote to the machine's /tmp")
	}
}
