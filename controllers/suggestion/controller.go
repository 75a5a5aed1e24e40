// Package suggestion keeps the Suggestion object of each experiment: a record, for
// clients that read it, of what was proposed. Where the algorithm is a service that
// Katib's ConfigMap names, the experiment's controller requests trials in it, and this
// package runs the service, asks it, and writes its proposals there.
package suggestion

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/controllers/expectations"
	"github.com/vernier-ml/vernier/controllers/index"
	"github.com/vernier-ml/vernier/controllers/katib"
	"github.com/vernier-ml/vernier/controllers/study"
)

// lag is how far the record may be behind. All changes within it become one
// write, so that the record costs next to nothing however fast trials end.
const lag = 2 * time.Second

// Options are what a Controller needs.
type Options struct {
	Client client.Client
	// Reader reads Katib's ConfigMap.
	Reader client.Reader
	// Dial connects to a port of the pod of an algorithm's service. Default: by the
	// name of the Service.
	Dial func(ctx context.Context, namespace, service string, port int) (net.Conn, error)
	// Trials finds the trials of experiments. Default: they are listed from Client,
	// until Register names an index.
	Trials index.Reader
	// Katib knows whether Katib is installed.
	Katib *katib.Presence
	Now   func() time.Time
}

// Controller keeps suggestions.
type Controller struct {
	Options
	expected *expectations.Expectations

	mu       sync.Mutex
	services map[types.UID]*service // by the UID of the Suggestion
	// woken are experiments whose services have answered.
	woken chan event.GenericEvent
}

// New returns a controller.
func New(o Options) *Controller {
	if o.Trials == nil {
		o.Trials = index.Listed{Reader: o.Client}
	}
	return &Controller{Options: o, expected: expectations.New(), services: map[types.UID]*service{}, woken: make(chan event.GenericEvent)}
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// Register adds the controller to mgr, with the index of the trials in its cache.
func (c *Controller) Register(mgr manager.Manager, trials *index.Trials) error {
	c.Trials = trials
	later := func(namespace, name string, q queue) {
		q.AddAfter(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}, lag)
	}
	owner := func(o client.Object, q queue) {
		if ref := metav1.GetControllerOf(o); ref != nil && ref.Kind == "Experiment" {
			later(o.GetNamespace(), ref.Name, q)
		}
	}
	experiments := handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) {
			q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(e.Object)})
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			if endsOrGoesOn(e) {
				q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(e.ObjectNew)})
				return
			}
			later(e.ObjectNew.GetNamespace(), e.ObjectNew.GetName(), q)
		},
	}
	// Only that a trial is made or deleted concerns the record.
	madeOrDeleted := func(before, after *v1beta1.Trial) bool { return before == nil || after == nil }
	suggestions := handler.Funcs{
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			if s, ok := e.ObjectNew.(*v1beta1.Suggestion); ok && s.Spec.Requests > s.Status.SuggestionCount {
				q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(s)})
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) {
			c.forget(e.Object.GetUID())
			owner(e.Object, q)
		},
	}
	err := builder.ControllerManagedBy(mgr).
		Named("suggestion").
		Watches(&v1beta1.Experiment{}, experiments).
		Watches(&v1beta1.Suggestion{}, suggestions).
		WatchesRawSource(trials.Wakes(madeOrDeleted, lag)).
		WatchesRawSource(source.Channel(c.woken, &handler.EnqueueRequestForObject{})).
		WithOptions(controller.Options{
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](lag, time.Minute),
		}).
		Complete(c)
	if err != nil {
		return fmt.Errorf("set up the suggestion controller: %w", err)
	}
	return nil
}

// endsOrGoesOn says whether the experiment has ended, or goes on again. Katib's clients
// look at the record as soon as they see that, so it is not written later.
func endsOrGoesOn(e event.UpdateEvent) bool {
	was, ok := e.ObjectOld.(*v1beta1.Experiment)
	is, too := e.ObjectNew.(*v1beta1.Experiment)
	return ok && too && was.IsCompleted() != is.IsCompleted()
}

// Reconcile brings the record of one experiment up to date.
func (c *Controller) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	exp := &v1beta1.Experiment{}
	if err := c.Client.Get(ctx, req.NamespacedName, exp); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if leave, err := c.Katib.Leave(ctx, c.Client, exp); err != nil || leave > 0 {
		return reconcile.Result{RequeueAfter: leave}, err
	}
	if exp.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	v1beta1.SetDefaults(exp)
	have := &v1beta1.Suggestion{}
	err := c.Client.Get(ctx, req.NamespacedName, have)
	if apierrors.IsNotFound(err) {
		have, err = nil, nil
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("read suggestion %s: %w", req, err)
	}
	if have != nil {
		if ref := metav1.GetControllerOf(have); ref == nil || ref.UID != exp.UID {
			// Left over from a deleted experiment, or made by another client.
			return reconcile.Result{RequeueAfter: time.Minute}, nil
		}
		if c.expected.Stale(have) {
			return reconcile.Result{RequeueAfter: lag}, nil
		}
	}
	trials, err := c.Trials.Of(ctx, exp)
	if err != nil {
		return reconcile.Result{}, err
	}
	if study.ProposedByService(&exp.Spec) {
		return c.serveOutside(ctx, exp, have, trials)
	}
	return c.write(ctx, exp, have, plan(have, exp, trials, c.Now()))
}

// beingDeleted says that a create found an object of that name that goes as soon as
// nothing uses it: that of a deleted experiment of the same name.
func beingDeleted(err error) bool {
	return apierrors.IsAlreadyExists(err) && strings.HasPrefix(err.Error(), "object is being deleted: ")
}

// write creates or updates the record: the spec first, which gives the object
// back with the status that the server has.
func (c *Controller) write(ctx context.Context, exp *v1beta1.Experiment, have, want *v1beta1.Suggestion) (reconcile.Result, error) {
	status := want.Status
	var err error
	switch {
	case have == nil:
		// The record comes last: what exists with it is not looked for again.
		if claim, needed := volumeClaim(exp, want); claim != nil && (needed || study.KnownAlgorithm(want.AlgorithmName())) {
			err := c.Client.Create(ctx, claim)
			switch {
			case beingDeleted(err):
				return reconcile.Result{RequeueAfter: lag}, nil
			case !needed && (apierrors.IsForbidden(err) || apierrors.IsInvalid(err)): // a quota, for instance; nothing is kept in it
				log.FromContext(ctx).Error(err, "the volume claim that Katib's clients look for cannot be made")
			case err != nil && !apierrors.IsAlreadyExists(err):
				return reconcile.Result{}, fmt.Errorf("make the volume claim of suggestion %s/%s: %w", want.Namespace, want.Name, err)
			}
		}
		err = c.Client.Create(ctx, want)
	case !sameSpec(have, want):
		err = c.Client.Update(ctx, want)
	}
	if err == nil && (have == nil || !sameStatus(&have.Status, &status)) {
		status.LastReconcileTime = ptr.To(metav1.NewTime(c.Now()))
		want.Status = status
		err = c.Client.Status().Update(ctx, want)
	}
	switch {
	case err == nil:
		c.expected.Wrote(want)
		return reconcile.Result{}, nil
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err):
		return reconcile.Result{RequeueAfter: lag}, nil
	default:
		return reconcile.Result{}, fmt.Errorf("write suggestion %s/%s: %w", want.Namespace, want.Name, err)
	}
}
