package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vernier-ml/vernier/local/podnet"
	"github.com/vernier-ml/vernier/local/shim"
	"github.com/vernier-ml/vernier/local/statefile"
)

// A node that goes down ends its pods as a kubelet does at a graceful shutdown:
// each is stopped as if it were deleted, and then fails with the condition
// DisruptionTarget. The objects stay; what replaces them waits for the next
// agent.

const (
	// downGrace bounds the grace of pods when the node goes down. Sidecars may
	// take sidecarMinGrace more.
	downGrace = 8 * time.Second
	// drainLimit bounds all of it, the writes of the last statuses too.
	drainLimit = downGrace + 2*sidecarMinGrace
	// reasonDown and messageDown are the end of a pod that went down with its
	// node. The reason is the kubelet's.
	reasonDown  = "Terminated"
	messageDown = "Pod was ended by vernier down, or together with the instance"
)

// signalWindow is how long before the node learns that it goes down a program may
// have got the same SIGTERM: at the end of a session or of the machine, every
// process gets one.
const signalWindow = time.Second

// unaskedSignal reports that a main was ended by SIGTERM without our doing, and when.
// It may have ended before we asked it to, and be heard of after.
func (v *view) unaskedSignal() (at time.Time, ok bool) {
	for i := range v.Pod.Spec.Containers {
		name := v.Pod.Spec.Containers[i].Name
		r, ran := v.last(name)
		asked := v.container(name).Stop.Terminated
		if ran && !r.Running() && r.ExitCode == 128+int(syscall.SIGTERM) && (asked.IsZero() || r.FinishedAt.Before(asked)) {
			at, ok = latest(at, r.FinishedAt), true
		}
	}
	return at, ok
}

// downStop is the end of a pod because its node goes down. A pod that had come
// to its own end before is no victim of it.
func downStop(v *view) (stop, bool) {
	if v.Down.IsZero() {
		return stop{}, false
	}
	if end, ok := naturalEnd(v); ok && end.Before(v.Down) {
		signalled, ok := v.unaskedSignal()
		if !ok || v.Down.Sub(signalled) > signalWindow {
			return stop{}, false
		}
	}
	return stop{
		Since: v.Down, Deadline: v.Down.Add(min(gracePeriod(v.Pod), downGrace)),
		Verdict: &verdict{Reason: reasonDown, Message: messageDown},
	}, true
}

// waitsOut reports that the pod came too late for this agent: nothing of it is
// started, and its status is left alone.
func (w *worker) waitsOut() bool {
	return !w.v.Down.IsZero() && !w.admitted && w.v.Rejected == nil && w.v.Pod.DeletionTimestamp == nil && !w.v.Gone
}

// goDown begins the end of the pod. The next agent must know of it too, if this
// one cannot write the pod's status any more.
func (w *worker) goDown(now time.Time) {
	if w.v.Down.IsZero() {
		w.v.Down = now
	}
	if !w.hasDir() || isTerminal(w.v.Pod.Status.Phase) {
		return
	}
	if err := markDown(w.layout, w.v.Pod.UID, now); err != nil {
		w.log.Error(err, "cannot note that the node goes down")
	}
}

// markDown notes in a pod's directory when the node went down, unless it is noted.
func markDown(l layout, uid types.UID, now time.Time) error {
	file := l.downFile(uid)
	if _, err := os.Stat(file); err == nil {
		return nil
	}
	if err := statefile.WriteJSON(file, now); err != nil {
		return fmt.Errorf("noting that the node goes down: %w", err)
	}
	return nil
}

// recoverDown learns that the pod went down with an earlier agent, which could
// not say so.
func (w *worker) recoverDown() {
	var at time.Time
	switch err := statefile.ReadJSON(w.layout.downFile(w.v.Pod.UID), &at); {
	case errors.Is(err, fs.ErrNotExist):
		return
	case err != nil:
		// That the file is there says enough.
		w.log.Error(err, "cannot read when the node went down")
		at = time.Now()
	}
	w.v.Down = at
	if !w.admitted {
		w.admitted, w.v.StartTime = true, at
	}
}

// noteDrained tells who waits for it that the pod keeps nothing here.
func (w *worker) noteDrained() {
	if w.v.Down.IsZero() || isClosed(w.drained) {
		return
	}
	if w.waitsOut() || w.torn && isTerminal(w.v.Pod.Status.Phase) {
		close(w.drained)
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// drain ends all pods, and waits until the API server has been told of their
// ends, at most drainLimit.
func (n *node) drain(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, drainLimit)
	defer cancel()
	now := time.Now()
	n.pods.mu.Lock()
	n.pods.down = now
	var workers []*worker
	for _, entry := range n.pods.pods {
		workers = append(workers, entry.worker)
	}
	n.pods.mu.Unlock()
	for _, w := range workers {
		w.post(ctx, func() { w.goDown(now) })
	}
	for _, w := range workers {
		select {
		case <-w.drained:
		case <-w.done:
		case <-ctx.Done():
			n.log.Info("the node goes down before all pods have ended")
			return
		}
	}
}

func (n *node) writeIdentity(pod *corev1.Pod, network bool) error {
	if err := os.MkdirAll(n.layout.pod(pod.UID), 0o711); err != nil {
		return err
	}
	if err := os.MkdirAll(n.layout.termination(pod.UID, ""), 0o755); err != nil {
		return err
	}
	if network {
		if err := os.MkdirAll(n.layout.names(pod.UID), 0o755); err != nil {
			return err
		}
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
	if err := podnet.Stop(ctx, l.network(), string(uid)); err != nil {
		return fmt.Errorf("ending the network of pod %s: %w", uid, err)
	}
	return nil
}

func shutDown(ctx context.Context, dir string) error {
	ctx, cancel := context.WithTimeout(ctx, shutdownTimeout)
	defer cancel()
	client, _, err := shim.Attach(ctx, dir)
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
	if err := RemoveTree(n.layout.pod(pod.UID)); err != nil {
		n.log.Error(err, "cannot remove a pod's directory", "dir", n.layout.pod(pod.UID))
	}
	n.pods.remove(pod.UID)
	n.network.signal()
}

// sweep ends and removes what is left of pods that no longer exist. It is run
// when the first list of pods is in.
func (n *node) sweep(ctx context.Context, live map[types.UID]bool) {
	entries, err := os.ReadDir(n.layout.pods())
	if err != nil {
		n.log.Error(err, "cannot look for pods of an earlier agent")
		return
	}
	lives := map[types.UID]bool{}
	for _, e := range entries {
		uid := types.UID(e.Name())
		if live[uid] || n.pods.worker(uid) != nil {
			continue
		}
		if err := endProcesses(ctx, n.layout, uid); err != nil {
			lives[uid] = true
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
	// Pods may have come since the list.
	there := func(uid types.UID) bool { return lives[uid] || n.pods.worker(uid) != nil }
	if err := n.gpuBook.Keep(there); err != nil {
		n.log.Error(err, "cannot release GPUs of pods that are gone")
	}
}

// StopPods ends the processes of all pods under an agent's root. Call it when
// the node goes down and no agent runs; the next agent reports the pods that
// were running as disrupted.
func StopPods(ctx context.Context, root string) error {
	l := layout{root}
	entries, err := os.ReadDir(l.pods())
	var failed error
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		failed = err
	}
	for _, e := range entries {
		uid := types.UID(e.Name())
		failed = errors.Join(failed, markDown(l, uid, time.Now()), endProcesses(ctx, l, uid))
	}
	return errors.Join(failed, podnet.Shutdown(ctx, l.network()))
}
