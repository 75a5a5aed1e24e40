// Package trial runs one evaluation of a point: it makes the trial's job with
// the collector in it, follows the job to its end, and condenses what was
// measured into the trial's observation.
//
// A reconcile observes (observe.go), plans (plan.go, pure), acts (jobs.go), and
// writes the status at most once. A job is removed by the reconcile that the
// final status write causes, so a job never goes before its trial's end is
// known. Only that of a trial that is stopped early goes before: the annotation
// says how it ends, and what its program still reports counts.
package trial

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/store"
	"github.com/vernier-ml/vernier/controllers/expectations"
	"github.com/vernier-ml/vernier/controllers/katib"
	"github.com/vernier-ml/vernier/tracing"
	"github.com/vernier-ml/vernier/trainer"
)

const (
	conflictPause = 50 * time.Millisecond
	podIndex      = "trial"
	// wakes is how many wake-ups by reports can be waiting. More are dropped:
	// a trial is woken by its job's end in any case.
	wakes = 4096
)

// Reporting says how the collectors of trials report.
type Reporting struct {
	// Image holds the collector.
	Image string
	// Binary is the collector command as trials' containers find it, where they
	// do without an image; see trainer.Collector.
	Binary string
	Rate   int64
	// Mount says whether all nodes can mount Image; see trainer.Collector. Default: no.
	Mount func(context.Context) bool
	// PullPolicy of the image. Default: Kubernetes' own.
	PullPolicy corev1.PullPolicy
	Resources  corev1.ResourceRequirements
	// URL of the report service, as pods reach it.
	URL string
	// CA signed the service's certificate (PEM). Empty: the system's authorities.
	CA string
	// RerunDisrupted is the trainer.Collector's.
	RerunDisrupted bool
	// Commands are what images run, where it is known; see trainer.Collector.
	Commands trainer.Commands
	// Entrypoint finds out what an image runs; see trainer.Collector. Default: none.
	Entrypoint func(context.Context, trainer.Image) (entrypoint, command []string, err error)
	// Token makes the token with which a trial reports.
	Token func(collector.TrialID) (string, error)
}

// Options are what a Controller needs.
type Options struct {
	Client client.Client
	Reader client.Reader
	// Cache is where jobs of new kinds are watched.
	Cache cache.Cache
	// Mapper knows the kinds of the cluster.
	Mapper   meta.RESTMapper
	Recorder events.EventRecorder
	Metrics  *Metrics
	Store    collector.Store
	// Retention says which curves are kept. Those of trials that run and of the
	// best trials of experiments are kept in any case; its Keep is not used.
	Retention store.Retention
	Reporting Reporting
	// Limits are those of trials whose experiments say nothing.
	Limits Limits
	// Together says that jobs whose pods work together are made when all of them have
	// room, because no scheduler of this cluster sees to that.
	Together bool
	// Katib knows whether Katib is installed.
	Katib *katib.Presence
	// Traces take the spans of trials that are traced. Default: none.
	Traces tracing.Tracer
	Now    func() time.Time
}

// Controller reconciles trials.
type Controller struct {
	Options
	expected *expectations.Expectations
	memory   *memory
	rooms    *rooms
	warnings warnings
	wakes    chan event.TypedGenericEvent[types.NamespacedName]

	mu       sync.Mutex
	watching controller.Controller
	kinds    map[schema.GroupVersionKind]bool
}

// New returns a controller.
func New(o Options) *Controller {
	c := &Controller{
		Options: o, expected: expectations.New(), memory: newMemory(),
		wakes: make(chan event.TypedGenericEvent[types.NamespacedName], wakes),
		kinds: map[schema.GroupVersionKind]bool{},
	}
	if o.Together {
		c.rooms = newRooms(o.Reader, o.Client)
	}
	return c
}

// Wake tells the controller that a trial has new points. It does not block.
func (c *Controller) Wake(id collector.TrialID) {
	select {
	case c.wakes <- event.TypedGenericEvent[types.NamespacedName]{Object: types.NamespacedName{Namespace: id.Namespace, Name: id.Name}}:
	default:
	}
}

// Register adds the controller, its index and the sweep of the store to mgr.
func (c *Controller) Register(ctx context.Context, mgr manager.Manager) error {
	err := mgr.GetFieldIndexer().IndexField(ctx, &corev1.Pod{}, podIndex, func(o client.Object) []string {
		return []string{o.GetLabels()[v1beta1.LabelTrial]}
	})
	if err != nil {
		return fmt.Errorf("index pods by trial: %w", err)
	}
	byReport := handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, key types.NamespacedName) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: key}}
	})
	c.watching, err = builder.ControllerManagedBy(mgr).
		Named("trial").
		For(&v1beta1.Trial{}).
		Watches(&v1beta1.Trial{}, handler.Funcs{DeleteFunc: c.trialDeleted}).
		WatchesRawSource(source.TypedChannel(c.wakes, byReport)).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: 12,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](100*time.Millisecond, time.Minute),
		}).
		Build(c)
	if err != nil {
		return fmt.Errorf("set up the trial controller: %w", err)
	}
	if err := c.watch(ctx, schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}); err != nil {
		return err
	}
	if _, err := mgr.GetCache().GetInformer(ctx, namespace()); err != nil {
		return fmt.Errorf("watch namespaces: %w", err)
	}
	return mgr.Add(manager.RunnableFunc(c.sweep))
}

