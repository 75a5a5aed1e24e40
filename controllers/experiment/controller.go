// Package experiment keeps the right number of trials of an experiment alive
// until its goal, its budget or its search space ends it, and names the best.
//
// A reconcile observes (the experiment and its trials), plans (plan.go, pure),
// acts (trials.go: new trials, requests to stop), and writes the status once.
package experiment

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/controllers/expectations"
	"github.com/vernier-ml/vernier/controllers/index"
	"github.com/vernier-ml/vernier/controllers/katib"
	"github.com/vernier-ml/vernier/controllers/study"
	"github.com/vernier-ml/vernier/controllers/webhook"
	"github.com/vernier-ml/vernier/tracing"
)

const (
	// statusEvery is the least time between two status writes that only tell of
	// counts and the best trial.
	statusEvery    = 300 * time.Millisecond
	suggestTimeout = time.Minute
	// conflictPause is how long to wait for the cache after a lost write.
	conflictPause = 50 * time.Millisecond
	// studyPatience is how long a reconcile waits for a study that is used to hand
	// trials out, and then lets other experiments go first.
	studyPatience = time.Second
	// recommendPatience bounds how long a reconcile takes for the recommendation: the
	// last one stays where that is not enough.
	recommendPatience = 2 * time.Second
)

// Options are what a Controller needs.
type Options struct {
	Client   client.Client
	Reader   client.Reader
	Recorder events.EventRecorder
	Metrics  *Metrics
	// Rules check an experiment that no webhook may have seen, and read its template.
	Rules webhook.Rules
	// Scan reads the curves of trials.
	Scan study.Scan
	// Memory bounds what is kept of experiments between reconciles, in bytes.
	// Default: 128 MiB.
	Memory int
	// Trials finds the trials of experiments. Default: they are listed from Client,
	// until Register names an index.
	Trials index.Reader
	// Katib knows whether Katib is installed.
	Katib *katib.Presence
	// Traces take the spans of new trials. Default: none.
	Traces tracing.Tracer
	// Version of the program, and its architecture, for the record of questions.
	Version string
	Now     func() time.Time
}

// Controller reconciles experiments.
type Controller struct {
	Options
	expected *expectations.Expectations

	studies studies
	// woken are experiments whose algorithms are ready for a question.
	woken chan event.GenericEvent
}

// New returns a controller.
func New(o Options) *Controller {
	if o.Trials == nil {
		o.Trials = index.Listed{Reader: o.Client}
	}
	return &Controller{Options: o, expected: expectations.New(), studies: studies{memory: o.Memory}, woken: make(chan event.GenericEvent)}
}

// Register adds the controller to mgr, with the index of the trials in its cache.
func (c *Controller) Register(mgr manager.Manager, trials *index.Trials) error {
	c.Trials = trials
	return builder.ControllerManagedBy(mgr).
		Named("experiment").
		For(&v1beta1.Experiment{}, builder.WithPredicates(predicate.Funcs{DeleteFunc: func(e event.DeleteEvent) bool {
			c.Metrics.katib.Inc("deleted", e.Object.GetNamespace())
			return true
		}})).
		Owns(&v1beta1.Suggestion{}, builder.WithPredicates(answered())).
		WatchesRawSource(trials.Wakes(stateChanged, 0)).
		WatchesRawSource(source.Channel(c.woken, &handler.EnqueueRequestForObject{})).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: 4,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](200*time.Millisecond, time.Minute),
		}).
		Complete(c)
}

// stateChanged says whether a trial's condition has changed, its job enters or leaves a
// queue, or its use of GPUs begins to count. The live observations of running trials do
// not concern the experiment.
func stateChanged(before, after *v1beta1.Trial) bool {
	return before == nil || after == nil || before.State() != after.State() || suspension(before) != suspension(after) ||
		before.Status.ProgramStartTime.IsZero() != after.Status.ProgramStartTime.IsZero() ||
		after.IsCompleted() && !equality.Semantic.DeepEqual(before.Status.Observation, after.Status.Observation)
}

