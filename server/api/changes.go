package api

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/controllers/index"
)

// topic is something that streams watch: the experiments of a namespace, and with a
// name the trials of one of them, or their points.
type topic struct {
	namespace, experiment string
	points                bool
}

// Changes tells the streams of Watch what has changed. The zero value is ready.
type Changes struct {
	mu        sync.Mutex
	listeners map[topic]map[*listener]bool
}

// listener is a stream. What it has not taken yet is remembered once for each topic, so
// that a slow one takes no memory.
type listener struct {
	mu    sync.Mutex
	dirty map[topic]map[string]bool // the trials, where those are known
	woken chan struct{}
}

// Listen follows the experiments of a cache, and the trials of its index, which shows a
// change when streams are told of it.
func (c *Changes) Listen(ctx context.Context, objects cache.Cache, trials *index.Trials) error {
	informer, err := objects.GetInformer(ctx, &v1beta1.Experiment{})
	if err == nil {
		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    c.Changed,
			UpdateFunc: func(_, now any) { c.Changed(now) },
			DeleteFunc: c.Changed,
		})
	}
	if err != nil {
		return fmt.Errorf("follow what changes: %w", err)
	}
	trials.Tell(func(before, after *v1beta1.Trial) { c.Changed(cmp.Or(after, before)) })
	return nil
}

// Changed tells of an Experiment or a Trial that was made, changed or deleted.
func (c *Changes) Changed(o any) {
	if gone, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
		o = gone.Obj
	}
	switch o := o.(type) {
	case *v1beta1.Experiment:
		c.tell(topic{namespace: o.Namespace}, o.Name)
		c.tell(topic{namespace: o.Namespace, experiment: o.Name}, "")
	case *v1beta1.Trial:
		name := o.Labels[v1beta1.LabelExperiment]
		c.tell(topic{namespace: o.Namespace, experiment: name}, o.Name)
		if o.IsCompleted() { // the last of its curve
			c.tell(topic{o.Namespace, name, true}, o.Name)
		}
	}
}

// Points tells of new points of a trial.
func (c *Changes) Points(t collector.TrialID) { c.tell(topic{t.Namespace, t.Experiment, true}, t.Name) }

func (c *Changes) tell(t topic, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for l := range c.listeners[t] {
		l.mark(t, name)
	}
}

func (l *listener) mark(t topic, name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dirty[t] == nil {
		l.dirty[t] = map[string]bool{}
	}
	l.dirty[t][name] = true
	select {
	case l.woken <- struct{}{}:
	default:
	}
}

// take is what has changed since the last time.
func (l *listener) take() map[topic]map[string]bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	dirty := l.dirty
	l.dirty = map[topic]map[string]bool{}
	return dirty
}

// join begins to listen; leave ends it.
func (c *Changes) join(topics []topic) (l *listener, leave func()) {
	l = &listener{dirty: map[topic]map[string]bool{}, woken: make(chan struct{}, 1)}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.listeners == nil {
		c.listeners = map[topic]map[*listener]bool{}
	}
	for _, t := range topics {
		if c.listeners[t] == nil {
			c.listeners[t] = map[*listener]bool{}
		}
		c.listeners[t][l] = true
	}
	return l, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, t := range topics {
			delete(c.listeners[t], l)
			if len(c.listeners[t]) == 0 {
				delete(c.listeners, t)
			}
		}
	}
}
