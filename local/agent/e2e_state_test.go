package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/vernier-ml/vernier/local/shim"
)

func TestANewAgentFindsThePodsOfTheOldOne(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	file := filepath.Join(t.TempDir(), "go-on")
	late := filepath.Join(t.TempDir(), "late")
	r.create(r.pod("goes-on", "until test -e "+file+"; do sleep 0.02; done; echo through; exit 4"))
	r.create(r.pod("ended-alone", "until test -e "+late+"; do sleep 0.02; done; echo alone; exit 6"))
	running := r.awaitPhase("goes-on", corev1.PodRunning)
	alone := r.awaitPhase("ended-alone", corev1.PodRunning)
	r.create(r.pod("gone", "sleep 1000"))
	gone := r.awaitPhase("gone", corev1.PodRunning)
	r.stop(syscall.SIGKILL)

	touch(t, late)
	dir := layout{r.config.Root}.shim(alone.UID)
	eventually(t, "the program has ended while no agent ran", func() bool {
		state, err := shim.ReadState(dir)
		run, ok := state.Latest("main")
		return err == nil && ok && run.Phase == shim.Exited
	})
	if err := r.client.CoreV1().Pods(r.namespace).Delete(t.Context(), "gone", metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}); err != nil {
		t.Fatal(err)
	}
	state, err := shim.ReadState(layout{r.config.Root}.shim(gone.UID))
	if err != nil {
		t.Fatal(err)
	}
	orphan, _ := state.Latest("main")

	r.start()
	got := r.awaitPhase("ended-alone", corev1.PodFailed)
	if code := got.Status.ContainerStatuses[0].State.Terminated.ExitCode; code != 6 {
		t.Errorf("exit code %d, want 6", code)
	}
	still := r.get("goes-on")
	if diff := cmp.Diff(running.Status.ContainerStatuses, still.Status.ContainerStatuses); diff != "" {
		t.Errorf("the running pod changed (-before +after):\n%s", diff)
	}
	touch(t, file)
	got = r.awaitPhase("goes-on", corev1.PodFailed)
	if s := got.Status.ContainerStatuses[0]; s.State.Terminated.ExitCode != 4 || s.RestartCount != 0 {
		t.Errorf("status %+v, want exit code 4 and no restart", s)
	}
	if got := r.logs("goes-on", corev1.PodLogOptions{}); got != "through\n" {
		t.Errorf("log = %q", got)
	}
	eventually(t, "the process of the pod that is gone has ended", func() bool {
		return syscall.Kill(orphan.PID, 0) != nil
	})
	eventually(t, "its directory is removed", func() bool {
		_, err := os.Stat(layout{r.config.Root}.pod(gone.UID))
		return os.IsNotExist(err)
	})
}

