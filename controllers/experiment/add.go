package experiment

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/controllers/study"
)

const (
	// importer is the worker of trials that ran elsewhere.
	importer = "import"
	// importLease is how long, in seconds, such a trial waits for its result before it
	// is handed out like others.
	importLease = 3600
)

// ranElsewhere says whether a trial was imported, and not handed out since.
func ranElsewhere(t *v1beta1.Trial) bool {
	l, ok := t.Lease()
	return ok && l.Worker == importer
}

// Elsewhere is a trial that ran outside of Vernier.
type Elsewhere struct {
	// ID that no other one of the experiment has.
	ID          string
	Assignments []v1beta1.ParameterAssignment
}

// ErrNoRoom says that an experiment has ended, or may not have so many trials.
var ErrNoRoom = errors.New("no trials can be added")

// Add makes trials of an experiment without a template that ran elsewhere, once for each
// ID, and returns them in order. Their first attempt is the caller's, who completes it.
// The cache shows the trials when it returns.
func (c *Controller) Add(ctx context.Context, key types.NamespacedName, all []Elsewhere) (exp *v1beta1.Experiment, added []*v1beta1.Trial, err error) {
	for range handTries {
		behind := false
		if exp, added, behind, err = c.add(ctx, key, all); !behind || err != nil {
			return exp, added, err
		}
	}
	return exp, nil, fmt.Errorf("add trials to experiment %s: another manager was faster %d times", key, handTries)
}

// add is one attempt; behind says that the cache did not show a trial that exists.
func (c *Controller) add(ctx context.Context, key types.NamespacedName, all []Elsewhere) (exp *v1beta1.Experiment, added []*v1beta1.Trial, behind bool, err error) {
	if exp, err = c.outside(ctx, key); err != nil {
		return exp, nil, false, err
	}
	leave, err := c.studies.queue(ctx, exp)
	if err != nil {
		return exp, nil, false, err
	}
	defer leave()
	trials, err := c.Trials.Of(ctx, exp)
	if err != nil {
		return exp, nil, false, err
	}
	known, next := imported(trials)
	missing := 0
	for _, e := range all {
		if known[e.ID] == nil {
			missing++
		}
	}
	switch limit := exp.Spec.MaxTrialCount; {
	case missing > 0 && exp.IsCompleted():
		return exp, nil, false, fmt.Errorf("%w: it has ended", ErrNoRoom)
	case missing > 0 && limit != nil && len(trials)+missing > int(*limit):
		return exp, nil, false, fmt.Errorf("%w: it has %d, and %d more would pass its maxTrialCount of %d", ErrNoRoom, len(trials), missing, *limit)
	}
	for _, e := range all {
		t := known[e.ID]
		if t == nil {
			if t, err = c.addOne(ctx, exp, next, e); err != nil {
				return exp, nil, false, err
			}
			if t.UID == "" { // it exists: the cache is behind
				return exp, nil, true, c.AwaitTrial(ctx, t)
			}
			known[e.ID] = t
			next++
		}
		added = append(added, t)
	}
	return exp, added, false, c.awaitCache(ctx, added)
}

// imported are the trials that were added before, by ID, and the number of the next one.
func imported(trials []*v1beta1.Trial) (known map[string]*v1beta1.Trial, next int) {
	known = map[string]*v1beta1.Trial{}
	for _, t := range trials {
		if n, ok := t.Number(); ok {
			next = max(next, n+1)
		}
		if l, ok := t.Lease(); ok && l.Worker == importer {
			known[l.Request] = t
		}
	}
	return known, next
}

func (c *Controller) addOne(ctx context.Context, exp *v1beta1.Experiment, number int, e Elsewhere) (*v1beta1.Trial, error) {
	t, err := withoutJob(exp, number, study.Proposal{Assignments: e.Assignments, Why: "it ran elsewhere and was imported as " + e.ID})
	if err != nil {
		return nil, err
	}
	now := c.Now().UTC()
	lease := v1beta1.Lease{Worker: importer, Request: e.ID, Attempt: 1, Seconds: importLease, Started: now, Expires: now.Add(importLease * time.Second)}
	if err := t.SetLease(lease); err != nil {
		return nil, err
	}
	return t, c.create(ctx, exp, t)
}
