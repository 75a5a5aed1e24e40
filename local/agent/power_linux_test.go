package agent

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vernier-ml/vernier/local/shim"
	"github.com/vernier-ml/vernier/local/statefile/disktest"
)

// TestAPowerCutDuringRunAndShutdown cuts the power while a pod runs, when one has
// ended, and after the pods were ended with the node; another agent goes on with what
// the disk holds.
func TestAPowerCutDuringRunAndShutdown(t *testing.T) {
	disk, down := disktest.New(t), make(chan struct{})
	r := newRig(t, func(c *Config) { c.Root, c.GPUs = filepath.Join(disk.Dir, "root"), []string{"GPU-power-cut"} })
	goOn := func(root *disktest.Disk) {
		r.config.Root = filepath.Join(root.Dir, "root")
		r.start()
	}
	r.create(r.pod("done", "echo done; exit 3"))
	r.awaitPhase("done", corev1.PodFailed)
	runs := r.create(r.pod("runs", "echo up; exec sleep 600"))
	r.awaitPhase("runs", corev1.PodRunning)

	disk = disk.Cut()
	r.stop()
	killPod(t, layout{r.config.Root}, runs.UID)
	r.config.Down = down
	goOn(disk)
	got := r.awaitPhase("runs", corev1.PodFailed)
	if c := findCondition(got.Status.Conditions, corev1.DisruptionTarget); c == nil || c.Status != corev1.ConditionTrue {
		t.Errorf("the pod that ran is no victim of the cut: %+v", got.Status)
	}
	if got := r.get("done").Status; got.Phase != corev1.PodFailed || got.ContainerStatuses[0].State.Terminated.ExitCode != 3 {
		t.Errorf("the pod that had ended: %+v", got)
	}
	r.create(r.pod("next", "exec sleep 600"))
	r.awaitPhase("next", corev1.PodRunning)
	close(down)
	if err := <-r.done; err != nil {
		t.Fatal(err)
	}
	r.cancel()

	r.config.Down = nil
	goOn(disk.Cut())
	if got := r.awaitPhase("next", corev1.PodFailed); got.Status.Reason != reasonDown {
		t.Errorf("the pod that went down with its node: %+v", got.Status)
	}
	r.create(r.pod("last", "echo last"))
	r.awaitPhase("last", corev1.PodSucceeded)
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
