package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vernier-ml/vernier/local/shim"
	"github.com/vernier-ml/vernier/local/statefile/disktest"
)

// powerCut is one life of a node on a disk of its own: a pod with the GPU ends, a
// second one runs, the first is deleted, the node goes down. At one of its writes the
// power is cut.
type powerCut struct {
	*rig
	t      *testing.T
	disk   *disktest.Disk
	starts string   // a file on another disk, where each program that starts says so
	writes []string // the files and directories that were written until the cut
	held   chan struct{}
}

// live runs the node until its n-th write begins; 0: to its end.
func live(t *testing.T, n int) *powerCut {
	p := &powerCut{t: t, disk: disktest.New(t), starts: filepath.Join(t.TempDir(), "starts"), held: make(chan struct{})}
	touch(t, p.starts)
	at, release := p.disk, make(chan struct{})
	var begun string
	end := at.EachWrite(func(path string) {
		p.writes = append(p.writes, path)
		if len(p.writes) == n {
			p.disk, begun = at.Cut(), readFile(t, p.starts)
			close(p.held)
			<-release
		}
	})
	p.rig = newRig(t, func(c *Config) { c.Root, c.GPUs = filepath.Join(at.Dir, "root"), []string{"GPU-power-cut"} })
	p.untilCut()
	p.stop(syscall.SIGKILL) // nothing reaches the API server any more
	close(release)
	end()
	if n == 0 {
		p.disk, begun = at.Cut(), readFile(t, p.starts)
	}
	for _, pod := range p.pods() {
		killPod(t, layout{p.config.Root}, pod.UID)
	}
	if err := StopPods(t.Context(), p.config.Root); err != nil { // a shim that had no state yet
		t.Error(err)
	}
	if err := os.WriteFile(p.starts, []byte(begun), 0o600); err != nil { // what began later did not happen
		t.Fatal(err)
	}
	return p
}

// untilCut does what the node lives through.
func (p *powerCut) untilCut() {
	done := p.create(p.program("done", "echo done; exit 3", true))
	if !p.reach("done", corev1.PodFailed) {
		return
	}
	p.create(p.program("runs", "exec sleep 600", false))
	if !p.reach("runs", corev1.PodRunning) {
		return
	}
	if err := p.client.CoreV1().Pods(p.namespace).Delete(p.t.Context(), "done", metav1.DeleteOptions{}); err != nil {
		p.t.Fatal(err)
	}
	archived := filepath.Join(layout{p.config.Root}.archive(), string(done.UID))
	if !p.until("the deleted pod's logs are kept", func() bool { return exists(archived) && p.phase("done") == "" }) {
		return
	}
	if err := p.agent.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
	p.until("the node is down", func() bool { return len(p.done) > 0 })
}

// program is a pod that says that it starts.
func (p *powerCut) program(name, script string, gpu bool) *corev1.Pod {
	pod := p.pod(name, "echo "+name+" >> "+p.starts+"; "+script)
	if gpu {
		pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{resourceGPU: resource.MustParse("1")}
	}
	return pod
}

// until waits for something, and reports false when the power is cut before.
func (p *powerCut) until(what string, holds func() bool) bool {
	cut := func() bool {
		select {
		case <-p.held:
			return true
		default:
			return false
		}
	}
	eventually(p.t, what, func() bool { return cut() || holds() })
	return !cut()
}

func (p *powerCut) reach(name string, phase corev1.PodPhase) bool {
	return p.until(name+" is "+string(phase), func() bool { return p.phase(name) == phase })
}

// phase is empty when there is no such pod.
func (p *powerCut) phase(name string) corev1.PodPhase { return p.pods()[name].Status.Phase }

