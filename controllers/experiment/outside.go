package experiment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/controllers/katib"
	"github.com/vernier-ml/vernier/controllers/study"
)

const (
	// cachePatience is how long what was just written is waited for in the cache.
	cachePatience = 10 * time.Second
	// handTries is how often trials are proposed anew because another manager took
	// their numbers.
	handTries = 5
)

// ErrHasTemplate says that jobs run the trials of an experiment.
var ErrHasTemplate = errors.New("the experiment has a trialTemplate: its trials are run by jobs and not handed out")

// IsFatal says whether an error of HandOut cannot be helped by trying again.
func IsFatal(err error) bool {
	var fatal *fatalError
	return errors.As(err, &fatal)
}

// Handed are trials that were handed out.
type Handed struct {
	Experiment *v1beta1.Experiment
	Trials     []*v1beta1.Trial
	// Exhausted: nothing is left to try but what runs.
	Exhausted bool
	Shortage
}

// HandOut hands out at most n trials of an experiment that has no template: those that
// the same request got before, then trials whose workers were lost or handed them back,
// then new ones. Any manager may do this at any time, and no trial goes to two: a new
// one belongs to who creates its number, another one to who writes its next attempt.
// The lease begins now and lasts for its Seconds.
// The cache shows the trials when it returns.
func (c *Controller) HandOut(ctx context.Context, key types.NamespacedName, n int, lease v1beta1.Lease) (Handed, error) {
	for range handTries {
		h, behind, err := c.handOut(ctx, key, n, lease)
		if !behind || err != nil {
			return h, err
		}
	}
	return Handed{}, fmt.Errorf("hand out trials of experiment %s: another manager was faster %d times", key, handTries)
}

// outside reads an experiment whose trials the API may hand out.
func (c *Controller) outside(ctx context.Context, key types.NamespacedName) (*v1beta1.Experiment, error) {
	exp := &v1beta1.Experiment{}
	err := c.Client.Get(ctx, key, exp)
	if apierrors.IsNotFound(err) { // it may have been created a moment ago
		err = c.Reader.Get(ctx, key, exp)
	}
	if err != nil {
		return nil, err
	}
	v1beta1.SetDefaults(exp)
	switch {
	case !exp.RunsOutside():
		return exp, ErrHasTemplate
	case c.Katib.Installed():
		return exp, &fatalError{katib.Warning}
	}
	return exp, nil
}

// handOut is one attempt; behind says that the cache did not show a trial that exists.
func (c *Controller) handOut(ctx context.Context, key types.NamespacedName, n int, lease v1beta1.Lease) (h Handed, behind bool, err error) {
	exp, err := c.outside(ctx, key)
	h.Experiment = exp
	if err != nil {
		return h, false, err
	}
	leave, err := c.studies.queue(ctx, exp)
	if err != nil {
		return h, false, err
	}
	defer leave()
	s, found, err := c.inspect(ctx, exp)
	if err != nil {
		return h, false, err
	}
	defer c.studies.done(s)
	trials, err := c.Trials.Of(ctx, exp)
	if err != nil {
		return h, false, err
	}
	s.Update(trials)
	now := c.Now()
	a := plan(exp, trials, s.Ranking(), found, now)
	exp.Status = a.status
	// Not from when the request came: it may have waited for others.
	lease.Started = now.UTC()
	lease.Expires = lease.Started.Add(time.Duration(lease.Seconds) * time.Second)
	mine, free := leased(trials, lease, now)
	h.Trials = mine
	if over(&a.status) || exp.DeletionTimestamp != nil {
		h.Shortage = shortage(exp, tallied(exp, trials, now), 0, found)
		return h, false, nil
	}
	for _, t := range free {
		if len(h.Trials) >= n || exp.Annotations[v1beta1.AnnotationEnd] != "" {
			break
		}
		again, err := c.handAgain(ctx, t, lease)
		if err != nil {
			return h, false, err
		}
		if again != nil {
			h.Trials = append(h.Trials, again)
		}
	}
	known := len(h.Trials)
	if a.add = min(a.add, n-known); a.add > 0 {
		behind, err = c.handNew(ctx, exp, s, trials, a, lease, &h)
	}
	if len(h.Trials) < n && h.Reason == "" {
		h.Shortage = shortage(exp, tallied(exp, trials, now), len(h.Trials)-known, found)
		h.After = a.after
	}
	return h, behind, errors.Join(err, c.awaitCache(ctx, h.Trials))
}