func TestAShimThatIsKilledFailsItsPodAsDisrupted(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.create(r.pod("lost", "sleep 1000"))
	pod := r.awaitPhase("lost", corev1.PodRunning)
	state, err := shim.ReadState(layout{r.config.Root}.shim(pod.UID))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(state.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	got := r.awaitPhase("lost", corev1.PodFailed)
	if s := got.Status.ContainerStatuses[0].State.Terminated; s.ExitCode != 137 || s.Reason != shim.ReasonLost {
		t.Errorf("state = %+v", s)
	}
	if c := findCondition(got.Status.Conditions, corev1.DisruptionTarget); c == nil || c.Status != corev1.ConditionTrue {
		t.Errorf("conditions = %+v, want DisruptionTarget", got.Status.Conditions)
	}
}

func TestConfigurationReachesThePod(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	core := r.client.CoreV1()
	if _, err := core.Secrets(r.namespace).Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}, StringData: map[string]string{"token": "t0p"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := core.ServiceAccounts(r.namespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pod := r.pod("reads", `echo $A $B $C $D; cat /vernier/cfg/rate; cat /vernier/all/secret /vernier/all/labels; echo; test -s /vernier/all/token && echo has token; `+
		`echo x > /vernier/scratch/sub/f && cat /vernier/whole/here/f; (echo y > /vernier/cfg/rate) 2>/dev/null || echo read-only`)
	pod.Labels = map[string]string{"app": "x"}
	pod.Spec.ServiceAccountName = "default"
	c := &pod.Spec.Containers[0]
	c.EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "c"}}}}
	c.Env = []corev1.EnvVar{
		{Name: "A", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "s"}, Key: "token"}}},
		{Name: "B", Value: "$(A)-$(rate)"},
		{Name: "C", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}},
		{Name: "D", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.cpu", Divisor: resource.MustParse("1m")}}},
	}
	pod.Spec.Volumes = []corev1.Volume{
		{Name: "cfg", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "c"}}}},
		{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		{Name: "all", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "s"}, Items: []corev1.KeyToPath{{Key: "token", Path: "secret"}}}},
			{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{Path: "labels", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels"}}}}},
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", Audience: "vernier", ExpirationSeconds: ptr.To[int64](600)}},
		}}}},
	}
	c.VolumeMounts = []corev1.VolumeMount{
		{Name: "cfg", MountPath: "/vernier/cfg"}, {Name: "all", MountPath: "/vernier/all"},
		{Name: "scratch", MountPath: "/vernier/scratch/sub", SubPath: "here"}, {Name: "scratch", MountPath: "/vernier/whole"},
	}
	r.create(pod)
	// The ConfigMap comes late: the pod waits for it, and does not fail.
	eventually(t, "an event says that the volume cannot be made", func() bool {
		events, err := core.Events(r.namespace).List(t.Context(), metav1.ListOptions{})
		return err == nil && slices.ContainsFunc(events.Items, func(e corev1.Event) bool { return e.Reason == "FailedMount" })
	})
	if _, err := core.ConfigMaps(r.namespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Data: map[string]string{"rate": "0.1"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	r.awaitPhase("reads", corev1.PodSucceeded)
	want := "t0p t0p-0.1 127.0.0.1 8000\n0.1t0papp=\"x\"\nhas token\nx\n"
	if got := r.logs("reads", corev1.PodLogOptions{}); !strings.HasPrefix(got, want) || !strings.Contains(got, "read-only") {
		t.Errorf("log = %q, want %q and that the ConfigMap is read-only", got, want)
	}
}

// Our own programs may lie anywhere, also where a user mounts a volume.
func TestProgramsAreFoundBelowAVolume(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	bin := filepath.Join(home, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	tool := filepath.Join(bin, "vernier-test-tool")
	if err := os.WriteFile(tool, []byte("#!/bin/sh\necho found; ls -A "+home+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	r := newRig(t, func(c *Config) { c.Path = []string{bin} })
	for name, command := range map[string]string{"by-name": filepath.Base(tool), "by-path": tool} {
		pod := r.pod(name, "")
		pod.Spec.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
		pod.Spec.Containers[0].Command = []string{command}
		pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "scratch", MountPath: home}}
		r.create(pod)
	}
	for _, name := range []string{"by-name", "by-path"} {
		r.awaitPhase(name, corev1.PodSucceeded)
		if got := r.logs(name, corev1.PodLogOptions{}); got != "found\nbin\n" {
			t.Errorf("%s: log = %q", name, got)
		}
	}
}

func TestAMissingSecretIsWaitedFor(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	pod := r.pod("waits", "echo $KEY")
	pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "KEY", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "late"}, Key: "k"}}}}
	r.create(pod)
	got := r.await("waits", "the container waits", func(p *corev1.Pod) bool {
		return len(p.Status.ContainerStatuses) > 0 && p.Status.ContainerStatuses[0].State.Waiting != nil &&
			p.Status.ContainerStatuses[0].State.Waiting.Reason == "CreateContainerConfigError"
	})
	if got.Status.Phase != corev1.PodPending {
		t.Errorf("phase = %s, want Pending", got.Status.Phase)
	}
	if _, err := r.client.CoreV1().Secrets(r.namespace).Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "late"}, StringData: map[string]string{"k": "v"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	r.awaitPhase("waits", corev1.PodSucceeded)
	if got := r.logs("waits", corev1.PodLogOptions{}); got != "v\n" {
		t.Errorf("log = %q", got)
	}
}

