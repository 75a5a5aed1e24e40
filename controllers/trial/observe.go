package trial

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector/report"
	"github.com/vernier-ml/vernier/trainer"
)

// cacheTimeout bounds the wait for the cache of a kind that was not watched yet.
const cacheTimeout = 20 * time.Second

// observe gathers what plan needs, and reads the store only when plan will look
// at it.
func (c *Controller) observe(ctx context.Context, t *v1beta1.Trial) (seen, error) {
	s := seen{trial: t}
	var err error
	if s.job, err = c.observeJob(ctx, t); err != nil {
		return s, err
	}
	if t.IsCompleted() {
		c.memory.forgetJob(t.UID)
		return s, nil
	}
	_, asked := t.Annotations[v1beta1.AnnotationStop]
	over := s.job.presence == present && s.job.err == nil &&
		(s.job.state.Phase == trainer.Succeeded || s.job.state.Phase == trainer.Failed)
	s.live = s.job.presence == present && !over && t.IsRunning() && liveDue(t, c.Now()) <= 0
	if !over && !asked && !s.live && s.job.presence != vanished {
		return s, nil
	}
	// Pods before points: a sidecar that is seen to have ended has sent what it
	// could before that.
	if s.pods, err = c.pods(ctx, t); err != nil {
		return s, err
	}
	if s.data, err = c.measure(ctx, t, s.pods, over); err != nil {
		return s, err
	}
	if over && s.job.state.Phase == trainer.Succeeded {
		s.succeededFor = c.memory.succeededFor(t.UID, c.Now())
	}
	return s, nil
}

// observeJob finds the trial's job.
func (c *Controller) observeJob(ctx context.Context, t *v1beta1.Trial) (job, error) {
	gvk, err := kindOf(t)
	if err != nil {
		return job{}, nil //nolint:nilerr // launch says so
	}
	if err := c.watch(gvk); err != nil {
		if meta.IsNoMatchError(err) {
			return job{}, nil // launch says so
		}
		return job{}, err
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	err = c.cached(ctx, t, u)
	if apierrors.IsNotFound(err) {
		return c.missing(ctx, t, u)
	}
	if err != nil {
		return job{}, fmt.Errorf("read %s %s/%s: %w", gvk.Kind, t.Namespace, t.Name, err)
	}
	return read(t, u, true), nil
}

func (c *Controller) cached(ctx context.Context, t *v1beta1.Trial, into *unstructured.Unstructured) error {
	ctx, cancel := context.WithTimeout(ctx, cacheTimeout)
	defer cancel()
	return c.Client.Get(ctx, client.ObjectKeyFromObject(t), into)
}

// missing decides what it means that the cache has no job for a trial.
func (c *Controller) missing(ctx context.Context, t *v1beta1.Trial, u *unstructured.Unstructured) (job, error) {
	if !t.IsRunning() || t.IsCompleted() {
		return job{}, nil
	}
	if gone := c.memory.lastJob(t.UID); gone != nil {
		j := read(t, gone, false)
		if j.err != nil || j.state.Phase != trainer.Succeeded && j.state.Phase != trainer.Failed {
			j.presence = removed
		}
		return j, nil
	}
	// The cache may be behind: the job was made a moment ago.
	err := c.Reader.Get(ctx, client.ObjectKeyFromObject(t), u)
	switch {
	case apierrors.IsNotFound(err):
		return job{presence: vanished}, nil
	case err != nil:
		return job{}, fmt.Errorf("read the job of trial %s/%s: %w", t.Namespace, t.Name, err)
	}
	return read(t, u, true), nil
}

// read condenses a job. One that belongs to somebody else is no job of the
// trial's: to create its own then fails, and says so.
func read(t *v1beta1.Trial, u *unstructured.Unstructured, exists bool) job {
	if !ownedBy(u, t) {
		return job{}
	}
	j := job{presence: present, exists: exists, deleting: exists && u.GetDeletionTimestamp() != nil}
	raw, err := u.MarshalJSON()
	if err != nil {
		j.err = err
		return j
	}
	j.state, j.err = trainer.Evaluate(string(raw), t.Spec.SuccessCondition, t.Spec.FailureCondition)
	return j
}

func ownedBy(u *unstructured.Unstructured, t *v1beta1.Trial) bool {
	for _, o := range u.GetOwnerReferences() {
		if o.UID == t.UID {
			return true
		}
	}
	return false
}

func (c *Controller) pods(ctx context.Context, t *v1beta1.Trial) ([]corev1.Pod, error) {
	var list corev1.PodList
	err := c.Client.List(ctx, &list, client.InNamespace(t.Namespace), client.MatchingFields{podIndex: t.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("list the pods of trial %s/%s: %w", t.Namespace, t.Name, err)
	}
	return list.Items, nil
}

// measure reads what was reported.
func (c *Controller) measure(ctx context.Context, t *v1beta1.Trial, pods []corev1.Pod, over bool) (data, error) {
	var d data
	attempts, err := c.Store.Attempts(ctx, string(t.UID))
	if err != nil {
		return d, fmt.Errorf("read the attempts of trial %s/%s: %w", t.Namespace, t.Name, err)
	}
	if n := len(attempts); n > 0 {
		d.final = attempts[n-1].Final
		if note := attempts[n-1].Note; note != "" {
			d.notes = append(d.notes, note)
		}
	}
	if over && !d.final {
		d.addSummaries(pods)
	}
	if len(attempts) == 0 {
		d.names = reported(d.summary)
		return d, nil
	}
	if d.series, err = c.Store.Points(ctx, string(t.UID), metricNames(t.Spec.Objective)...); err != nil {
		return d, fmt.Errorf("read the points of trial %s/%s: %w", t.Namespace, t.Name, err)
	}
	if over && !hasObjective(t, best(d)) {
		all, err := c.Store.Points(ctx, string(t.UID))
		if err != nil {
			return d, fmt.Errorf("read the points of trial %s/%s: %w", t.Namespace, t.Name, err)
		}
		d.names = reported(append(all, d.summary...))
	}
	return d, nil
}

// addSummaries takes in what the collectors left in their termination messages.
func (d *data) addSummaries(pods []corev1.Pod) {
	for i := range pods {
		for _, cs := range pods[i].Status.InitContainerStatuses {
			if cs.Name != trainer.Sidecar && cs.Name != trainer.SidecarLogger || cs.State.Terminated == nil {
				continue
			}
			s, err := report.ParseSummary(cs.State.Terminated.Message)
			if err != nil {
				continue
			}
			d.condensed = true
			d.summary = append(d.summary, s.Series()...)
			if s.Note != "" {
				d.notes = append(d.notes, s.Note)
			}
		}
	}
}
