package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
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

func TestNoGPUIsGivenOutTwice(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gpus.json")
	all := []string{"a", "b", "c", "d"}
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
	if err := book.Keep(map[types.UID]bool{}); err != nil {
		t.Fatal(err)
	}
	if got, err := book.Allocate(gpuPod("2", nil, nil, []int{4})); err != nil || len(got["m0"]) != 4 {
		t.Errorf("after the release: %v, %v", got, err)
	}
}

func TestGPUsAreSharedWhenAsked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gpus.json")
	book, err := openGPUBook(path, []string{"a", "b"}, 2, logr.Discard())
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
	if err := book.Keep(map[types.UID]bool{"0": true}); err != nil {
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

func gpuRequest() *corev1.Pod {
	pod := gpuPod("g", nil, nil, []int{1})
	pod.Spec.Containers[0].Resources.Requests = pod.Spec.Containers[0].Resources.Limits
	return pod
}
