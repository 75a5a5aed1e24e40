package agent

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
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
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/utils/ptr"
)

// rig is one node with its agent, and a namespace for its pods.
type rig struct {
	t         testing.TB
	client    kubernetes.Interface
	node      string
	namespace string
	config    Config
	agent     *exec.Cmd // nil: none runs
	done      chan error
}

func newRig(t testing.TB, change func(*Config)) *rig {
	t.Helper()
	client := needCluster(t)
	name := lowerName(t)
	ns, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: name + "-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, client: client, node: ns.Name, namespace: ns.Name, config: Config{
		REST: world.rest, ListenAddress: "127.0.0.1:0", NodeName: ns.Name, Root: filepath.Join(t.TempDir(), "root"), ShimBinary: world.shim,
		CPU: resource.MustParse("8"), Memory: resource.MustParse("8Gi"), GPUs: []string{},
		// The agents of tests that run side by side keep off each other's claims.
		StorageClass: ns.Name,
		CertFile:     filepath.Join(world.dir, "server.crt"), KeyFile: filepath.Join(world.dir, "server.key"),
		ClientCAFile: filepath.Join(world.dir, "ca.crt"),
	}}
	if change != nil {
		change(&r.config)
	}
	t.Cleanup(func() {
		r.stop(syscall.SIGINT)
		if err := StopPods(context.Background(), r.config.Root); err != nil {
			t.Error(err)
		}
	})
	r.start()
	return r
}

// pod returns a pod of the rig's node that runs a shell script.
func (r *rig) pod(name, script string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: r.namespace},
		Spec: corev1.PodSpec{
			NodeName: r.node, RestartPolicy: corev1.RestartPolicyNever, AutomountServiceAccountToken: ptr.To(false),
			Containers: []corev1.Container{shell("main", script)},
		},
	}
}

func shell(name, script string) corev1.Container {
	return corev1.Container{Name: name, Image: "host", Command: []string{"/bin/sh", "-c", script}}
}

func sidecar(name, script string) corev1.Container {
	c := shell(name, script)
	c.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
	return c
}

