// Package index keeps the trials of each experiment in order of number, as the events
// of a cache tell of them: to list and sort ten thousand costs more than a question.
package index

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

// Reader finds the trials of experiments.
type Reader interface {
	// Of are the trials of an experiment, in order of number and then of name. They are
	// shared, as is the list: neither may be changed.
	Of(ctx context.Context, exp *v1beta1.Experiment) ([]*v1beta1.Trial, error)
	// Await waits until the trial of that name, number and experiment is there and enough
	// is true of it.
	Await(ctx context.Context, trial *v1beta1.Trial, enough func(*v1beta1.Trial) bool) error
}

// Trials is the index. It tells others of a change once it shows it, so that who is
// woken by one finds it. Everything that Trials shows, the cache shows too.
type Trials struct {
	synced func() bool

	mu        sync.Mutex
	lists     map[types.UID]*list // by the UID of the experiment
	waiting   map[types.NamespacedName][]*waiter
	followers []Follower
}

// Follower is told of a trial that was made (before is nil), changed, or deleted (after
// is nil). It must not block.
type Follower func(before, after *v1beta1.Trial)

// list is the trials of an experiment. One that was handed out is not changed again.
type list struct {
	trials []*v1beta1.Trial
	handed bool
}

type waiter struct {
	enough func(*v1beta1.Trial) bool
	found  chan struct{}
}

var _ Reader = (*Trials)(nil)

// New returns an index of nothing, which Put fills.
func New() *Trials {
	return &Trials{synced: func() bool { return true }, lists: map[types.UID]*list{}, waiting: map[types.NamespacedName][]*waiter{}}
}

// Follow returns the index of the trials in a cache.
func Follow(ctx context.Context, objects cache.Cache) (*Trials, error) {
	informer, err := objects.GetInformer(ctx, &v1beta1.Trial{})
	if err != nil {
		return nil, fmt.Errorf("follow the trials: %w", err)
	}
	x := New()
	handler, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { x.Put(nil, trial(o)) },
		UpdateFunc: func(before, after any) { x.Put(trial(before), trial(after)) },
		DeleteFunc: func(o any) { x.Put(trial(o), nil) },
	})
	if err != nil {
		return nil, fmt.Errorf("follow the trials: %w", err)
	}
	x.synced = handler.HasSynced
	return x, nil
}

func trial(o any) *v1beta1.Trial {
	if gone, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
		o = gone.Obj
	}
	t, _ := o.(*v1beta1.Trial)
	return t
}

// Tell tells f of all that happens from now on.
func (x *Trials) Tell(f Follower) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.followers = append(x.followers, f)
}

// Put takes in what has happened to a trial, in the words of Follower.
func (x *Trials) Put(before, after *v1beta1.Trial) {
	if before == nil && after == nil {
		return
	}
	x.mu.Lock()
	if before != nil && (after == nil || experimentOf(before) != experimentOf(after) || order(before, after) != 0) {
		x.remove(before)
	}
	if after != nil {
		x.insert(after)
		x.wake(after)
	}
	followers := x.followers
	x.mu.Unlock()
	for _, f := range followers {
		f(before, after)
	}
}

// experimentOf is the UID of the experiment that owns a trial; empty: none does.
func experimentOf(t *v1beta1.Trial) types.UID {
	if owner := metav1.GetControllerOf(t); owner != nil && owner.Kind == "Experiment" {
		return owner.UID
	}
	return ""
}

func order(a, b *v1beta1.Trial) int {
	n, _ := a.Number()
	m, _ := b.Number()
	return cmp.Or(cmp.Compare(n, m), strings.Compare(a.Name, b.Name))
}

func (x *Trials) insert(t *v1beta1.Trial) {
	uid := experimentOf(t)
	if uid == "" {
		return
	}
	l := x.lists[uid]
	if l == nil {
		l = &list{}
		x.lists[uid] = l
	}
	at, found := slices.BinarySearchFunc(l.trials, t, order)
	if found {
		l.own()
		l.trials[at] = t
		return
	}
	if at < len(l.trials) { // what is added at the end changes nothing that was handed out
		l.own()
	}
	l.trials = slices.Insert(l.trials, at, t)
}

