package agent

import (
	"bytes"
	"context"
	"errors"
	"math"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"

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
	// How many pods the pod's Job may have active; 0 until it was asked.
	parallelism int32
	volumes     volumeSet
	gpus        map[string][]string
	tokens      *tokenKeeper
	warned      bool
	failures    map[string]*wait.Backoff // of containers that could not be started, since the last start

	asking   task
	sandbox  task
	refresh  task
	teardown task
	deletion task
	write    task
	torn     bool // processes are gone and the shim has ended
	deleted  bool // the object was deleted, or is gone

	written    []byte // the patch that the API server has
	dirtySince time.Time
	probing    map[string]context.CancelFunc
}

// task is work that is done outside of the worker's goroutine, one at a time, and
// tried again after a failure.
type task struct {
	running bool
	next    time.Time
	backoff *wait.Backoff
}

func newBackoff() *wait.Backoff {
	return &wait.Backoff{Duration: retryFirst, Factor: 2, Cap: retryMax, Steps: math.MaxInt32}
}

func (t *task) failed(now time.Time) {
	t.running = false
	if t.backoff == nil {
		t.backoff = newBackoff()
	}
	t.next = now.Add(t.backoff.Step())
}

// begin does work if the task is due. done, if any, is then run in the worker's
// goroutine, with or without an error. A failure is logged as what could not be
// done.
func (w *worker) begin(ctx context.Context, t *task, next *decision, what string, work func(context.Context) (done func(), err error)) {
	if t.running {
		return
	}
	if time.Now().Before(t.next) {
		next.wakeAt(t.next)
		return
	}
	t.running = true
	go func() {
		callCtx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		done, err := work(callCtx)
		w.post(ctx, func() {
			if err == nil {
				*t = task{}
			} else {
				t.failed(time.Now())
				if !errors.Is(err, context.Canceled) {
					w.log.Error(err, "cannot "+what+"; trying again")
				}
			}
			if done != nil {
				done()
			}
		})
	}()
}

func newWorker(n *node, pod *corev1.Pod) *worker {
	w := &worker{
		node:     n,
		log:      n.log.WithValues("pod", pod.Namespace+"/"+pod.Name),
		inbox:    make(chan func(), 16),
		done:     make(chan struct{}),
		drained:  make(chan struct{}),
		failures: map[string]*wait.Backoff{},
		probing:  map[string]context.CancelFunc{},
		tokens:   &tokenKeeper{volumeSource: n.cluster, now: time.Now},
	}
	w.v = view{
		Pod: pod, HostIP: n.hostIP, Conditions: pod.Status.Conditions, Containers: map[string]*containerView{}}
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
	for {
		next, again, ended := w.step(ctx)
		if ended || ctx.Err() != nil {
			return
		}
		pause := time.Hour
		switch {
		case again:
			pause = 0
		case !next.Wake.IsZero():
			pause = max(time.Until(next.Wake), time.Millisecond)
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case f := <-w.inbox:
			f()
			w.drain()
		case <-timer.C:
		}
		timer.Stop()
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

// step does all that can be done now, and says what follows: the wake time, and
// whether to step again at once or to end.
func (w *worker) step(ctx context.Context) (next decision, again, ended bool) {
	now := time.Now()
	defer w.noteDrained()
	if isTerminal(w.v.Pod.Status.Phase) {
		// The end was written before; only what is left of the pod is to go.
		return next, false, w.finish(ctx, &next)
	}
	if w.waitsOut() || w.admit(ctx, now, &next) {
		return next, false, false
	}
	w.prepare(ctx, now, &next)
	if !w.known && w.v.Rejected == nil {
		return next, false, false
	}
	d := plan(&w.v, now)
	if !d.Wake.IsZero() {
		next.wakeAt(d.Wake)
	}
	if w.act(ctx, d.Actions) {
		return next, true, false
	}
	w.syncProbes(ctx)
	w.publish(ctx, now, d.Settled, &next)
	return next, false, d.Settled && w.finish(ctx, &next)
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
		if signalled, ok := w.v.unaskedSignal(); ok && w.v.Down.IsZero() && w.v.Pod.DeletionTimestamp == nil {
			at = signalled.Add(signalWindow) // perhaps the node goes down too
		}
	}
	if now.Before(at) {
		next.wakeAt(at)
		return
	}
	pod := w.v.Pod
	w.begin(ctx, &w.write, next, "write the pod's status", func(ctx context.Context) (func(), error) {
		updated, err := writeStatus(ctx, w.client, pod, patch)
		if err != nil {
			return nil, err
		}
		return func() {
			w.written, w.dirtySince = patch, time.Time{}
			w.update(updated)
		}, nil
	})
}

// finish clears up behind a pod of which nothing runs any more. It reports
// whether nothing is left to do.
func (w *worker) finish(ctx context.Context, next *decision) bool {
	for name := range w.probing {
		w.stopProbe(name)
	}
	if !w.torn {
		uid := w.v.Pod.UID
		w.begin(ctx, &w.teardown, next, "end the pod's processes", func(ctx context.Context) (func(), error) {
			if err := endProcesses(ctx, w.layout, uid); err != nil {
				return nil, err
			}
			return w.tornDown, nil
		})
	}
	if w.v.Gone {
		if w.torn {
			w.forget(identityOf(w.v.Pod))
		}
		return w.torn
	}
	if w.v.Pod.DeletionTimestamp == nil || !isTerminal(w.v.Pod.Status.Phase) || w.deleted || !w.torn {
		return false
	}
	pod := w.v.Pod
	w.begin(ctx, &w.deletion, next, "delete the ended pod", func(ctx context.Context) (func(), error) {
		err := deletePod(ctx, w.client, pod)
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return nil, err
		}
		return func() { w.deleted = true }, nil
	})
	return false
}

func (w *worker) tornDown() {
	w.torn = true
	w.shim = nil
	w.release(w.v.Pod.UID)
	w.gpus = nil
}