// leased are the trials that a request has got before, and those without a worker.
func leased(trials []*v1beta1.Trial, want v1beta1.Lease, now time.Time) (mine, free []*v1beta1.Trial) {
	request, _ := json.Marshal(want.Request) // a string can always be encoded
	for _, t := range trials {
		// Most trials are over, and decoding thousands of leases takes its time.
		if t.IsCompleted() && !strings.Contains(t.Annotations[v1beta1.AnnotationLease], string(request)) {
			continue
		}
		l, ok := t.Lease()
		switch {
		case !ok:
		case want.Request != "" && l.Request == want.Request && !l.Released && (l.Worker == importer) == (want.Worker == importer):
			mine = append(mine, t)
		case !t.IsCompleted() && !t.AskedToStop() && !l.Held(now):
			free = append(free, t)
		}
	}
	return mine, free
}

// handAgain hands out a trial that has no worker; nil when another request was faster.
func (c *Controller) handAgain(ctx context.Context, t *v1beta1.Trial, lease v1beta1.Lease) (*v1beta1.Trial, error) {
	before, _ := t.Lease()
	lease.Attempt = before.Attempt + 1
	return c.WriteLease(ctx, t, lease)
}

// WriteLease writes the lease of a trial; nil when the trial has changed since it was
// read.
func (c *Controller) WriteLease(ctx context.Context, t *v1beta1.Trial, lease v1beta1.Lease) (*v1beta1.Trial, error) {
	after := t.DeepCopy()
	if err := after.SetLease(lease); err != nil {
		return nil, err
	}
	err := c.Client.Patch(ctx, after, client.MergeFromWithOptions(t, client.MergeFromWithOptimisticLock{}))
	switch {
	case apierrors.IsConflict(err) || apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("write the lease of trial %s/%s: %w", t.Namespace, t.Name, err)
	}
	return after, nil
}

// handNew makes the trials that a asks for and adds them to h.
func (c *Controller) handNew(ctx context.Context, exp *v1beta1.Experiment, s *kept, trials []*v1beta1.Trial, a actions, lease v1beta1.Lease, h *Handed) (behind bool, err error) {
	err = c.inform(ctx, exp, s, len(trials) == 0)
	if err != nil {
		return false, err
	}
	var proposals []study.Proposal
	if s.Outside() {
		proposals, err = c.fromService(ctx, exp, a)
	} else {
		proposals, err = c.question(ctx, exp, s, a.add)
	}
	var waits *waitError
	switch {
	case errors.Is(err, errLearning):
		h.Shortage = Shortage{ReasonService, "the service of the algorithm is asked", servicePause}
		return false, nil
	case errors.As(err, &waits):
		h.Shortage = Shortage{ReasonService, waits.message, servicePause}
		return false, nil
	case errors.Is(err, study.ErrExhausted):
		h.Exhausted, h.Shortage = true, Shortage{Reason: ReasonExhausted, Why: "nothing is left to try"}
		return false, nil
	case err != nil:
		return false, err
	case len(proposals) == 0 && !slices.ContainsFunc(trials, func(t *v1beta1.Trial) bool { return !t.IsCompleted() }):
		h.Shortage = Shortage{ReasonMore, "the algorithm has no more yet: ask again", servicePause}
	case len(proposals) < a.add:
		h.Shortage = Shortage{Reason: ReasonResults, Why: "the algorithm waits for results of trials that run"}
	}
	lease.Attempt = 1
	for i, p := range proposals {
		t, err := withoutJob(exp, a.first+i, p)
		if err == nil {
			err = t.SetLease(lease)
		}
		if err != nil {
			return false, err
		}
		if err := c.create(ctx, exp, t); err != nil {
			return false, err
		}
		if t.UID == "" { // it exists: the cache is behind
			return true, c.AwaitTrial(ctx, t)
		}
		h.Trials = append(h.Trials, t)
	}
	return false, nil
}

// leftOutside finds out whether there is something left to try where there may be an end
// and nothing runs: that may be known only now.
func (c *Controller) leftOutside(ctx context.Context, s *kept, trials []*v1beta1.Trial, a actions) findings {
	if a.add == 0 || len(trials) == 0 || count(trials).active() > 0 || !s.Finite() {
		return findings{}
	}
	_, err := s.Propose(ctx, 1)
	return findings{exhausted: errors.Is(err, study.ErrExhausted)} // callers that ask for trials are told of other errors
}

// awaitCache waits until the cache shows trials as they were written.
func (c *Controller) awaitCache(ctx context.Context, written []*v1beta1.Trial) error {
	for _, t := range written {
		if err := c.AwaitTrial(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

// AwaitTrial waits until the cache shows a trial as it was written, or later.
func (c *Controller) AwaitTrial(ctx context.Context, written *v1beta1.Trial) error {
	ctx, cancel := context.WithTimeout(ctx, cachePatience)
	defer cancel()
	return c.Trials.Await(ctx, written, func(seen *v1beta1.Trial) bool {
		order, err := resourceversion.CompareResourceVersion(seen.ResourceVersion, written.ResourceVersion)
		return err != nil || order >= 0 || seen.UID != written.UID // one that exists already has none
	})
}
