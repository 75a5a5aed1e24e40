package agent

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/moby/sys/capability"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/vernier-ml/vernier/local/shim"
	"github.com/vernier-ml/vernier/trainer"
)

func TestAPayloadIsReplacedAsAWhole(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "v")
	write := func(files payload) {
		t.Helper()
		if err := writePayload(dir, files); err != nil {
			t.Fatal(err)
		}
	}
	write(payload{"a": {[]byte("1"), 0o644}, "sub/b": {[]byte("2"), 0o400}})
	if got := readFile(t, filepath.Join(dir, "a")) + readFile(t, filepath.Join(dir, "sub/b")); got != "12" {
		t.Errorf("content = %q", got)
	}
	if info, err := os.Stat(filepath.Join(dir, "sub/b")); err != nil || info.Mode().Perm() != 0o400 {
		t.Errorf("mode = %v, %v", info.Mode(), err)
	}
	first, err := os.Readlink(filepath.Join(dir, dataLink))
	if err != nil {
		t.Fatal(err)
	}
	write(payload{"a": {[]byte("1"), 0o644}, "sub/b": {[]byte("2"), 0o400}})
	if again, _ := os.Readlink(filepath.Join(dir, dataLink)); again != first {
		t.Error("the same content was written again")
	}
	write(payload{})
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("entries %v, %v; the last file must go too", entries, err)
	}
	write(payload{"a": {[]byte("3"), 0o644}})
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 3 || readFile(t, filepath.Join(dir, "a")) != "3" {
		t.Errorf("entries %v, %v; want ..data, one version and a", entries, err)
	}
	for _, bad := range []string{"/abs", "../up", "a/../../up"} {
		if err := writePayload(dir, payload{bad: {}}); err == nil {
			t.Errorf("path %q was accepted", bad)
		}
	}
}

func TestASubPathStaysInItsVolume(t *testing.T) {
	dir := t.TempDir()
	outside := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if path, err := subPath(dir, "a/b"); err != nil || path != filepath.Join(dir, "a/b") {
		t.Errorf("subPath = %q, %v", path, err)
	}
	for _, bad := range []string{"../x", "/etc", "link", "link/x"} {
		if path, err := subPath(dir, bad); err == nil {
			t.Errorf("subPath %q gave %q, want an error", bad, path)
		}
	}
}

func TestHostPathTypes(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "f")
	touch(t, file)
	tests := map[string]struct {
		path string
		kind corev1.HostPathType
		ok   bool
	}{
		"a directory":             {dir, corev1.HostPathDirectory, true},
		"a file as directory":     {file, corev1.HostPathDirectory, false},
		"a file":                  {file, corev1.HostPathFile, true},
		"a missing file":          {filepath.Join(dir, "no"), corev1.HostPathFile, false},
		"a directory to be made":  {filepath.Join(dir, "new/deep"), corev1.HostPathDirectoryOrCreate, true},
		"a file to be made":       {filepath.Join(dir, "newfile"), corev1.HostPathFileOrCreate, true},
		"a socket that is a file": {file, corev1.HostPathSocket, false},
		"no type, missing":        {filepath.Join(dir, "any"), corev1.HostPathUnset, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := checkHostPath(&corev1.HostPathVolumeSource{Path: test.path, Type: &test.kind})
			if (err == nil) != test.ok {
				t.Errorf("err = %v, want ok %t", err, test.ok)
			}
		})
	}
}

func gpuPod(uid string, init, sides, mains []int) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid)}}
	asks := func(name string, n int) corev1.Container {
		return corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{resourceGPU: *resource.NewQuantity(int64(n), resource.DecimalSI)}}}
	}
	for i, n := range init {
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, asks(fmt.Sprintf("init%d", i), n))
	}
	for i, n := range sides {
		c := asks(fmt.Sprintf("side%d", i), n)
		c.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, c)
	}
	for i, n := range mains {
		pod.Spec.Containers = append(pod.Spec.Containers, asks(fmt.Sprintf("m%d", i), n))
	}
	return pod
}