func (p *powerCut) pods() map[string]corev1.Pod {
	list, err := p.client.CoreV1().Pods(p.namespace).List(p.t.Context(), metav1.ListOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
	pods := map[string]corev1.Pod{}
	for _, pod := range list.Items {
		pods[pod.Name] = pod
	}
	return pods
}

// goOn starts another agent with what the disk holds. Nothing that the API server
// knew is lost, no program that it knew of starts again, and the GPU is free.
func (p *powerCut) goOn() {
	t, known := p.t, p.pods()
	p.config.Root = filepath.Join(p.disk.Dir, "root")
	p.start()
	for name, before := range known {
		if before.DeletionTimestamp != nil {
			p.awaitGone(name)
			continue
		}
		started := before.Status.Phase != corev1.PodPending
		pod := p.await(name, name+" has come to its end, or begun", func(pod *corev1.Pod) bool {
			return pod.Status.Phase == corev1.PodFailed || name == "runs" && !started && pod.Status.Phase == corev1.PodRunning
		})
		if c := findCondition(pod.Status.Conditions, corev1.DisruptionTarget); name == "runs" && started && (c == nil || c.Status != corev1.ConditionTrue) {
			t.Errorf("%s, which ran, is no victim of the cut: %+v", name, pod.Status)
		}
		if before.Status.Phase == corev1.PodFailed && name == "done" && pod.Status.ContainerStatuses[0].State.Terminated.ExitCode != 3 {
			t.Errorf("%s, which had ended, is %+v", name, pod.Status)
		}
		if n := strings.Count(readFile(t, p.starts), name); started && n != 1 {
			t.Errorf("%s was started %d times", name, n)
		}
	}
	p.create(p.program("next", "exit 0", true))
	p.awaitPhase("next", corev1.PodSucceeded)
	if done, ok := known["done"]; !ok || done.DeletionTimestamp != nil {
		eventually(t, "the logs of the pod that is gone are kept", func() bool {
			kept, err := readArchive(layout{p.config.Root}.archive())
			return err == nil && slices.ContainsFunc(kept, func(id identity) bool { return id.Name == "done" })
		})
	}
	p.stop(syscall.SIGINT)
	if err := StopPods(t.Context(), p.config.Root); err != nil { // the disk is gone before the rig's cleanup
		t.Error(err)
	}
}

// TestAPowerCutAtEachWriteOfARunAndAShutdown cuts the power at each write of a
// node's life, and has another agent go on with what the disk holds.
func TestAPowerCutAtEachWriteOfARunAndAShutdown(t *testing.T) {
	whole := live(t, 0)
	whole.goOn()
	for _, file := range []string{"gpus.json", "pod.json", "state.json", "down.json"} {
		if !strings.Contains(strings.Join(whole.writes, " "), file) {
			t.Errorf("%s is not among the writes %q", file, whole.writes)
		}
	}
	for n, path := range whole.writes {
		t.Run(fmt.Sprintf("%d %s", n+1, filepath.Base(path)), func(t *testing.T) { live(t, n+1).goOn() })
	}
}

// killPod kills all processes of a pod at once, as a power cut does.
func killPod(t *testing.T, l layout, uid types.UID) {
	t.Helper()
	if err := shim.KillShim(l.shim(uid)); err != nil {
		t.Fatal(err)
	}
	if _, err := shim.KillOrphans(t.Context(), string(uid)); err != nil {
		t.Fatal(err)
	}
}

func TestTheProcessesOfAHungShimAreEnded(t *testing.T) {
	t.Parallel()
	needCluster(t) // it has built the shim
	l, uid := layout{t.TempDir()}, types.UID("hung-"+strconv.Itoa(os.Getpid()))
	client, err := shim.Spawn(t.Context(), shim.Options{Binary: world.shim, Dir: l.shim(uid), PodUID: string(uid), Mounts: shim.MountsNone})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Start(t.Context(), shim.ContainerSpec{Name: "main", Argv: []string{"/bin/sleep", "600"}}); err != nil {
		t.Fatal(err)
	}
	state, err := client.State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(state.PID, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := endProcesses(t.Context(), l, uid); err != nil {
		t.Error(err)
	}
	eventually(t, "the program is gone", func() bool { return syscall.Kill(state.Runs[0].PID, 0) != nil })
}
