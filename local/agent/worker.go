package agent

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/vernier-ml/vernier/local/shim"
)

const (
	// statusDelay holds a status back that is not terminal, so that what
	// happens in quick succession is one write.
	statusDelay = 100 * time.Millisecond
	// Delays of what is tried again: first, and at most.
	retryFirst = 500 * time.Millisecond
	retryMax   = 20 * time.Second
)

// worker runs one pod. All its state belongs to the goroutine of Run; others
// reach it by posting functions.
type worker struct {
	*node
	log   logr.Logger
	inbox chan func()
	done  chan struct{}
	// drained is closed once the node goes down and the pod keeps nothing.
	drained chan struct{}

	v        view
	shim     *shim.Client
	known    bool // what ran before is known
	admitted bool
	// How many pods the pod's Job may have active; 1 until it was asked.
	parallelism      int32
	parallelismKnown bool
	volumes          volumeSet
	gpus             map[string][]string
	tokens           *tokenKeeper
	warned           bool
	failures         map[string]int // consecutive failures, by what failed

	asking   attempt
	sandbox  attempt
	refresh  attempt
	teardown attempt
	deletion attempt
	write    attempt
	torn     bool // processes are gone and the shim has ended
	deleted  bool // the object was deleted, or is gone

	written    []byte // the patch that the API server has
	dirtySince time.Time
	probing    map[string]context.CancelFunc
}

// attempt is something that runs beside the worker, and is tried again.
type attempt struct {
	running bool
	next    time.Time
	delay   time.Duration
}

func (a *attempt) due(now time.Time) bool { return !a.running && !now.Before(a.next) }

func (a *attempt) failed(now time.Time) {
	a.running = false
	a.delay = min(max(2*a.delay, retryFirst), retryMax)
	a.next = now.Add(a.delay)
}

func (a *attempt) succeeded() { *a = attempt{} }

func newWorker(n *node, pod *corev1.Pod) *worker {
	w := &worker{
		node:        n,
		log:         n.log.WithValues("pod", pod.Namespace+"/"+pod.Name),
		inbox:       make(chan func(), 16),
		done:        make(chan struct{}),
		drained:     make(chan struct{}),
		parallelism: 1,
		failures:    map[string]int{},
		probing:     map[string]context.CancelFunc{},
		tokens:      &tokenKeeper{volumeSource: n.cluster, clock: n.clock},
	}
	w.v = view{
		Pod: pod, HostIP: n.hostIP, Conditions: pod.Status.Conditions,
		Runs: map[string][]run{}, Waits: map[string]wait{}, Probes: map[string]probeState{},
		Stops: map[string]stopState{}, Condemned: map[string]time.Time{},
	}
	if t := pod.Status.StartTime; t != nil {
		w.v.StartTime, w.admitted = t.Time, true
	}
	return w
}

// post has f run by the worker's goroutine. It is dropped when the worker has
// ended or ctx is over.
func (w *worker) post(ctx context.Context, f func()) {
	select {
	case w.inbox <- f:
	case <-w.done:
	case <-ctx.Done():
	}
}

// update brings a newer version of the object.
func (w *worker) update(pod *corev1.Pod) {
	if newer(pod, w.v.Pod) {
		w.v.Pod = pod
	}
}

// Run works until the pod is gone, or ctx ends; then the pod's processes go on.
func (w *worker) Run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer close(w.done)
	timer := w.clock.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		at := w.step(ctx)
		if at.ended || ctx.Err() != nil {
			return
		}
		if at.again {
			w.drain()
			continue
		}
		if !timer.Stop() {
			select {
			case <-timer.C():
			default:
			}
		}
		wait := time.Hour
		if !at.wake.IsZero() {
			wait = max(at.wake.Sub(w.clock.Now()), time.Millisecond)
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
			return
		case f := <-w.inbox:
			f()
			w.drain()
		case <-timer.C():
		}
	}
}

func (w *worker) drain() {
	for {
		select {
		case f := <-w.inbox:
			f()
		default:
			return
		}
	}
}

// pause says what follows a step: the end of the worker, another step at once,
// or one when something happens or the wake time comes.
type pause struct {
	wake  time.Time
	again bool
	ended bool
}