func TestNoGPUIsGivenOutTwice(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gpus.json")
	all := []string{"a", "b", "c", "d"}
	book, err := openGPUBook(path, all, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	got, err := book.Allocate(gpuPod("1", []int{2}, []int{1}, []int{1}))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{"side0": {"a"}, "m0": {"b"}, "init0": {"a", "b"}} // init0 ends before the others start
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// Another agent reads the book.
	book, err = openGPUBook(path, all, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := book.Allocate(gpuPod("2", nil, nil, []int{3})); err == nil {
		t.Error("three GPUs were given where two are free")
	}
	if again, err := book.Allocate(gpuPod("1", []int{2}, []int{1}, []int{1})); err != nil || cmp.Diff(want, again) != "" {
		t.Errorf("asking again gave %v, %v", again, err)
	}
	if err := book.Keep(map[types.UID]bool{}); err != nil {
		t.Fatal(err)
	}
	if got, err := book.Allocate(gpuPod("2", nil, nil, []int{4})); err != nil || len(got["m0"]) != 4 {
		t.Errorf("after the release: %v, %v", got, err)
	}
}

func TestGPUsAreFound(t *testing.T) {
	smi := "00000000:3B:00.0, GPU-b\n00000000:1A:00.0, GPU-a\nNo devices were found\n"
	if diff := cmp.Diff([]string{"GPU-a", "GPU-b"}, uuidsIn(smi)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	dir := t.TempDir()
	for bus, uuid := range map[string]string{"0000:3b:00.0": "GPU-b", "0000:1a:00.0": "GPU-a"} {
		if err := os.MkdirAll(filepath.Join(dir, bus), 0o755); err != nil {
			t.Fatal(err)
		}
		text := "Model: \t\t X\nGPU UUID: \t " + uuid + "\n"
		if err := os.WriteFile(filepath.Join(dir, bus, "information"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"GPU-a", "GPU-b"}, gpusFromDriver(dir)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestOnlyVisibleGPUsAreOffered(t *testing.T) {
	all := []string{"GPU-aa", "GPU-bb", "GPU-cc"}
	for names, want := range map[string][]string{
		"": {}, "-1": {}, "1": {"GPU-bb"}, "2,0": {"GPU-cc", "GPU-aa"}, "GPU-b": {"GPU-bb"}, "0,7,1": {"GPU-aa"}, "0, 1": {"GPU-aa", "GPU-bb"},
	} {
		if diff := cmp.Diff(want, visibleGPUs(all, names)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", names, diff)
		}
	}
}

func TestTwoInstancesDoNotOfferTheSameGPU(t *testing.T) {
	dir := t.TempDir()
	first, held := lockGPUs(dir, []string{"GPU-a", "GPU-b"}, logr.Discard())
	second, more := lockGPUs(dir, []string{"GPU-b", "GPU-c"}, logr.Discard())
	if diff := cmp.Diff([][]string{{"GPU-a", "GPU-b"}, {"GPU-c"}}, [][]string{first, second}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, f := range append(held, more...) {
		f.Close()
	}
	if again, _ := lockGPUs(dir, []string{"GPU-b"}, logr.Discard()); len(again) != 1 {
		t.Error("a GPU stays taken")
	}
}

// The programs of the driver are scripts here, for a machine without GPUs.
func TestGPUsThatAreOffered(t *testing.T) {
	if _, err := os.Stat("/dev/nvidia-uvm"); err == nil {
		t.Skip("this machine has GPUs")
	}
	dir := t.TempDir()
	for name, script := range map[string]string{
		"nvidia-smi":      "echo 00000000:1A:00.0, GPU-a; echo 00000000:3B:00.0, GPU-b; echo 00000000:5C:00.0, GPU-c",
		"nvidia-modprobe": "echo $@ >>" + filepath.Join(dir, "made"),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("TMPDIR", dir)
	t.Setenv("CUDA_VISIBLE_DEVICES", "2,0")
	first, held := offeredGPUs(t.Context(), Config{})
	if made := readFile(t, filepath.Join(dir, "made")); made != "-c=0 -u\n" {
		t.Errorf("device files were made with %q", made)
	}
	t.Setenv("CUDA_VISIBLE_DEVICES", "0,1")
	second, more := offeredGPUs(t.Context(), Config{})
	for _, f := range append(held, more...) {
		defer f.Close()
	}
	if diff := cmp.Diff([][]string{{"GPU-c", "GPU-a"}, {"GPU-b"}}, [][]string{first, second}); diff != "" {
		t.Errorf("of two agents (-want +got):\n%s", diff)
	}
}

func TestMemoryIsThatOfTheControlGroup(t *testing.T) {
	for name, test := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"no control group": {nil, 8 << 30},
		"version 2":        {map[string]string{"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "max\n", "sys/fs/cgroup/a/memory.max": "1073741824\n"}, 1 << 30},
		"version 1":        {map[string]string{"proc/self/cgroup": "5:cpu:/x\n9:memory:/a\n", "sys/fs/cgroup/memory/a/memory.limit_in_bytes": "2147483648\n"}, 2 << 30},
		"no limit":         {map[string]string{"proc/self/cgroup": "9:memory:/a\n", "sys/fs/cgroup/memory/a/memory.limit_in_bytes": "9223372036854771712\n"}, 8 << 30},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			files := map[string]string{"proc/meminfo": "MemTotal:        8388608 kB\nMemFree: 1 kB\n"}
			maps.Copy(files, test.files)
			for path, text := range files {
				if err := os.MkdirAll(filepath.Dir(filepath.Join(root, path)), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(root, path), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if got, err := availableMemory(root); err != nil || got != test.want {
				t.Errorf("got %d, %v; want %d", got, err, test.want)
			}
		})
	}
}

func TestWhatProtectsIsNotIgnoredInSilence(t *testing.T) {
	root, other := ptr.To[int64](0), ptr.To[int64](1000)
	yes := ptr.To(true)
	pod := func(podContext corev1.PodSecurityContext, own corev1.SecurityContext) *corev1.Pod {
		return &corev1.Pod{Spec: corev1.PodSpec{SecurityContext: &podContext,
			Containers: []corev1.Container{{Name: "m", Command: []string{"x"}, SecurityContext: &own}}}}
	}
	for name, test := range map[string]struct {
		pod  *corev1.Pod
		want string
	}{
		"not as root":               {pod(corev1.PodSecurityContext{RunAsNonRoot: yes, RunAsUser: root}, corev1.SecurityContext{}), "RunAsNonRoot"},
		"another user will do":      {pod(corev1.PodSecurityContext{RunAsNonRoot: yes, RunAsUser: root}, corev1.SecurityContext{RunAsUser: other}), ""},
		"the container may be root": {pod(corev1.PodSecurityContext{RunAsNonRoot: yes, RunAsUser: root}, corev1.SecurityContext{RunAsNonRoot: ptr.To(false)}), ""},
		"what needs mounts":         {pod(corev1.PodSecurityContext{}, corev1.SecurityContext{ReadOnlyRootFilesystem: yes}), "ReadOnlyRootFilesystem"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if why := checkSpec(test.pod, shim.MountsNone); why != nil {
				got = why.Reason
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			if why := checkSpec(test.pod, shim.MountsUser); why != nil && why.Reason != "RunAsNonRoot" {
				t.Errorf("refused where there are mounts: %+v", why)
			}
		})
	}
}

func TestWhatIsAskedOfASecurityContext(t *testing.T) {
	caps := func(add []corev1.Capability, drop ...corev1.Capability) *corev1.Capabilities {
		return &corev1.Capabilities{Add: add, Drop: drop}
	}
	root, other, yes := ptr.To[int64](0), ptr.To[int64](1000), ptr.To(true)
	all := len(capability.ListKnown())
	for name, test := range map[string]struct {
		container string
		context   corev1.SecurityContext
		readOnly  bool
		dropped   int
	}{
		"read-only":             {"m", corev1.SecurityContext{ReadOnlyRootFilesystem: yes}, true, 0},
		"all capabilities":      {"m", corev1.SecurityContext{RunAsUser: root, Capabilities: caps(nil, "ALL")}, false, all},
		"all but one":           {"m", corev1.SecurityContext{RunAsUser: root, Capabilities: caps([]corev1.Capability{"CHOWN"}, "ALL")}, false, all - 1},
		"one, by its long name": {"m", corev1.SecurityContext{RunAsUser: root, Capabilities: caps(nil, "CAP_NET_RAW")}, false, 1},
		"another user has none": {"m", corev1.SecurityContext{RunAsUser: other, Capabilities: caps(nil, "ALL")}, false, 0},
		"the sidecar is ours":   {trainer.Sidecar, corev1.SecurityContext{RunAsUser: root, ReadOnlyRootFilesystem: yes, Capabilities: caps(nil, "ALL")}, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var spec shim.ContainerSpec
			secure(&corev1.Pod{}, &corev1.Container{Name: test.container, SecurityContext: &test.context}, &spec)
			if spec.ReadOnly != test.readOnly || len(spec.DropCapabilities) != test.dropped {
				t.Errorf("got %+v", spec)
			}
		})
	}
}

func TestLogsOfOldRestartsGo(t *testing.T) {
	l := layout{t.TempDir()}
	for _, name := range []string{"0.log", "0.log.1", "1.log", "2.log", "10.log"} {
		touchAll(t, filepath.Join(l.logs("u"), "main", name))
	}
	if err := l.trimLogs("u", "main", 3); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(l.logs("u"), "main", "*"))
	if err != nil || len(left) != 2 || filepath.Base(left[1]) != "2.log" {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestTheArchiveKeepsTheNewestPods(t *testing.T) {
	root := t.TempDir()
	a, err := openArchive(layout{root}.archive())
	if err != nil {
		t.Fatal(err)
	}
	a.maxPods, a.maxBytes = 3, 400
	take := func(name string, minute, size int) {
		t.Helper()
		logs := filepath.Join(t.TempDir(), "logs")
		if err := os.MkdirAll(filepath.Join(logs, "main"), 0o755); err != nil {
			t.Fatal(err)
		}
		line := "2026-11-21T12:00:00Z stdout F " + strings.Repeat("x", size) + "\n"
		if err := os.WriteFile(filepath.Join(logs, "main", "0.log"), []byte(line), 0o600); err != nil {
			t.Fatal(err)
		}
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(fmt.Sprintf("%s-%d", name, minute)), Labels: map[string]string{labelJobName: "trial"}}}
		if err := a.Take(logs, identityOf(pod), t0.Add(time.Duration(minute)*time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	kept := func() string {
		found, err := ReadArchivedLogs(root, "ns", "trial", "")
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, l := range found {
			names = append(names, l.Pod)
		}
		return strings.Join(names, " ")
	}
	for i, name := range []string{"p1", "p2", "p3", "p4"} {
		take(name, i, 10)
	}
	if got := kept(); got != "p2 p3 p4" {
		t.Errorf("kept %q", got)
	}
	take("p2", 5, 10)
	if got := kept(); got != "p3 p4 p2" {
		t.Errorf("after a name was used again: %q", got)
	}
	// What a power cut left of one pod must not hide the others.
	touch(t, filepath.Join(root, "archive", "p3-2", identityFile))
	if got := kept(); got != "p4 p2" {
		t.Errorf("after one identity was lost: %q", got)
	}
	if a, err = openArchive(layout{root}.archive()); err != nil {
		t.Fatal(err)
	}
	a.maxPods, a.maxBytes = 3, 400
	take("big", 6, 320)
	if got := kept(); got != "p2 big" {
		t.Errorf("after a big log: %q", got)
	}
}

func TestContainersSeeChosenVariablesOfTheHost(t *testing.T) {
	host := map[string]string{"PATH": "/host", "VIRTUAL_ENV": "/venv", "SECRET": "x"}
	env := environment{}
	env.set(hostEnv([]string{"/opt/v"}, func(name string) string { return host[name] }))
	if diff := cmp.Diff(environment{"PATH": "/opt/v:/host", "VIRTUAL_ENV": "/venv"}, env); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestParseLogOptions(t *testing.T) {
	got, err := parseLogOptions(url.Values{"follow": {"true"}, "tailLines": {"3"}, "sinceTime": {t0.Format(time.RFC3339)}, "previous": {"true"}, "stream": {"All"}})
	since := metav1.NewTime(t0.Local())
	want := &corev1.PodLogOptions{Follow: true, TailLines: ptr.To[int64](3), SinceTime: &since, Previous: true, Stream: ptr.To("All")}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for _, bad := range []string{"follow=x", "limitBytes=x", "sinceTime=yesterday"} {
		q, err := url.ParseQuery(bad)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parseLogOptions(q); err == nil {
			t.Errorf("%s was accepted", bad)
		}
	}
}

func TestMergeRunNeverGoesBack(t *testing.T) {
	runs, _ := mergeRun(nil, goes(0, 0))
	runs, _ = mergeRun(runs, ends(0, 0, 1, 3))
	runs, changed := mergeRun(runs, goes(0, 0))
	if changed || runs[0].Running() {
		t.Errorf("an ended run goes on: %+v", runs)
	}
	for i := 1; i < 20; i++ {
		runs, _ = mergeRun(runs, ends(i, 0, 1, 0))
	}
	if len(runs) != keptRuns || runs[keptRuns-1].Run != 19 {
		t.Errorf("%d runs kept, the newest is %d", len(runs), runs[len(runs)-1].Run)
	}
}

func TestTerminationMessages(t *testing.T) {
	log := filepath.Join(t.TempDir(), "0.log")
	text := "2026-11-21T12:00:00Z stdout F first\n2026-11-21T12:00:00Z stderr P half\n2026-11-21T12:00:00Z stderr F  line\n"
	if err := os.WriteFile(log, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	fallback := corev1.TerminationMessageFallbackToLogsOnError
	exited := shim.Run{Phase: shim.Exited, ExitCode: 1, StartedAt: t0, FinishedAt: t0}
	own := exited
	own.TerminationMessage = "own words"
	well := exited
	well.ExitCode = 0
	tests := map[string]struct {
		run    shim.Run
		policy corev1.TerminationMessagePolicy
		want   string
	}{
		"the file's content":        {own, fallback, "own words"},
		"the log's end on error":    {exited, fallback, "first\nhalf line\n"},
		"no log after success":      {well, fallback, ""},
		"no log without the policy": {exited, corev1.TerminationMessageReadFile, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := complete(test.run, &corev1.Container{TerminationMessagePolicy: test.policy}, log).Message; got != test.want {
				t.Errorf("message = %q, want %q", got, test.want)
			}
		})
	}
}

func TestRecordedRunsStandInForLostRecords(t *testing.T) {
	got := recordedRuns([]corev1.ContainerStatus{
		{Name: "ran", RestartCount: 2, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(t0)}}},
		{Name: "ended", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 3, Reason: "Error", StartedAt: metav1.NewTime(t0), FinishedAt: metav1.NewTime(t0)}}},
		{Name: "waits", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}},
	})
	if len(got) != 2 || got[0].Name != "ran" || got[0].Reason != shim.ReasonLost || got[0].Run != 2 || got[0].Running() || got[1].ExitCode != 3 {
		t.Errorf("runs = %+v", got)
	}
}

func TestAdmission(t *testing.T) {
	pod := func(cpu string) *corev1.Pod {
		return &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu)}}}}}}
	}
	node := corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("1Gi"), "pods": resource.MustParse("3")}
	tests := map[string]struct {
		pod    *corev1.Pod
		others []*corev1.Pod
		want   string
	}{
		"it fits":                   {pod("4"), nil, ""},
		"it fits beside another":    {pod("2"), []*corev1.Pod{pod("2")}, ""},
		"another has taken it":      {pod("3"), []*corev1.Pod{pod("2")}, "OutOfcpu"},
		"too many pods":             {pod("0"), []*corev1.Pod{pod("0"), pod("0"), pod("0")}, "OutOfpods"},
		"a device that is not here": {gpuRequest(), nil, "OutOfnvidia.com/gpu"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := ""
			if why := admit(test.pod, test.others, node); why != nil {
				got = why.Reason
			}
			if got != test.want {
				t.Errorf("reason %q, want %q", got, test.want)
			}
		})
	}
}

func gpuRequest() *corev1.Pod {
	pod := gpuPod("g", nil, nil, []int{1})
	pod.Spec.Containers[0].Resources.Requests = pod.Spec.Containers[0].Resources.Limits
	return pod
}

// countingTokens gives a new token each time.
type countingTokens struct {
	volumeSource
	given int
}

func (c *countingTokens) Token(context.Context, *corev1.Pod, *corev1.ServiceAccountTokenProjection) (string, time.Time, error) {
	c.given++
	return fmt.Sprint(c.given), renewal(t0, t0.Add(100*time.Second)), nil
}

func TestATokenIsRenewedWhenMostOfItsLifeIsOver(t *testing.T) {
	now := t0
	source := &countingTokens{}
	keeper := &tokenKeeper{volumeSource: source, now: func() time.Time { return now }}
	var got []string
	for range 4 {
		token, _, err := keeper.Token(t.Context(), &corev1.Pod{}, &corev1.ServiceAccountTokenProjection{})
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, token)
		now = now.Add(40 * time.Second)
	}
	if diff := cmp.Diff([]string{"1", "1", "2", "3"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