func (x *Trials) remove(t *v1beta1.Trial) {
	l := x.lists[experimentOf(t)]
	if l == nil {
		return
	}
	if at, found := slices.BinarySearchFunc(l.trials, t, order); found {
		l.own()
		l.trials = slices.Delete(l.trials, at, at+1)
	}
	if len(l.trials) == 0 {
		delete(x.lists, experimentOf(t))
	}
}

// own makes the list one that was not handed out.
func (l *list) own() {
	if l.handed {
		l.trials, l.handed = append(make([]*v1beta1.Trial, 0, len(l.trials)+len(l.trials)/8+8), l.trials...), false
	}
}

// Of implements Reader.
func (x *Trials) Of(ctx context.Context, exp *v1beta1.Experiment) ([]*v1beta1.Trial, error) {
	if err := x.WaitForSync(ctx); err != nil {
		return nil, fmt.Errorf("list the trials of experiment %s/%s: %w", exp.Namespace, exp.Name, err)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	l := x.lists[exp.UID]
	if l == nil {
		return nil, nil
	}
	l.handed = true
	return slices.Clip(l.trials), nil
}

// WaitForSync waits until all trials are there that there were when the index began.
func (x *Trials) WaitForSync(ctx context.Context) error {
	if !x.synced() && !toolscache.WaitForCacheSync(ctx.Done(), x.synced) {
		return fmt.Errorf("the cache of trials is not filled yet: %w", ctx.Err())
	}
	return nil
}

// Await implements Reader.
func (x *Trials) Await(ctx context.Context, trial *v1beta1.Trial, enough func(*v1beta1.Trial) bool) error {
	key, w := client.ObjectKeyFromObject(trial), &waiter{enough, make(chan struct{})}
	x.mu.Lock()
	if l := x.lists[experimentOf(trial)]; l != nil {
		if at, found := slices.BinarySearchFunc(l.trials, trial, order); found && enough(l.trials[at]) {
			x.mu.Unlock()
			return nil
		}
	}
	x.waiting[key] = append(x.waiting[key], w)
	x.mu.Unlock()
	select {
	case <-w.found:
		return nil
	case <-ctx.Done():
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.waiting[key] = slices.DeleteFunc(x.waiting[key], func(o *waiter) bool { return o == w })
	if len(x.waiting[key]) == 0 {
		delete(x.waiting, key)
	}
	return fmt.Errorf("wait for trial %s in the cache: %w", key, ctx.Err())
}

func (x *Trials) wake(t *v1beta1.Trial) {
	key := client.ObjectKeyFromObject(t)
	all, some := x.waiting[key]
	if !some {
		return
	}
	all = slices.DeleteFunc(all, func(w *waiter) bool {
		enough := w.enough(t)
		if enough {
			close(w.found)
		}
		return enough
	})
	if x.waiting[key] = all; len(all) == 0 {
		delete(x.waiting, key)
	}
}

// wakes is a source of a controller's events.
type wakes struct {
	*Trials
	concerns Filter
	lag      time.Duration
}

// Wakes is a source of events for a controller of experiments: each is woken by the
// changes of its trials that concern it, lag after the index shows them.
func (x *Trials) Wakes(concerns Filter, lag time.Duration) source.SyncingSource {
	return wakes{x, concerns, lag}
}

// Filter says whether a change concerns someone, in the words of Follower.
type Filter func(before, after *v1beta1.Trial) bool

// Start implements source.Source.
func (w wakes) Start(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	w.Tell(func(before, after *v1beta1.Trial) {
		t := cmp.Or(after, before)
		if owner := metav1.GetControllerOf(t); owner != nil && owner.Kind == "Experiment" && w.concerns(before, after) {
			queue.AddAfter(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: t.Namespace, Name: owner.Name}}, w.lag)
		}
	})
	return nil
}
