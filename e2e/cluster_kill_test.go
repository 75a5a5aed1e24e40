//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/procfs"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

// victims are the processes of a node, by the end of the program's path and by its next
// argument.
var victims = [][2]string{
	{"/manager", "--leader-elect"}, {"/manager", "--admission-only"}, sidecar,
	{"/node", "kubelet"}, containerd, program, {"/postgres", "-D"},
	{"/controlplane", "kube-apiserver"}, {"/controlplane", "etcd"}, {"/controlplane", "kube-controller-manager"}, {"/controlplane", "kube-scheduler"},
}

// program is that of a trial. Its parent is containerd's shim, with which its pod ends.
// The shims of pods that start are left alone: a kubelet whose pod loses its sandbox then
// leaves it as it is.
var (
	program    = [2]string{"/collector", "exec"}
	sidecar    = [2]string{"collector", "run"}
	containerd = [2]string{"containerd", "--config"}
)

// parents are the parents of processes.
func parents(pids []int) (parents []int) {
	for _, pid := range pids {
		if p, err := procfs.NewProc(pid); err == nil {
			if stat, err := p.Stat(); err == nil {
				parents = append(parents, stat.PPID)
			}
		}
	}
	return parents
}

// role is the argument that tells what a process is. A "collector run" of a program, in
// whose container there is no other, stands for the program; the reporter beside it is
// another "collector run".
func role(argv []string) string {
	if argv[1] == sidecar[1] && slices.Contains(argv, "--") {
		return program[1]
	}
	return argv[1]
}

// clusterProcesses are the processes of one kind, on the node of e2e/node: the tests run
// on its machine.
func clusterProcesses(t *testing.T, victim [2]string) (pids []int) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(filepath.Dir(clusterConfig()), "pid"))
	if err != nil {
		t.Skipf("the cluster is not that of e2e/node: %v", err)
	}
	node, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		argv := strings.Split(string(data), "\x00")
		if len(argv) < 2 || !strings.HasSuffix(argv[0], victim[0]) || role(argv) != victim[1] {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil && descends(pid, node) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// descends says whether a process is a descendant of another.
func descends(pid, ancestor int) bool {
	for pid > 1 && pid != ancestor {
		p, err := procfs.NewProc(pid)
		if err != nil {
			return false
		}
		stat, err := p.Stat()
		if err != nil {
			return false
		}
		pid = stat.PPID
	}
	return pid == ancestor
}

// TestKillsOnACluster kills components of Vernier and of Kubernetes at random while an
// experiment runs: every trial succeeds once with the result of a whole run, and there
// are as many as asked for. A sidecar that is killed after the program has ended is not
// started again: its trial then says that its metrics may be incomplete. A pod ends with
// its shim, and the job makes another one. So it does for a pod whose program had just
// started when containerd was killed: the kubelet does not know that it did.
func TestKillsOnACluster(t *testing.T) {
	i := cluster(t)
	trials, kills := soakNumber(t, "VERNIER_SOAK_TRIALS", 30), soakNumber(t, "VERNIER_SOAK_KILLS", 12)
	seed := uint64(soakNumber(t, "VERNIER_SOAK_SEED", int(time.Now().Unix())))
	t.Logf("%d trials, %d kills, VERNIER_SOAK_SEED=%d", trials, kills, seed)
	random := rand.New(rand.NewPCG(seed, 0))
	stamps := t.TempDir()
	if err := os.Chmod(stamps, 0o777); err != nil {
		t.Fatal(err)
	}
	experiment := killExperiment(t, "kills", "/stamps")
	forAKilledNode(t, experiment, stamps, "/stamps")
	count, parallel := int32(trials), int32(8)
	experiment.Spec.MaxTrialCount, experiment.Spec.ParallelTrialCount = &count, &parallel
	experiment.Spec.TrialTemplate.Retain = true // a failure shows what became of the pods
	if err := i.client.Create(t.Context(), experiment); err != nil {
		t.Fatal(err)
	}
	killed, order := map[[2]string]int{}, slices.Clone(victims)
	for n := range kills {
		// After so many trials, because nothing runs while what was killed is away.
		i.awaitFinishedTrials(t, "kills", n*(trials-int(parallel))/kills)
		pause := time.NewTimer(time.Duration(random.IntN(1500)) * time.Millisecond)
		<-pause.C
		// One of those that were killed least, so that each kind has its turn.
		random.Shuffle(len(order), func(a, b int) { order[a], order[b] = order[b], order[a] })
		slices.SortStableFunc(order, func(a, b [2]string) int { return killed[a] - killed[b] })
		for _, victim := range order {
			pids := clusterProcesses(t, victim)
			if victim == program {
				pids = parents(pids)
			}
			if len(pids) > 0 && syscall.Kill(pids[random.IntN(len(pids))], syscall.SIGKILL) == nil {
				killed[victim]++
				t.Logf("%s kill %d: %s", time.Now().Format(time.TimeOnly), n, strings.Join(victim[:], " "))
				break
			}
		}
	}
	t.Logf("killed: %v", killed)
	if kills >= len(victims) && (killed[sidecar] == 0 || killed[program] == 0) {
		t.Error("no sidecar or no shim was killed")
	}
	eventually(t, 10*time.Minute, func(ctx context.Context) error {
		var e v1beta1.Experiment
		if err := i.client.Get(ctx, client.ObjectKeyFromObject(experiment), &e); err != nil {
			return err
		}
		if e.IsFailed() {
			i.showFailures(t, "kills")
			i.showPods(t, "kills")
			t.Fatalf("the experiment has failed: %s", e.LastCondition().Message)
		}
		if !e.IsSucceeded() {
			return fmt.Errorf("%d of %d trials have succeeded", e.Status.TrialsSucceeded, trials)
		}
		return nil
	})
	i.checkKilled(t, "kills", stamps, trials, killed)
}

// showPods prints what became of the containers of trials that did not succeed.
func (i *instance) showPods(t *testing.T, experiment string) {
	t.Helper()
	for _, trial := range i.trials(t, experiment) {
		if trial.IsSucceeded() {
			continue
		}
		i.showEvents(t, trial.Name)
		var pods corev1.PodList
		if err := i.client.List(t.Context(), &pods, client.InNamespace("default"), client.MatchingLabels{v1beta1.LabelTrial: trial.Name}); err != nil {
			t.Log(err)
		}
		for _, pod := range pods.Items {
			for _, s := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
				t.Logf("%s %s: restarts %d, state %+v, last state %+v", pod.Name, s.Name, s.RestartCount, s.State, s.LastTerminationState)
			}
		}
	}
}

