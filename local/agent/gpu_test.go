package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

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

func uuids(devices []device) (out []string) {
	for _, d := range devices {
		out = append(out, d.uuid)
	}
	return out
}

func TestNoGPUIsGivenOutTwice(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gpus.json")
	all := wholeGPUs("a", "b", "c", "d")
	book, err := openGPUBook(path, all, 1, logr.Discard())
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
	book, err = openGPUBook(path, all, 1, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := book.Allocate(gpuPod("2", nil, nil, []int{3})); err == nil {
		t.Error("three GPUs were given where two are free")
	}
	if again, err := book.Allocate(gpuPod("1", []int{2}, []int{1}, []int{1})); err != nil || cmp.Diff(want, again) != "" {
		t.Errorf("asking again gave %v, %v", again, err)
	}
	if err := book.Keep(func(types.UID) bool { return false }); err != nil {
		t.Fatal(err)
	}
	if got, err := book.Allocate(gpuPod("2", nil, nil, []int{4})); err != nil || len(got["m0"]) != 4 {
		t.Errorf("after the release: %v, %v", got, err)
	}
}

func TestAGPUIsFreeThoughTheDiskIsFull(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "root")
	write := func(works bool) {
		t.Helper()
		err := os.RemoveAll(dir)
		if works {
			err = os.Mkdir(dir, 0o700)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	write(true)
	book, err := openGPUBook(filepath.Join(dir, "gpus.json"), wholeGPUs("a"), 1, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := book.Allocate(gpuPod("1", nil, nil, []int{1})); err != nil {
		t.Fatal(err)
	}
	write(false)
	if err := book.Release("1"); err == nil {
		t.Error("nothing says that the release was not written")
	}
	if _, err := book.Allocate(gpuPod("2", nil, nil, []int{1})); err == nil || book.Held("2") != nil {
		t.Errorf("%v, holds %v: a GPU was given that the next agent would give again", err, book.Held("2"))
	}
	write(true)
	if got, err := book.Allocate(gpuPod("2", nil, nil, []int{1})); err != nil {
		t.Errorf("%v, %v: the GPU of a pod that is gone is not given out again", got, err)
	}
}

func TestGPUsAreSharedWhenAsked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gpus.json")
	book, err := openGPUBook(path, wholeGPUs("a", "b"), 2, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"a", "b", "a", "b"} { // those that the fewest hold first
		got, err := book.Allocate(gpuPod(fmt.Sprint(i), nil, nil, []int{1}))
		if diff := cmp.Diff(map[string][]string{"m0": {want}}, got); err != nil || diff != "" {
			t.Errorf("pod %d: %v (-want +got):\n%s", i, err, diff)
		}
	}
	if got, err := book.Allocate(gpuPod("more", nil, nil, []int{1})); err == nil {
		t.Errorf("a fifth pod got %v", got)
	}
	if err := book.Keep(func(uid types.UID) bool { return uid == "0" }); err != nil {
		t.Fatal(err)
	}
	// Three shares are free, but a program gets different GPUs.
	if got, err := book.Allocate(gpuPod("three", nil, nil, []int{3})); err == nil {
		t.Errorf("three of two GPUs: %v", got)
	}
	if got, err := book.Allocate(gpuPod("two", nil, nil, []int{2})); err != nil || cmp.Diff([]string{"b", "a"}, got["m0"]) != "" {
		t.Errorf("two: %v, %v", got, err)
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
	all := wholeGPUs("GPU-aa", "GPU-bb", "GPU-cc")
	for names, want := range map[string][]string{
		"": {}, "-1": {}, "1": {"GPU-bb"}, "2,0": {"GPU-cc", "GPU-aa"}, "GPU-b": {"GPU-bb"}, "0,7,1": {"GPU-aa"}, "0, 1": {"GPU-aa", "GPU-bb"},
	} {
		if diff := cmp.Diff(want, uuids(visibleGPUs(all, names)), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%q (-want +got):\n%s", names, diff)
		}
	}
}

func TestTwoInstancesDoNotOfferTheSameGPU(t *testing.T) {
	dir := t.TempDir()
	first, held := lockGPUs(dir, wholeGPUs("GPU-a", "GPU-b"), logr.Discard())
	second, more := lockGPUs(dir, wholeGPUs("GPU-b", "GPU-c"), logr.Discard())
	if diff := cmp.Diff([][]string{{"GPU-a", "GPU-b"}, {"GPU-c"}}, [][]string{uuids(first), uuids(second)}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, f := range append(held, more...) {
		f.Close()
	}
	if again, _ := lockGPUs(dir, wholeGPUs("GPU-b"), logr.Discard()); len(again) != 1 {
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
	t.Setenv("TMPDIR", t.TempDir()) // another shell's
	t.Setenv("CUDA_VISIBLE_DEVICES", "0,1")
	second, more := offeredGPUs(t.Context(), Config{})
	for _, f := range append(held, more...) {
		defer f.Close()
	}
	if diff := cmp.Diff([][]string{{"GPU-c", "GPU-a"}, {"GPU-b"}}, [][]string{uuids(first), uuids(second)}); diff != "" {
		t.Errorf("of two agents (-want +got):\n%s", diff)
	}
}

// What nvidia-smi says of four GPUs: MIG divides the first into two kinds of parts, and
// the second in the way of early drivers; the third is whole, and the fourth is to be
// divided, but is not yet.
const dividedGPUs = `case "$*" in
"--query-gpu=pci.bus_id,uuid --format=csv,noheader,nounits")
	echo "00000000:5C:00.0, GPU-c"; echo "00000000:1A:00.0, GPU-a"; echo "00000000:3B:00.0, GPU-b"; echo "00000000:7D:00.0, GPU-d";;
"--query-gpu=uuid,mig.mode.current --format=csv,noheader,nounits")
	echo "GPU-a, Enabled"; echo "GPU-b, Enabled"; echo "GPU-c, Disabled"; echo "GPU-d, Enabled";;
-L)
	echo "GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-a)"
	echo "  MIG 3g.20gb     Device  0: (UUID: MIG-a1)"
	echo "  MIG 1g.5gb      Device  1: (UUID: MIG-a2)"
	echo "  MIG 1g.5gb+me   Device  2: (UUID: MIG-a3)"
	echo "GPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-b)"
	echo "  MIG 1g.5gb Device 0: (UUID: MIG-GPU-b/7/0)"
	echo "GPU 2: NVIDIA A100-SXM4-40GB (UUID: GPU-c)"
	echo "GPU 3: NVIDIA A100-SXM4-40GB (UUID: GPU-d)";;
*) exit 2;;
esac`

func TestPartsOfGPUsAreFound(t *testing.T) {
	driver(t, dividedGPUs)
	t.Setenv("TMPDIR", t.TempDir())
	want := []device{
		{"MIG-a1", "nvidia.com/mig-3g.20gb", "GPU-a"}, {"MIG-a2", "nvidia.com/mig-1g.5gb", "GPU-a"}, {"MIG-a3", "nvidia.com/mig-1g.5gb.me", "GPU-a"},
		{"MIG-GPU-b/7/0", "nvidia.com/mig-1g.5gb", "GPU-b"}, {"GPU-c", "nvidia.com/gpu", "GPU-c"},
	}
	for name, tc := range map[string]struct {
		visible string // CUDA_VISIBLE_DEVICES; "-": not set
		given   []string
		want    []device
	}{
		"all":                                {visible: "-", want: want},
		"a part by its UUID":                 {visible: "MIG-a2,MIG-GPU-b/7/0", want: []device{want[1], want[3]}},
		"a GPU and all its parts, by index":  {visible: "2,0", want: []device{want[4], want[0], want[1], want[2]}},
		"a GPU that is divided into nothing": {visible: "3,1", want: want[3:4]},
		"those that were named at the start": {visible: "-", given: []string{"MIG-a1", "GPU-c", "MIG-gone"}, want: []device{want[0], want[4]}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("CUDA_VISIBLE_DEVICES", tc.visible)
			if tc.visible == "-" {
				os.Unsetenv("CUDA_VISIBLE_DEVICES") // Setenv above puts it back
			}
			got, held := offeredGPUs(t.Context(), Config{GPUs: tc.given})
			for _, f := range held {
				defer f.Close()
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(device{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPartsOfGPUsAreGivenOutByKind(t *testing.T) {
	driver(t, dividedGPUs)
	found, _ := findGPUs(t.Context())
	found = found[:len(found)-1] // without the GPU that cannot be used
	book, err := openGPUBook(filepath.Join(t.TempDir(), "gpus.json"), found, 1, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	capacity := corev1.ResourceList{
		"nvidia.com/gpu": resource.MustParse("1"), "nvidia.com/mig-3g.20gb": resource.MustParse("1"),
		"nvidia.com/mig-1g.5gb": resource.MustParse("2"), "nvidia.com/mig-1g.5gb.me": resource.MustParse("1"),
	}
	if diff := cmp.Diff(capacity, book.Capacity()); diff != "" {
		t.Error(diff)
	}
	pod := func(uid string, name corev1.ResourceName) *corev1.Pod {
		p := gpuPod(uid, nil, nil, []int{0})
		p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{name: resource.MustParse("1")}
		return p
	}
	for i, step := range []struct {
		resource corev1.ResourceName
		want     string
	}{
		{"nvidia.com/mig-1g.5gb", "MIG-a2"}, {"nvidia.com/mig-1g.5gb", "MIG-GPU-b/7/0"}, {"nvidia.com/mig-1g.5gb", ""},
		{"nvidia.com/gpu", "GPU-c"}, {"nvidia.com/gpu", ""}, {"nvidia.com/mig-3g.20gb", "MIG-a1"}, {"nvidia.com/mig-7g.40gb", ""},
	} {
		got, err := book.Allocate(pod(fmt.Sprint(i), step.resource))
		switch {
		case step.want == "" && err == nil:
			t.Errorf("pod %d got %v for %s, of which none is free", i, got, step.resource)
		case step.want != "" && (err != nil || cmp.Diff([]string{step.want}, got["m0"]) != ""):
			t.Errorf("pod %d got %v, %v for %s", i, got, err, step.resource)
		case step.want != "":
			if env := book.gpuEnv(got["m0"]); env[1].Name != "CUDA_VISIBLE_DEVICES" || env[1].Value != step.want {
				t.Errorf("its environment is %v", env)
			}
		}
	}
}

func gpuRequest() *corev1.Pod {
	pod := gpuPod("g", nil, nil, []int{1})
	pod.Spec.Containers[0].Resources.Requests = pod.Spec.Containers[0].Resources.Limits
	return pod
}
