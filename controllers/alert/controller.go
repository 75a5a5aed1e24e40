package alert

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/controllers/index"
)

const (
	// lookEvery is the least time between two looks at an experiment, whose trials are
	// all read.
	lookEvery = 5 * time.Second
	// keepTrying is how old an alert may be that is sent.
	keepTrying = 24 * time.Hour
	// again are the pauses after a webhook does not answer: the first and the longest.
	again, longest = 5 * time.Second, 10 * time.Minute
)

// Options of a Controller.
type Options struct {
	Client client.Client
	// Reader reads Secrets, which are not cached.
	Reader   client.Reader
	Recorder events.EventRecorder
	// Trials are those of an experiment, in order of number; Register names them.
	Trials func(context.Context, *v1beta1.Experiment) ([]*v1beta1.Trial, error)
	Sender *Sender
	// Dashboard is its URL for people, ending with /; empty: not known.
	Dashboard string
	Now       func() time.Time
}

// Controller sends alerts to the webhooks that the Secret of their namespace names. What
// was sent is noted on the experiment after it was sent: a manager that is killed between
// the two sends it again, with the same ID.
type Controller struct{ Options }

// Register adds a controller to mgr, with the index of the trials in its cache. Live
// observations write nothing to an experiment, so its trials wake it, too.
func Register(mgr manager.Manager, trials *index.Trials, o Options) error {
	o.Trials = trials.Of
	soon := handler.Funcs{}
	enqueue := func(o client.Object, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		q.AddAfter(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(o)}, lookEvery)
	}
	soon.CreateFunc = func(_ context.Context, e event.CreateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		enqueue(e.Object, q)
	}
	soon.UpdateFunc = func(_ context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		enqueue(e.ObjectNew, q)
	}
	return builder.ControllerManagedBy(mgr).Named("alert").
		Watches(&v1beta1.Experiment{}, soon).
		WatchesRawSource(trials.Wakes(diverges, lookEvery)).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: 4,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](again, longest),
		}).Complete(&Controller{o})
}

// Reconcile sends what there is to tell of an experiment and was not sent yet.
func (c *Controller) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	exp := &v1beta1.Experiment{}
	if err := c.Client.Get(ctx, req.NamespacedName, exp); err != nil || exp.DeletionTimestamp != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	v1beta1.SetDefaults(exp)
	trials, err := c.Trials(ctx, exp)
	if err != nil {
		return reconcile.Result{}, err
	}
	now := c.Now()
	var result reconcile.Result
	if at := next(exp, trials); at.After(now) {
		result.RequeueAfter = at.Sub(now)
	}
	recent := slices.DeleteFunc(Of(exp, trials, now), func(a Alert) bool { return now.Sub(a.Time) > keepTrying })
	if len(recent) == 0 {
		return result, nil
	}
	to, since, err := c.receivers(ctx, exp)
	if err != nil || len(to) == 0 {
		return result, err
	}
	// The cache may not show yet what was noted last.
	if err := c.Reader.Get(ctx, req.NamespacedName, exp); err != nil {
		return result, client.IgnoreNotFound(err)
	}
	// What happened before there was a receiver is not sent.
	recent = slices.DeleteFunc(recent, func(a Alert) bool { return a.Time.Before(since) })
	return result, c.tell(ctx, exp, recent, to)
}

// receivers are those of an experiment, and since when there are any.
func (c *Controller) receivers(ctx context.Context, exp *v1beta1.Experiment) ([]receiver, time.Time, error) {
	secret := &corev1.Secret{}
	err := c.Reader.Get(ctx, client.ObjectKey{Namespace: exp.Namespace, Name: v1beta1.SecretAlerts}, secret)
	if apierrors.IsNotFound(err) {
		return nil, time.Time{}, nil
	}
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("read secret %s/%s: %w", exp.Namespace, v1beta1.SecretAlerts, err)
	}
	names := slices.Sorted(maps.Keys(secret.Data))
	if chosen, given := exp.Annotations[v1beta1.AnnotationAlerts]; given {
		names = slices.DeleteFunc(strings.Split(strings.ReplaceAll(chosen, " ", ""), ","), func(n string) bool { return n == "" })
		slices.Sort(names)
		names = slices.Compact(names)
	}
	return receivers(secret.Data, names), secret.CreationTimestamp.Time, nil
}

