package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vernier-ml/vernier/local/shim"
	"github.com/vernier-ml/vernier/local/statefile"
)

func (n *node) writeIdentity(pod *corev1.Pod) error {
	if _, err := os.Stat(n.layout.podFile(pod.UID)); err == nil {
		return nil
	}
	if err := os.MkdirAll(n.layout.pod(pod.UID), 0o711); err != nil {
		return err
	}
	if err := os.MkdirAll(n.layout.termination(pod.UID, ""), 0o755); err != nil {
		return err
	}
	return statefile.WriteJSON(n.layout.podFile(pod.UID), identityOf(pod))
}

func (n *node) shimOptions(uid types.UID) shim.Options {
	return shim.Options{Binary: n.shimBinary, Dir: n.layout.shim(uid), PodUID: string(uid), Mounts: n.mounts}
}

// endProcesses ends a pod's shim and every process that it left. That there is
// none is no error. A shim that does not answer in time is killed.
func endProcesses(ctx context.Context, l layout, uid types.UID) error {
	if _, err := os.Stat(l.shim(uid)); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := shutDown(ctx, l.shim(uid)); err != nil && !errors.Is(err, shim.ErrNotRunning) {
		// Nothing of the pod may outlive it all the same.
		if err := shim.KillShim(l.shim(uid)); err != nil {
			return fmt.Errorf("ending the shim of pod %s: %w", uid, err)
		}
	}
	if _, err := shim.KillOrphans(ctx, string(uid)); err != nil {
		return fmt.Errorf("ending the processes of pod %s: %w", uid, err)
	}
	return nil
}

func shutDown(ctx context.Context, dir string) error {
	ctx, cancel := context.WithTimeout(ctx, shutdownTimeout)
	defer cancel()
	client, err := shim.Attach(ctx, dir)
	if err != nil {
		return err
	}
	return client.Shutdown(ctx)
}

// release gives back what a pod held whose processes are gone.
func (n *node) release(uid types.UID) {
	n.pods.settle(uid)
	if err := n.gpuBook.Release(uid); err != nil {
		n.log.Error(err, "cannot release GPUs", "uid", uid)
	}
}

// forget removes all of a pod that is gone, but keeps its logs for a while.
func (n *node) forget(pod identity) {
	n.release(pod.UID)
	if err := n.archive.Take(n.layout.logs(pod.UID), pod, time.Now()); err != nil {
		n.log.Error(err, "cannot keep the logs of a pod that is gone", "pod", pod.Namespace+"/"+pod.Name)
	}
	if err := os.RemoveAll(n.layout.pod(pod.UID)); err != nil {
		n.log.Error(err, "cannot remove a pod's directory", "dir", n.layout.pod(pod.UID))
	}
	n.pods.remove(pod.UID)
}

// sweep ends and removes what is left of pods that no longer exist. It is run
// when the first list of pods is in.
func (n *node) sweep(ctx context.Context, live map[types.UID]bool) {
	entries, err := os.ReadDir(n.layout.pods())
	if err != nil {
		n.log.Error(err, "cannot look for pods of an earlier agent")
		return
	}
	for _, e := range entries {
		uid := types.UID(e.Name())
		n.pods.mu.Lock()
		_, running := n.pods.workers[uid]
		n.pods.mu.Unlock()
		if live[uid] || running {
			continue
		}
		if err := endProcesses(ctx, n.layout, uid); err != nil {
			n.log.Error(err, "cannot end a pod of an earlier agent", "uid", uid)
			continue
		}
		id := identity{UID: uid}
		if err := statefile.ReadJSON(n.layout.podFile(uid), &id); err != nil {
			n.log.Error(err, "cannot tell whose directory this is", "dir", n.layout.pod(uid))
		}
		n.forget(id)
		n.log.Info("removed a pod whose object is gone", "pod", id.Namespace+"/"+id.Name)
	}
	if err := n.gpuBook.Keep(live); err != nil {
		n.log.Error(err, "cannot release GPUs of pods that are gone")
	}
}

// StopPods ends the processes of all pods under an agent's root. Call it when
// the node goes down and no agent runs; the next agent reports the pods that
// were running as disrupted.
func StopPods(ctx context.Context, root string) error {
	l := layout{root}
	entries, err := os.ReadDir(l.pods())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var failed error
	for _, e := range entries {
		uid := types.UID(e.Name())
		failed = errors.Join(failed, markDown(l, uid, time.Now()), endProcesses(ctx, l, uid))
	}
	return failed
}