// Reconcile brings one trial a step further.
func (c *Controller) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	if err := c.forgetDeleted(ctx, req.NamespacedName); err != nil {
		return reconcile.Result{}, err
	}
	t := &v1beta1.Trial{}
	if err := c.Client.Get(ctx, req.NamespacedName, t); err != nil {
		if apierrors.IsNotFound(err) {
			c.memory.forgetJobs(req.NamespacedName)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if leave, err := c.Katib.Leave(ctx, c.Client, t); err != nil || leave > 0 {
		return reconcile.Result{RequeueAfter: leave}, err
	}
	if t.DeletionTimestamp != nil || c.expected.Stale(t) {
		return reconcile.Result{}, nil
	}
	if lease, ok := t.Lease(); ok {
		return c.followOutside(ctx, t, lease)
	}
	s, err := c.observe(ctx, t)
	if err != nil {
		return reconcile.Result{}, err
	}
	d := plan(s, c.Now())
	switch {
	case d.create:
		fatal, trouble := c.launch(ctx, t)
		d = launched(t, fatal, trouble, c.Limits, c.Now())
		if fatal == "" && trouble == "" && t.IsRunning() {
			jobRecreated(t).Send(c.Recorder, t)
			c.Metrics.retries.WithLabelValues(t.Namespace).Inc()
		}
	case d.remove:
		if err := c.remove(ctx, t); err != nil {
			return reconcile.Result{}, err
		}
	}
	if d.status != nil {
		return c.write(ctx, t, s.pods, *d.status, d.after)
	}
	return reconcile.Result{RequeueAfter: d.after}, nil
}

func (c *Controller) write(ctx context.Context, t *v1beta1.Trial, pods []corev1.Pod, want v1beta1.TrialStatus, after time.Duration) (reconcile.Result, error) {
	before := t.Status
	want.LastReconcileTime = ptr.To(metav1.NewTime(c.Now()))
	t.Status = want
	if err := c.Client.Status().Update(ctx, t); err != nil {
		if apierrors.IsConflict(err) {
			return reconcile.Result{RequeueAfter: conflictPause}, nil
		}
		if apierrors.IsNotFound(err) {
			return reconcile.Result{}, nil // deleted since it was read
		}
		return reconcile.Result{}, fmt.Errorf("write the status of trial %s/%s: %w", t.Namespace, t.Name, err)
	}
	c.expected.Wrote(t)
	c.announce(ctx, t, pods, &before)
	return reconcile.Result{RequeueAfter: after}, nil
}

// Announce sends the events, metrics and span of a status that the API has written
// to a trial that no job runs.
func (c *Controller) Announce(ctx context.Context, t *v1beta1.Trial, before *v1beta1.TrialStatus) {
	c.announce(ctx, t, nil, before)
}

func (c *Controller) announce(ctx context.Context, t *v1beta1.Trial, pods []corev1.Pod, before *v1beta1.TrialStatus) {
	for _, e := range transitions(t, before, &t.Status) {
		e.Send(c.Recorder, t)
	}
	c.Metrics.wrote(t, pods, before, &t.Status)
	c.traceEnd(ctx, t, before)
}

// traceEnd adds the span of a trial that has just ended to its trace.
func (c *Controller) traceEnd(ctx context.Context, t *v1beta1.Trial, before *v1beta1.TrialStatus) {
	began, ended := t.Status.StartTime, t.Status.CompletionTime
	if before.CompletionTime != nil || began == nil || ended == nil {
		return
	}
	_, span := c.Traces.Continue(ctx, t.Annotations[v1beta1.AnnotationTraceparent], "trial", ofTrace(t), trace.WithTimestamp(began.Time),
		trace.WithAttributes(attribute.String("vernier.result", resultLabel(t.State()))))
	if t.State() == v1beta1.TrialFailed {
		span.SetStatus(codes.Error, t.LastCondition().Message)
	}
	span.End(trace.WithTimestamp(ended.Time))
}

func ofTrace(t *v1beta1.Trial) trace.SpanStartOption {
	return tracing.Of(t.Namespace, t.Labels[v1beta1.LabelExperiment], t.Name)
}

// remove deletes the job of a trial that has ended. Its pods go in the
// background: nothing waits for them.
func (c *Controller) remove(ctx context.Context, t *v1beta1.Trial) error {
	gvk, err := kindOf(t)
	if err != nil {
		return nil //nolint:nilerr // without a readable kind no job was ever made
	}
	job := &unstructured.Unstructured{}
	job.SetGroupVersionKind(gvk)
	job.SetNamespace(t.Namespace)
	job.SetName(t.Name)
	err = c.Client.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationBackground))
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return fmt.Errorf("delete the job of trial %s/%s: %w", t.Namespace, t.Name, err)
	default:
		jobDeleted(t).Send(c.Recorder, t)
	}
	return nil
}