// sent are the marks of what was sent, by receiver and reason.
type sent map[string]map[string]string

func (s sent) has(to receiver, a Alert) bool { return s[to.name][a.Reason] == a.Mark }

func (s sent) note(to receiver, a Alert) {
	if s[to.name] == nil {
		s[to.name] = map[string]string{}
	}
	s[to.name][a.Reason] = a.Mark
}

// tell sends alerts to all receivers at once. One that does not answer holds it up for
// sendTimeout and keeps no other from theirs.
func (c *Controller) tell(ctx context.Context, exp *v1beta1.Experiment, alerts []Alert, to []receiver) error {
	p := &pass{Controller: c, exp: exp, done: sent{}}
	if json.Unmarshal([]byte(exp.Annotations[v1beta1.AnnotationAlertsSent]), &p.done) != nil || p.done == nil {
		p.done = sent{} // what cannot be read was not sent
	}
	problems := make([]error, len(to))
	var all sync.WaitGroup
	for i, r := range to {
		all.Go(func() { problems[i] = p.tell(ctx, alerts, r) })
	}
	all.Wait()
	return errors.Join(problems...)
}

// pass sends the alerts of an experiment.
type pass struct {
	*Controller
	exp *v1beta1.Experiment

	mu   sync.Mutex
	done sent
}

// tell sends alerts to a receiver, the oldest first, and notes each that arrived or never
// will, until one may arrive later. All share one deadline. What has begun to be sent is
// noted although the manager stops.
func (p *pass) tell(ctx context.Context, alerts []Alert, to receiver) error {
	going := context.WithoutCancel(ctx)
	sending, stop := context.WithTimeout(going, sendTimeout)
	defer stop()
	for _, a := range slices.Backward(alerts) {
		if p.has(to, a) {
			continue
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		err := p.Sender.send(sending, to, p.message(p.exp, a))
		if bad := (refused{}); err != nil && !errors.As(err, &bad) {
			return fmt.Errorf("send the alert %s to %s: %w", a.Reason, to.name, err)
		}
		if noted := p.note(going, to, a); noted != nil {
			return noted
		}
		if err != nil {
			notSent(a, to, err).Send(p.Recorder, p.exp)
		}
	}
	return nil
}

func (p *pass) has(to receiver, a Alert) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.done.has(to, a)
}

// note writes down that an alert needs not be sent again.
func (p *pass) note(ctx context.Context, to receiver, a Alert) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done.note(to, a)
	return p.noted(ctx, p.exp, p.done)
}

// noted writes down what was sent.
func (c *Controller) noted(ctx context.Context, exp *v1beta1.Experiment, done sent) error {
	text, err := json.Marshal(done)
	if err == nil {
		var patch []byte
		patch, err = json.Marshal(map[string]any{"metadata": map[string]any{"uid": exp.UID, "annotations": map[string]string{v1beta1.AnnotationAlertsSent: string(text)}}})
		if err == nil {
			err = c.Client.Patch(ctx, exp.DeepCopy(), client.RawPatch("application/merge-patch+json", patch))
		}
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("note what was sent of experiment %s/%s: %w", exp.Namespace, exp.Name, err)
	}
	return nil // or it was deleted meanwhile
}

func (c *Controller) message(exp *v1beta1.Experiment, a Alert) Message {
	m := Message{ID: a.ID, Reason: a.Reason, Severity: "info", Namespace: exp.Namespace, Experiment: exp.Name, Trial: a.Trial, Message: a.Message, Time: a.Time.UTC()}
	if a.Warning {
		m.Severity = "warning"
	}
	if c.Dashboard != "" {
		m.URL = c.Dashboard + "ns/" + exp.Namespace + "/experiments/" + exp.Name
	}
	return m
}