func (r *rig) create(pod *corev1.Pod) *corev1.Pod {
	r.t.Helper()
	created, err := r.client.CoreV1().Pods(r.namespace).Create(r.t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	return created
}

func (r *rig) get(name string) *corev1.Pod {
	r.t.Helper()
	pod, err := r.client.CoreV1().Pods(r.namespace).Get(r.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	return pod
}

func (r *rig) await(name, what string, holds func(*corev1.Pod) bool) *corev1.Pod {
	r.t.Helper()
	var pod *corev1.Pod
	eventually(r.t, what, func() bool {
		pod = r.get(name)
		return holds(pod)
	})
	return pod
}

func (r *rig) awaitPhase(name string, phase corev1.PodPhase) *corev1.Pod {
	r.t.Helper()
	var pod *corev1.Pod
	defer func() {
		if r.t.Failed() && pod != nil {
			r.t.Logf("status: %+v", pod.Status)
		}
	}()
	return r.await(name, "pod "+name+" is "+string(phase), func(p *corev1.Pod) bool { pod = p; return p.Status.Phase == phase })
}

func (r *rig) logs(name string, opts corev1.PodLogOptions) string {
	r.t.Helper()
	if opts.Container == "" {
		opts.Container = "main"
	}
	data, err := r.client.CoreV1().Pods(r.namespace).GetLogs(name, &opts).DoRaw(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	return string(data)
}

func (r *rig) awaitGone(name string) {
	r.t.Helper()
	eventually(r.t, "pod "+name+" is gone", func() bool {
		_, err := r.client.CoreV1().Pods(r.namespace).Get(r.t.Context(), name, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}

func TestPodsRunToTheirEnd(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	tests := map[string]struct {
		script     string
		wantPhase  corev1.PodPhase
		wantCode   int32
		wantReason string
		wantLog    string
	}{
		"a program that succeeds":    {"echo hello", corev1.PodSucceeded, 0, "Completed", "hello\n"},
		"a program that fails":       {"echo oops >&2; exit 3", corev1.PodFailed, 3, "Error", "oops\n"},
		"a program killed by itself": {"kill -9 $$$$", corev1.PodFailed, 137, "Error", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := &rig{t: t, client: r.client, node: r.node, namespace: r.namespace}
			pod := r.create(r.pod(lowerName(t)[20:], test.script))
			pod = r.awaitPhase(pod.Name, test.wantPhase)
			got := pod.Status.ContainerStatuses[0].State.Terminated
			if got == nil {
				t.Fatalf("state: %+v", pod.Status.ContainerStatuses[0].State)
			}
			if diff := cmp.Diff([]any{test.wantCode, test.wantReason}, []any{got.ExitCode, got.Reason}); diff != "" {
				t.Errorf("terminated (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.wantLog, r.logs(pod.Name, corev1.PodLogOptions{})); diff != "" {
				t.Errorf("log (-want +got):\n%s", diff)
			}
			if pod.Status.PodIP != "127.0.0.1" || pod.Status.HostIP != "127.0.0.1" || pod.Status.StartTime == nil {
				t.Errorf("addresses and start time are missing: %+v", pod.Status)
			}
		})
	}
}

func TestInitContainersAndSidecarsKeepTheirOrder(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	file := filepath.Join(t.TempDir(), "order")
	say := func(s string) string { return "echo " + s + " >> " + file + "; " }
	side := func(name string) corev1.Container {
		return sidecar(name, "trap '"+say(name+"-term")+"exit 0' TERM; "+say(name+"-up")+"while :; do sleep 0.02; done")
	}
	pod := r.pod("order", say("main")+"until grep -q side1-up "+file+" && grep -q side2-up "+file+"; do sleep 0.02; done; "+say("main-end"))
	pod.Spec.InitContainers = []corev1.Container{shell("init1", say("init1")), side("side1"), shell("init2", "until grep -q side1-up "+file+"; do sleep 0.02; done; "+say("init2")), side("side2")}
	r.create(pod)
	got := r.awaitPhase("order", corev1.PodSucceeded)
	data := strings.Fields(readFile(t, file))
	// A sidecar counts as started at once, so the main may begin beside it.
	order := func(names ...string) {
		t.Helper()
		at := -1
		for _, name := range names {
			i := slices.Index(data, name)
			if i <= at {
				t.Errorf("want order %v, got %v", names, data)
				return
			}
			at = i
		}
	}
	order("init1", "side1-up", "init2", "side2-up", "main-end", "side2-term", "side1-term")
	order("init2", "main", "main-end")
	for _, s := range got.Status.InitContainerStatuses {
		if s.State.Terminated == nil || s.State.Terminated.ExitCode != 0 {
			t.Errorf("init container %s: %+v", s.Name, s.State)
		}
	}
}

func TestRestartsBackOffAndTheLogsOfTwoRunsAreKept(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	pod := r.pod("crash", "echo crashed; exit 1")
	pod.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
	r.create(pod)
	waiting := func(count int32) func(*corev1.Pod) bool {
		return func(p *corev1.Pod) bool {
			if len(p.Status.ContainerStatuses) == 0 {
				return false
			}
			s := p.Status.ContainerStatuses[0]
			return s.RestartCount == count && s.State.Waiting != nil && s.State.Waiting.Reason == "CrashLoopBackOff"
		}
	}
	got := r.await("crash", "the second exit backs off", waiting(1))
	if got.Status.Phase != corev1.PodRunning || got.Status.ContainerStatuses[0].LastTerminationState.Terminated == nil {
		t.Errorf("status while backing off: %+v", got.Status)
	}
	r.await("crash", "the third exit backs off", waiting(2)) // 10 s later
	if got := r.logs("crash", corev1.PodLogOptions{Previous: true}); got != "crashed\n" {
		t.Errorf("previous log = %q", got)
	}
	if l := (layout{r.config.Root}); exists(l.log(got.UID, "main", 0)) || !exists(l.log(got.UID, "main", 1)) {
		t.Error("the log of the first run is kept, or that of the second is not")
	}
}

func TestDeletionKeepsTheGrace(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	file := filepath.Join(t.TempDir(), "said")
	pod := r.pod("polite", "trap 'echo bye >> "+file+"; exit 7' TERM; echo up; while :; do sleep 0.02; done")
	pod.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"/bin/sh", "-c", "echo hook >> " + file}}}}
	// A finalizer keeps the object, so that its last status can be seen.
	pod.Finalizers = []string{"example.com/keep"}
	r.create(pod)
	r.awaitPhase("polite", corev1.PodRunning)
	eventually(t, "the trap is set", func() bool { return r.logs("polite", corev1.PodLogOptions{}) == "up\n" })
	if err := r.client.CoreV1().Pods(r.namespace).Delete(t.Context(), "polite", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	got := r.awaitPhase("polite", corev1.PodFailed)
	if s := got.Status.ContainerStatuses[0].State.Terminated; s == nil || s.ExitCode != 7 {
		t.Errorf("state = %+v, want exit code 7", got.Status.ContainerStatuses[0].State)
	}
	if diff := cmp.Diff("hook\nbye\n", readFile(t, file)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	r.await("polite", "the grace is 0", func(p *corev1.Pod) bool { return ptr.Deref(p.DeletionGracePeriodSeconds, 1) == 0 })
	patch := []byte(`{"metadata":{"finalizers":null}}`)
	if _, err := r.client.CoreV1().Pods(r.namespace).Patch(t.Context(), "polite", "application/merge-patch+json", patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	r.awaitGone("polite")
}

func TestAStubbornProgramIsKilledAfterTheGrace(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	pod := r.pod("stubborn", "trap '' TERM; echo up; while :; do sleep 0.05; done")
	pod.Spec.TerminationGracePeriodSeconds = ptr.To[int64](1)
	r.create(pod)
	r.awaitPhase("stubborn", corev1.PodRunning)
	if err := r.client.CoreV1().Pods(r.namespace).Delete(t.Context(), "stubborn", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	r.awaitGone("stubborn")
}

func TestExecAndFollowThroughTheAPIServer(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	file := filepath.Join(t.TempDir(), "go-on")
	r.create(r.pod("talk", "echo one; until test -e "+file+"; do sleep 0.02; done; echo two"))
	r.awaitPhase("talk", corev1.PodRunning)

	url := r.client.CoreV1().RESTClient().Post().Resource("pods").Name("talk").Namespace(r.namespace).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Container: "main", Stdin: true, Stdout: true, Stderr: true,
			Command: []string{"/bin/sh", "-c", "read line; echo got $line; echo warn >&2; exit 5"}}, scheme.ParameterCodec).URL()
	spdy, err := remotecommand.NewSPDYExecutor(world.rest, "POST", url)
	if err != nil {
		t.Fatal(err)
	}
	web, err := remotecommand.NewWebSocketExecutor(world.rest, "GET", url.String())
	if err != nil {
		t.Fatal(err)
	}
	stream := make(chan string, 1)
	go func() {
		data, err := r.client.CoreV1().Pods(r.namespace).GetLogs("talk", &corev1.PodLogOptions{Container: "main", Follow: true}).DoRaw(context.Background())
		stream <- string(data)
		if err != nil {
			t.Error(err)
		}
	}()
	for name, e := range map[string]remotecommand.Executor{"websocket": web, "spdy": spdy} {
		var out, errOut bytes.Buffer
		err := e.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdin: strings.NewReader("ping\n"), Stdout: &out, Stderr: &errOut})
		var exit interface{ ExitStatus() int }
		if !errors.As(err, &exit) || exit.ExitStatus() != 5 {
			t.Errorf("%s: err = %v, want exit code 5", name, err)
		}
		if out.String() != "got ping\n" || errOut.String() != "warn\n" {
			t.Errorf("%s: out %q, err %q", name, out.String(), errOut.String())
		}
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := <-stream; got != "one\ntwo\n" {
		t.Errorf("followed log = %q", got)
	}
	one := int64(1)
	r.awaitPhase("talk", corev1.PodSucceeded)
	if got := r.logs("talk", corev1.PodLogOptions{TailLines: &one}); got != "two\n" {
		t.Errorf("tail = %q", got)
	}
}