// step does all that can be done now.
func (w *worker) step(ctx context.Context) pause {
	now := w.clock.Now()
	var next decision
	if isTerminal(w.v.Pod.Status.Phase) {
		// The end was written before; only what is left of the pod is to go.
		next.Settled = true
	} else {
		if w.waitsOut() || w.admit(ctx, now, &next) {
			w.noteDrained()
			return pause{wake: next.Wake}
		}
		w.prepare(ctx, now, &next)
		if w.known || w.v.Rejected != nil {
			d := plan(&w.v, now)
			next.Settled = d.Settled
			if !d.Wake.IsZero() {
				next.wakeAt(d.Wake)
			}
			if w.act(ctx, d.Actions) {
				return pause{again: true}
			}
			w.syncProbes(ctx)
			w.publish(ctx, now, next.Settled, &next)
		}
	}
	ended := next.Settled && w.finish(ctx, now, &next)
	w.noteDrained()
	return pause{wake: next.Wake, ended: ended}
}

// publish writes the status if it has changed: a terminal one at once, any
// other after a moment.
func (w *worker) publish(ctx context.Context, now time.Time, settled bool, next *decision) {
	if w.v.Gone || w.deleted {
		return
	}
	if settled && len(w.gpus) > 0 && !w.torn {
		// The scheduler may give the GPUs away as soon as it reads the end.
		return
	}
	status := podStatus(&w.v, now)
	patch, err := statusPatch(w.v.Pod.UID, &status)
	if err != nil {
		w.log.Error(err, "cannot encode the pod's status")
		return
	}
	if bytes.Equal(patch, w.written) {
		w.dirtySince = time.Time{}
		return
	}
	w.v.Conditions = status.Conditions
	if w.dirtySince.IsZero() {
		w.dirtySince = now
	}
	at := w.dirtySince.Add(statusDelay)
	if isTerminal(status.Phase) {
		at = now
	}
	at = latest(at, w.write.next)
	if w.write.running {
		return
	}
	if now.Before(at) {
		next.wakeAt(at)
		return
	}
	w.write.running = true
	w.dirtySince = time.Time{}
	pod := w.v.Pod
	go func() {
		updated, err := writeStatus(ctx, w.client, pod, patch)
		w.post(ctx, func() { w.wrote(updated, patch, err) })
	}()
}

func (w *worker) wrote(updated *corev1.Pod, patch []byte, err error) {
	switch {
	case err == nil:
		w.write.succeeded()
		w.written = patch
		w.update(updated)
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		// The object is gone, or another one has its name; the watch says so.
		w.write.failed(w.clock.Now())
	default:
		w.log.Error(err, "cannot write the pod's status; trying again")
		w.write.failed(w.clock.Now())
	}
}

// finish clears up behind a pod of which nothing runs any more. It reports
// whether nothing is left to do.
func (w *worker) finish(ctx context.Context, now time.Time, next *decision) bool {
	for name := range w.probing {
		w.stopProbe(name)
	}
	if !w.torn {
		if w.teardown.due(now) {
			w.teardown.running = true
			uid := w.v.Pod.UID
			go func() {
				err := w.endProcesses(ctx, uid)
				w.post(ctx, func() { w.tornDown(err) })
			}()
		} else if !w.teardown.running {
			next.wakeAt(w.teardown.next)
		}
	}
	if w.v.Gone {
		if w.torn {
			w.forget(w.v.Pod)
		}
		return w.torn
	}
	if w.v.Pod.DeletionTimestamp == nil || !isTerminal(w.v.Pod.Status.Phase) || w.deleted || !w.torn {
		return false
	}
	if !w.deletion.due(now) {
		if !w.deletion.running {
			next.wakeAt(w.deletion.next)
		}
		return false
	}
	w.deletion.running = true
	pod := w.v.Pod
	go func() {
		err := deletePod(ctx, w.client, pod)
		w.post(ctx, func() {
			if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
				w.deleted = true
				w.deletion.succeeded()
				return
			}
			w.log.Error(err, "cannot delete the ended pod; trying again")
			w.deletion.failed(w.clock.Now())
		})
	}()
	return false
}

func (w *worker) tornDown(err error) {
	if err != nil && !errors.Is(err, context.Canceled) {
		w.log.Error(err, "cannot end the pod's processes; trying again")
	}
	if err != nil {
		w.teardown.failed(w.clock.Now())
		return
	}
	w.teardown.succeeded()
	w.torn = true
	w.shim = nil
	w.release(w.v.Pod.UID)
	w.gpus = nil
}
