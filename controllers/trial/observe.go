package trial

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/contract"
	"github.com/vernier-ml/vernier/trainer"
)

// cacheTimeout bounds the wait for the cache of a kind that was not watched yet.
const cacheTimeout = 20 * time.Second

// observe gathers what plan needs, and reads the store only when plan will look
// at it.
func (c *Controller) observe(ctx context.Context, t *v1beta1.Trial) (s seen, err error) {
	s.trial, s.limits = t, c.Limits
	if s.job, err = c.observeJob(ctx, t); err != nil {
		return s, err
	}
	began, at := c.Now(), stageOf(t, s.job)
	switch at {
	case completed:
		c.memory.forgetJob(t.UID)
		return s, nil
	case jobless, unreadable, jobDeleting, unannounced:
		return s, nil
	case running:
		if s.wait = max(liveDue(t, began), c.memory.rest(t.UID, began)); s.wait > 0 {
			return s, nil
		}
	}
	// Pods before points: a sidecar that is seen to have ended has sent what it
	// could before that.
	if s.pods, err = c.pods(ctx, t); err != nil {
		return s, err
	}
	if at == jobRetried {
		return s, nil
	}
	if at == running && len(s.pods) == 0 && s.job.state.Phase == trainer.Running {
		if s.podless = c.podless(ctx, t, began); s.podless == nothingMade && s.job.atPod {
			s.podless = "none that was created has come with the trial's labels, as admission gives them: does the controller of its kind run, and the webhook vernier-webhook?"
		}
	}
	r := reading{over: at == jobFailed || at == jobSucceeded || at == stoppedEarly}
	switch at {
	case jobSucceeded:
		s.wait = c.memory.since(t.UID, at, began).Add(patience).Sub(began)
		r.awaited = s.wait > 0
	case stoppedEarly:
		s.wait = stopWait(s.pods, c.memory.since(t.UID, at, began), began)
		if s.wait > 0 && runsOn(s) {
			return s, nil
		}
		r.awaited = s.wait > 0 && s.job.presence != absent
	}
	if s.data, err = c.measure(ctx, t, s.pods, r); err != nil {
		return s, err
	}
	if at == running {
		now := c.Now()
		c.memory.wasRead(t.UID, now.Sub(began), now)
	}
	if at == running || at == jobSucceeded {
		s.uncollected = uncollected(t, s, at == jobSucceeded && s.wait <= 0)
	}
	return s, nil
}

// uncollected is why nothing measures a job whose pods were to get the collector when
// they were created, or "". Pods without any label of the trial are not seen: that there
// was no collector shows at the end only, when nothing has come.
func uncollected(t *v1beta1.Trial, s seen, over bool) string {
	if !s.job.atPod {
		return ""
	}
	collects := false
	for i := range s.pods {
		p := &s.pods[i]
		if p.CreationTimestamp.Before(&s.job.made) {
			continue // of the job before this one
		}
		if trainer.LacksCollector(p, t.Spec.PrimaryContainerName, t.Spec.PrimaryPodLabels) {
			if why := p.Annotations[trainer.AnnotationNotInjected]; why != "" {
				return fmt.Sprintf("its pod %s came without the metrics collector: %s", p.Name, why)
			}
			return fmt.Sprintf("its pod %s came without the metrics collector: %s", p.Name, admissionAbsent)
		}
		collects = collects || p.Labels[trainer.LabelInject] != "" && trainer.Reports(t.Spec.PrimaryPodLabels, p.Labels)
	}
	if !over || collects || s.data.attempted || s.data.condensed {
		return ""
	}
	return fmt.Sprintf("no pod of it with the labels %v and a container %q got the metrics collector: %s, or primaryPodLabels or primaryContainerName are wrong",
		t.Spec.PrimaryPodLabels, t.Spec.PrimaryContainerName, admissionAbsent)
}

// admissionAbsent is why a pod has no collector where nothing says more.
const admissionAbsent = "the admission webhook vernier-webhook did not answer when it was created"

