package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/types"

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
func (v *view) unaskedSignal() (at time.Time, ok bool) {
	for i := range v.Pod.Spec.Containers {
		name := v.Pod.Spec.Containers[i].Name
		r, ran := v.last(name)
		if ran && !r.running() && r.ExitCode == 128+int32(syscall.SIGTERM) && !v.Stops[name].Terminated {
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
	workers := make([]*worker, 0, len(n.pods.workers))
	for _, w := range n.pods.workers {
		workers = append(workers, w)
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