func (i *instance) checkKilled(t *testing.T, experiment, stamps string, trials int, killed map[[2]string]int) {
	t.Helper()
	all := i.trials(t, experiment)
	if len(all) != trials {
		t.Errorf("%d trials, want %d", len(all), trials)
	}
	twice := i.lostAnswers(t)
	sidecars, again := killed[sidecar]+killed[program], killed[program]+killed[containerd]
	for _, trial := range all {
		if trial.IsSucceeded() && !isWhole(&trial) && sidecars > 0 && strings.Contains(trial.LastCondition().Message, "may be incomplete") {
			sidecars--
			t.Logf("trial %s: %s", trial.Name, trial.LastCondition().Message)
			continue
		}
		if !trial.IsSucceeded() || !isWhole(&trial) {
			t.Errorf("trial %s: %+v", trial.Name, trial.Status)
		}
		starts, err := filepath.Glob(filepath.Join(stamps, trial.Name+".*"))
		if err != nil {
			t.Fatal(err)
		}
		n := len(starts)
		again -= max(0, n-1-twice[trial.Name])
		if n < 1 || again < 0 {
			t.Errorf("the program of trial %s was started %d times", trial.Name, n)
			i.showEvents(t, trial.Name)
		}
	}
}

// forAKilledNode mounts a folder of the node in the trials' containers. And it lets a Job
// make its pod again: when containerd is killed while it makes a container, the kubelet
// fails the pod, whose program never started.
func forAKilledNode(t *testing.T, e *v1beta1.Experiment, dir, path string) {
	t.Helper()
	changeJob(t, e, func(spec, pod map[string]any) {
		spec["backoffLimit"] = 5
		pod["volumes"] = []any{map[string]any{"name": "host", "hostPath": map[string]any{"path": dir}}}
		pod["containers"].([]any)[0].(map[string]any)["volumeMounts"] = []any{map[string]any{"name": "host", "mountPath": path}}
	})
}

// changeJob changes the spec of the trials' Job, and that of its pods.
func changeJob(t *testing.T, e *v1beta1.Experiment, change func(spec, pod map[string]any)) {
	t.Helper()
	var job map[string]any
	if err := yaml.Unmarshal(e.Spec.TrialTemplate.TrialSpec.Raw, &job); err != nil {
		t.Fatal(err)
	}
	spec := job["spec"].(map[string]any)
	change(spec, spec["template"].(map[string]any)["spec"].(map[string]any))
	raw, err := yaml.Marshal(job)
	if err == nil {
		raw, err = yaml.YAMLToJSON(raw)
	}
	if err != nil {
		t.Fatal(err)
	}
	e.Spec.TrialTemplate.TrialSpec.Raw = raw
}

// TestExperimentsAreAdmittedWhileVernierIsReplaced replaces all pods of Vernier while
// experiments are applied: none is refused.
func TestExperimentsAreAdmittedWhileVernierIsReplaced(t *testing.T) {
	i := cluster(t)
	object := broken(t, "admitted", func(map[string]any) {})
	before := i.podsOfVernier(t)
	for _, name := range []string{"vernier-webhook", "vernier-manager"} {
		d := &appsv1.Deployment{}
		d.Namespace, d.Name = "vernier-system", name
		patch := fmt.Sprintf(`{"spec": {"template": {"metadata": {"annotations": {"restarted": %q}}}}}`, time.Now().Format(time.RFC3339Nano))
		if err := i.client.Patch(t.Context(), d, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
			t.Fatal(err)
		}
	}
	applied := 0
	eventually(t, 2*time.Minute, func(ctx context.Context) error {
		if err := i.client.Create(ctx, object.DeepCopy(), client.DryRunAll); err != nil {
			t.Fatalf("after %d that were admitted: %v", applied, err)
		}
		applied++
		now := i.podsOfVernier(t)
		for uid := range before {
			if _, left := now[uid]; left {
				return fmt.Errorf("pod %s is not replaced", before[uid])
			}
		}
		if len(now) != len(before) {
			return fmt.Errorf("%d pods, want %d", len(now), len(before))
		}
		return nil
	})
	t.Logf("%d were admitted", applied)
}

// podsOfVernier are the names of Vernier's pods, by UID, but for those that failed and
// stay: a kubelet that was killed may fail a pod when it starts again.
func (i *instance) podsOfVernier(t *testing.T) map[types.UID]string {
	t.Helper()
	var pods corev1.PodList
	if err := i.client.List(t.Context(), &pods, client.InNamespace("vernier-system")); err != nil {
		t.Fatal(err)
	}
	names := map[types.UID]string{}
	for _, p := range pods.Items {
		if p.Status.Phase != corev1.PodFailed {
			names[p.UID] = p.Name
		}
	}
	return names
}
