package trial

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector"
)

// settle is how long a trial is handed out before its status says that it runs: one
// that is over by then is written once.
const settle = time.Second

// followOutside advances a trial without a job. Its worker reports and completes it
// through the API. Here its status shows that it runs, its measurements so far, and
// that its worker is lost; and a trial that was asked to stop ends once it has no worker.
func (c *Controller) followOutside(ctx context.Context, t *v1beta1.Trial, lease v1beta1.Lease) (reconcile.Result, error) {
	now := c.Now()
	if t.IsCompleted() {
		c.memory.forgetJob(t.UID)
		return reconcile.Result{}, nil
	}
	s := seen{trial: t, wait: max(liveDue(t, now), c.memory.rest(t.UID, now))}
	if !lease.Held(now) || t.IsRunning() && s.wait <= 0 {
		var err error
		if s.data, err = c.measure(ctx, t, nil, reading{}); err != nil {
			return reconcile.Result{}, err
		}
		c.memory.wasRead(t.UID, c.Now().Sub(now), now)
	}
	d := planOutside(s, lease, now)
	if d.status != nil {
		return c.write(ctx, t, nil, *d.status, d.after)
	}
	return reconcile.Result{RequeueAfter: d.after}, nil
}

// planOutside decides about a trial that has not ended. It does not change s.
func planOutside(s seen, lease v1beta1.Lease, now time.Time) decision {
	t := &v1beta1.Trial{ObjectMeta: s.trial.ObjectMeta, Spec: s.trial.Spec, Status: *s.trial.Status.DeepCopy()}
	at := metav1.NewTime(now)
	held := lease.Held(now)
	stop, early := t.Annotations[v1beta1.AnnotationStop], t.Annotations[v1beta1.AnnotationStopEarly]
	switch {
	case !held && stop != "":
		t.MarkKilled("Trial was stopped: "+stop, at)
		return finish(t, s, now)
	case !held && early != "":
		t.MarkEarlyStopped("Trial was stopped early: "+early, at)
		return finish(t, s, now)
	case !held && (t.IsRunning() || t.LastCondition() == nil):
		reason, message := v1beta1.ReasonTrialLost, fmt.Sprintf("Trial is pending: its worker %q has not reported since %s", lease.Worker, lease.Expires.Add(-time.Duration(lease.Seconds)*time.Second).UTC().Format(time.RFC3339))
		if lease.Released {
			reason, message = v1beta1.ReasonTrialReleased, fmt.Sprintf("Trial is pending: its worker %q has handed it back", lease.Worker)
		}
		t.MarkPending(reason, message, at)
		return decision{status: &t.Status}
	case !held:
		return decision{}
	}
	left := max(lease.Expires.Sub(now), soon)
	if young := settle - now.Sub(lease.Started); !t.IsRunning() && young > 0 {
		return decision{after: min(young, left)}
	}
	if !t.IsRunning() {
		d := started(t, now)
		d.after = left
		return d
	}
	if s.wait > 0 {
		return decision{after: min(max(s.wait, soon), left)}
	}
	if o := observation(t.Spec.Objective, s.data.stored); len(s.data.stored) > 0 && !sameObservation(o, t.Status.Observation) {
		t.Status.Observation = o
		return decision{status: &t.Status, after: left}
	}
	return decision{after: min(lookAgain, left)}
}

// Condense is what a trial has reported so far, as its status shows it; nil when that
// is nothing.
func Condense(ctx context.Context, points collector.Scanner, t *v1beta1.Trial) (*v1beta1.Observation, error) {
	observed, err := collector.Reduce(ctx, points, string(t.UID), asksOf(t.Spec.Objective)...)
	if err != nil {
		return nil, fmt.Errorf("read the points of trial %s/%s: %w", t.Namespace, t.Name, err)
	}
	for _, o := range observed {
		if o.Points > 0 {
			return observation(t.Spec.Objective, observed), nil
		}
	}
	return nil, nil
}