// Reconcile brings one experiment a step further.
func (c *Controller) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	exp := &v1beta1.Experiment{}
	if err := c.Client.Get(ctx, req.NamespacedName, exp); err != nil {
		if apierrors.IsNotFound(err) {
			c.studies.dropNamed(req.NamespacedName)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if leave, err := c.Katib.Leave(ctx, c.Client, exp); err != nil || leave > 0 {
		if leave > 0 && !exp.IsCompleted() {
			leftToKatib.Send(c.Recorder, exp)
		}
		return reconcile.Result{RequeueAfter: leave}, err
	}
	if exp.DeletionTimestamp != nil || c.expected.Stale(exp) {
		return reconcile.Result{}, nil
	}
	// What clients wrote, before the defaults: a status write sends it back.
	v1beta1.SetDefaults(exp)
	trials, err := c.Trials.Of(ctx, exp)
	if err != nil {
		return reconcile.Result{}, err
	}
	waiting, enough := context.WithTimeout(ctx, studyPatience)
	s, found, err := c.inspect(waiting, exp)
	enough()
	if err != nil { // trials are being handed out
		return reconcile.Result{RequeueAfter: studyPatience}, nil
	}
	defer c.studies.done(s)
	s.Update(trials)
	c.recommend(ctx, exp, s)
	a := plan(exp, trials, s.Ranking(), found, c.Now())
	var retry, judge time.Duration
	if found == (findings{}) {
		// New trials go first: everything else can wait for a free slot.
		if exp.RunsOutside() {
			found = c.leftOutside(ctx, s, trials, a)
		} else {
			found, retry = c.tryGrow(ctx, exp, s, trials, a)
		}
		if found != (findings{}) {
			a = plan(exp, trials, s.Ranking(), found, c.Now())
		}
	}
	err = c.stop(ctx, a)
	if err == nil && !over(&a.status) {
		judge, err = c.stopEarly(ctx, exp, s, a.status.TrialsPending+a.status.TrialsRunning > 0)
	}
	result, writeErr := c.write(ctx, exp, s, a.status)
	result.RequeueAfter = soonest(result.RequeueAfter, judge, retry, a.after)
	return result, errors.Join(err, writeErr)
}

// recommend brings the recommendation up to date, until the best is frozen.
func (c *Controller) recommend(ctx context.Context, exp *v1beta1.Experiment, s *kept) {
	if exp.IsCompleted() {
		return
	}
	ctx, enough := context.WithTimeout(ctx, recommendPatience)
	defer enough()
	s.Recommend(ctx)
}

// soonest is the least of the durations that are not 0.
func soonest(durations ...time.Duration) (least time.Duration) {
	for _, d := range durations {
		if d > 0 && (least == 0 || d < least) {
			least = d
		}
	}
	return least
}

// inspect finds what is known of an experiment, and validates it when it is first
// seen. The error is that of ctx, which ended before others had used the study.
func (c *Controller) inspect(ctx context.Context, exp *v1beta1.Experiment) (*kept, findings, error) {
	s, err := c.studies.get(ctx, exp)
	if err != nil {
		return nil, findings{}, err
	}
	if !exp.IsCreated() {
		rules, err := c.Rules.For(ctx, exp)
		if err != nil {
			return s, findings{trouble: v1beta1.MessageHeldUp + err.Error()}, nil
		}
		if _, errs := rules.Validate(exp, nil); len(errs) > 0 {
			return s, findings{fatal: "The experiment is not valid, so no trial was started: " + errs.ToAggregate().Error() +
				". Correct it, delete this experiment and create it again"}, nil
		}
	}
	if s.invalid != nil {
		return s, findings{fatal: s.invalid.Error()}, nil
	}
	return s, findings{}, nil
}

// write writes the status if that is due, then sends the events of what it
// says. Writes that only tell of counts are held back a little, so that many
// short trials do not cost as many writes.
func (c *Controller) write(ctx context.Context, exp *v1beta1.Experiment, s *kept, want v1beta1.ExperimentStatus) (reconcile.Result, error) {
	key := client.ObjectKeyFromObject(exp)
	differ, canWait := differs(&exp.Status, &want)
	if !differ {
		return reconcile.Result{}, nil
	}
	now := c.Now()
	if wait := statusEvery - now.Sub(s.wrote); canWait && wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	before := exp.Status
	want.LastReconcileTime = ptr.To(metav1.NewTime(now))
	exp.Status = want
	if err := c.Client.Status().Update(ctx, exp); err != nil {
		if apierrors.IsConflict(err) {
			return reconcile.Result{RequeueAfter: conflictPause}, nil
		}
		if apierrors.IsNotFound(err) {
			return reconcile.Result{}, nil // deleted since it was read
		}
		return reconcile.Result{}, fmt.Errorf("write the status of experiment %s: %w", key, err)
	}
	c.expected.Wrote(exp)
	s.wrote = now
	if over(&want) {
		c.studies.drop(exp.UID)
	}
	for _, e := range transitions(exp, &before, &want) {
		e.Send(c.Recorder, exp)
	}
	c.Metrics.wrote(exp, &before, &want)
	return reconcile.Result{}, nil
}