func (c *Controller) observeJob(ctx context.Context, t *v1beta1.Trial) (job, error) {
	gvk, err := kindOf(t)
	if err != nil {
		return job{}, nil //nolint:nilerr // launch says so
	}
	if err := c.watch(ctx, gvk); err != nil {
		if meta.IsNoMatchError(err) || apierrors.IsForbidden(err) {
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
		return job{presence: removed}, nil
	case err != nil:
		return job{}, fmt.Errorf("read the job of trial %s/%s: %w", t.Namespace, t.Name, err)
	}
	return read(t, u, true), nil
}

// read condenses a job. One that belongs to another owner is no job of the
// trial's: to create its own then fails, and says so.
func read(t *v1beta1.Trial, u *unstructured.Unstructured, exists bool) job {
	if !ownedBy(u, t) {
		return job{}
	}
	j := job{
		presence: present, uid: u.GetUID(), exists: exists, deleting: exists && u.GetDeletionTimestamp() != nil,
		atPod: u.GetLabels()[trainer.LabelInject] == trainer.InjectAtPod, made: u.GetCreationTimestamp(),
	}
	raw, err := u.MarshalJSON()
	if err != nil {
		j.err = err
		return j
	}
	j.state, j.err = trainer.Evaluate(string(raw), t.Spec.SuccessCondition, t.Spec.FailureCondition)
	own, known := v1beta1.DefaultsForKind(u.GroupVersionKind().GroupKind())
	written := t.Spec.SuccessCondition != own.SuccessCondition || t.Spec.FailureCondition != own.FailureCondition
	if j.err == nil && j.state.Phase == trainer.Running && known && written {
		state, err := trainer.Evaluate(string(raw), own.SuccessCondition, own.FailureCondition)
		if err == nil && (state.Phase == trainer.Succeeded || state.Phase == trainer.Failed) {
			j.ended = state.Phase
		}
	}
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
	return ofTrial(t, list.Items), nil
}

// ofTrial leaves out the pods of a deleted trial with the same name, which may
// still be ending. Those that stay have an order, which a cache's index has not: what is
// said of a trial must not change with each look.
func ofTrial(t *v1beta1.Trial, pods []corev1.Pod) []corev1.Pod {
	pods = slices.DeleteFunc(pods, func(p corev1.Pod) bool { return p.CreationTimestamp.Before(&t.CreationTimestamp) })
	slices.SortFunc(pods, func(a, b corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	return pods
}

type reading struct {
	// over: the job has ended.
	over bool
	// awaited: what was measured is not looked at before everything is reported.
	awaited bool
}

func (c *Controller) measure(ctx context.Context, t *v1beta1.Trial, pods []corev1.Pod, r reading) (data, error) {
	var d data
	attempts, err := c.Store.Attempts(ctx, string(t.UID))
	if err != nil {
		return d, fmt.Errorf("read the attempts of trial %s/%s: %w", t.Namespace, t.Name, err)
	}
	used := len(attempts)
	attempts = slices.DeleteFunc(attempts, func(a collector.AttemptState) bool { return a.Attempt.System() })
	if used -= len(attempts); r.over && used > 0 {
		if d.usage, err = usageOf(ctx, c.Store, string(t.UID)); err != nil {
			return d, fmt.Errorf("read what trial %s/%s used: %w", t.Namespace, t.Name, err)
		}
	}
	pods = slices.DeleteFunc(slices.Clone(pods), func(p corev1.Pod) bool { return !trainer.Reports(t.Spec.PrimaryPodLabels, p.Labels) })
	attempts, pods, without := withoutSuperfluous(attempts, pods)
	d.attempted = len(attempts) > 0
	d.read(attempts, pods, r.over)
	if r.awaited && !allReported(t, d) {
		return d, nil
	}
	if asks := asksOf(t.Spec.Objective); len(attempts) > 0 && len(asks) > 0 {
		observed, err := collector.Reduce(ctx, without.leftOutOf(c.Store), string(t.UID), asks...)
		if err != nil {
			return d, fmt.Errorf("read the points of trial %s/%s: %w", t.Namespace, t.Name, err)
		}
		if slices.ContainsFunc(observed, func(m collector.Observation) bool { return m.Points > 0 }) {
			d.stored = observed
		}
	}
	if r.over && !hasObjectives(t, best(t.Spec.Objective, d)) {
		names, err := c.Store.Metrics(ctx, string(t.UID))
		if err != nil {
			return d, fmt.Errorf("read the metrics of trial %s/%s: %w", t.Namespace, t.Name, err)
		}
		d.names = reported(slices.DeleteFunc(names, collector.IsSystemMetric), d.summary)
	}
	return d, nil
}

// read takes in how far the attempts (oldest first) have come, and once the job
// is over, what the collectors left in their termination messages, if the store
// does not have everything: an attempt that never reached it is not among its
// attempts at all.
func (d *data) read(attempts []collector.AttemptState, pods []corev1.Pod, over bool) {
	var newest collector.AttemptState
	if n := len(attempts); n > 0 {
		newest = attempts[n-1]
	}
	d.final = newest.Final
	var left []contract.Summary
	if over {
		left = summaries(pods)
	}
	// What was not found so far may have come since, which the summary knows.
	if newest.Final || !slices.ContainsFunc(left, func(s contract.Summary) bool { return s.Attempt.ID == newest.Attempt.ID }) {
		d.note(newest.Note)
	}
	if !over {
		return
	}
	for _, s := range left {
		stored := slices.ContainsFunc(attempts, func(a collector.AttemptState) bool { return a.Attempt.ID == s.Attempt.ID })
		d.final = d.final && (s.Final || stored || s.Attempt.Started.Before(newest.Attempt.Started))
	}
	if d.final {
		for _, s := range left {
			// Earlier attempts of its pod lack points. The store still has the curve
			// of the rest, and every strategy can be answered from it.
			if s.Attempt.ID == newest.Attempt.ID && !s.Final && s.Note != "" {
				d.notes = []string{s.Note} // the attempt's own is part of it
			}
		}
		return
	}
	for _, s := range left {
		d.condensed = true
		d.summary = append(d.summary, s.Series()...)
		d.note(s.Note)
	}
}

// note takes in what a collector complained of. The store and the termination
// message may both have it, one of them cut.
func (d *data) note(text string) {
	if text == "" {
		return
	}
	for i, known := range d.notes {
		if strings.HasPrefix(known, strings.TrimSuffix(text, "…")) {
			return
		}
		if strings.HasPrefix(text, strings.TrimSuffix(known, "…")) {
			d.notes[i] = text
			return
		}
	}
	d.notes = append(d.notes, text)
}

func summaries(pods []corev1.Pod) []contract.Summary {
	var all []contract.Summary
	for i := range pods {
		// That of the program has it where there is no sidecar.
		for _, cs := range slices.Concat(pods[i].Status.InitContainerStatuses, pods[i].Status.ContainerStatuses) {
			if cs.State.Terminated == nil {
				continue
			}
			if s, err := contract.ParseSummary(cs.State.Terminated.Message); err == nil {
				all = append(all, s)
			}
		}
	}
	return all
}