// The test does what the volume controller of Kubernetes does: it names the
// provisioner, binds and releases.
func TestAClaimIsADirectoryThatOutlivesPods(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	claims, volumes := r.client.CoreV1().PersistentVolumeClaims(r.namespace), r.client.CoreV1().PersistentVolumes()
	claim, err := claims.Create(t.Context(), &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "data", Annotations: map[string]string{"volume.kubernetes.io/storage-provisioner": provisionerOf(r.config.StorageClass)}},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}, StorageClassName: ptr.To(r.config.StorageClass),
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	volume := "pvc-" + string(claim.UID)
	eventually(t, "there is a volume", func() bool {
		got, err := volumes.Get(t.Context(), volume, metav1.GetOptions{})
		return err == nil && got.Spec.ClaimRef != nil && got.Spec.ClaimRef.UID == claim.UID
	})
	claim.Spec.VolumeName = volume
	if claim, err = claims.Update(t.Context(), claim, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	claim.Status.Phase = corev1.ClaimBound
	if _, err := claims.UpdateStatus(t.Context(), claim, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	with := func(name, script string) *corev1.Pod {
		pod := r.pod(name, script)
		pod.Spec.Volumes = []corev1.Volume{{Name: "d", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
		pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "d", MountPath: "/vernier/data"}}
		return pod
	}
	r.create(with("writes", "echo kept > /vernier/data/f"))
	r.awaitPhase("writes", corev1.PodSucceeded)
	r.create(with("reads", "cat /vernier/data/f"))
	r.awaitPhase("reads", corev1.PodSucceeded)
	if got := r.logs("reads", corev1.PodLogOptions{}); got != "kept\n" {
		t.Errorf("log = %q", got)
	}
	if _, err := claims.Patch(t.Context(), "data", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := claims.Delete(t.Context(), "data", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for subresource, patch := range map[string]string{"": `{"metadata":{"finalizers":null}}`, "status": `{"status":{"phase":"Released"}}`} {
		if _, err := volumes.Patch(t.Context(), volume, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, subresource); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the volume and its directory are removed", func() bool {
		_, gone := volumes.Get(t.Context(), volume, metav1.GetOptions{})
		dirs, err := filepath.Glob(filepath.Join(r.config.Root, "claims", "*", "*"))
		return apierrors.IsNotFound(gone) && err == nil && len(dirs) == 0
	})
}

func TestGPUsAreGivenOutByUUIDAndComeBack(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *Config) { c.GPUs = []string{"GPU-a", "GPU-b"} })
	node, err := r.client.CoreV1().Nodes().Get(t.Context(), r.node, metav1.GetOptions{})
	if err != nil || node.Status.Allocatable[resourceGPU] != resource.MustParse("2") {
		t.Fatalf("allocatable %v, %v", node.Status.Allocatable, err)
	}
	show := "echo [$CUDA_VISIBLE_DEVICES] $CUDA_DEVICE_ORDER"
	want := map[string]string{}
	for i := range 3 {
		name := fmt.Sprintf("gpu-%d", i)
		pod := r.pod(name, show)
		if i < 2 {
			pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{resourceGPU: *resource.NewQuantity(int64(i+1), resource.DecimalSI)}
		}
		r.create(pod)
		r.awaitPhase(name, corev1.PodSucceeded)
		want[name] = []string{"[GPU-a] PCI_BUS_ID\n", "[GPU-a,GPU-b] PCI_BUS_ID\n", "[] PCI_BUS_ID\n"}[i]
	}
	for name, text := range want {
		if got := r.logs(name, corev1.PodLogOptions{}); got != text {
			t.Errorf("%s: log = %q, want %q", name, got, text)
		}
	}
	var held map[string]any
	if err := json.Unmarshal([]byte(readFile(t, filepath.Join(r.config.Root, "gpus.json"))), &held); err != nil || len(held) != 0 {
		t.Errorf("held at the end: %v, %v", held, err)
	}
}

func TestLogsOutliveTheirPod(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	pod := r.pod("trial-0001-x", "echo loss=0.5")
	pod.Labels = map[string]string{labelTrial: "trial-0001"}
	r.create(pod)
	r.awaitPhase(pod.Name, corev1.PodSucceeded)
	if err := r.client.CoreV1().Pods(r.namespace).Delete(t.Context(), pod.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	var logs []ArchivedLog
	eventually(t, "the log is in the archive", func() bool {
		var err error
		logs, err = ReadArchivedLogs(r.config.Root, r.namespace, "trial-0001", "main")
		if err != nil {
			t.Fatal(err)
		}
		return len(logs) == 1
	})
	var text bytes.Buffer
	if err := logs[0].Copy(&text); err != nil || text.String() != "loss=0.5\n" {
		t.Errorf("text %q, %v", text.String(), err)
	}
	eventually(t, "the pod's directory is removed", func() bool {
		left, err := os.ReadDir(filepath.Join(r.config.Root, "pods"))
		return err == nil && len(left) == 0
	})
}

func TestAHungShimDoesNotHoldItsPod(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	pod := r.create(r.pod("hung", "echo up; while :; do sleep 0.02; done"))
	r.awaitPhase("hung", corev1.PodRunning)
	state, err := shim.ReadState(layout{r.config.Root}.shim(pod.UID))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(state.PID, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	grace := int64(1)
	if err := r.client.CoreV1().Pods(r.namespace).Delete(t.Context(), "hung", metav1.DeleteOptions{GracePeriodSeconds: &grace}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the pod is gone", func() bool {
		_, err := r.client.CoreV1().Pods(r.namespace).Get(t.Context(), "hung", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	run, ok := state.Latest("main")
	if !ok {
		t.Fatalf("the shim did not know its program: %+v", state)
	}
	eventually(t, "the program has ended and was reaped", func() bool { return syscall.Kill(run.PID, 0) != nil })
}
