package agent

import (
	"os"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vernier-ml/vernier/local/shim"
)

func mkdir(t *testing.T, dir string) string {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestASweepLeavesTheGPUsOfPodsThatCameMeanwhile(t *testing.T) {
	l := layout{t.TempDir()}
	book, err := openGPUBook(l.gpus(), wholeGPUs("a", "b", "c"), 1, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	n := &node{layout: l, log: logr.Discard(), gpuBook: book, archive: &archive{root: l.archive(), maxPods: 1},
		pods: &podSet{pods: map[types.UID]*podEntry{}}, network: &network{changed: make(chan struct{}, 1)}}
	live := map[types.UID]bool{} // the first list
	for uid, gpu := range map[string]string{"new": "a", "gone": "b", "stuck": "c"} {
		pod := gpuPod(uid, nil, nil, []int{1})
		if uid == "new" {
			n.pods.pods[pod.UID] = &podEntry{worker: &worker{}, newest: pod, admitted: true}
		}
		if err := book.record(pod.UID, map[string][]string{"m0": {gpu}}); err != nil {
			t.Fatal(err)
		}
	}
	holder, err := shim.ListenIn(mkdir(t, l.network())) // which does not answer
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Close()
	go func() {
		for {
			conn, err := holder.Accept()
			if err != nil {
				return
			}
			conn.Close()
		}
	}()
	mkdir(t, l.shim("stuck"))
	n.sweep(t.Context(), live)
	if held := book.Held("new"); held == nil {
		t.Error("the GPU of a pod that runs is free for another one")
	}
	if held := book.Held("stuck"); held == nil {
		t.Error("the GPU of processes that could not be ended is free for another pod")
	}
	if held := book.Held("gone"); held != nil {
		t.Errorf("a pod that is gone holds %v", held)
	}
}
