package trial

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/store"
)

// sweepEvery is how often points of trials that no longer exist are looked for.
const sweepEvery = 10 * time.Minute

// trialDeleted notes a deleted trial; its points go with the next reconcile.
// There is no finalizer, so that a deletion never waits for the store.
func (c *Controller) trialDeleted(_ context.Context, e event.DeleteEvent, q queue) {
	key := client.ObjectKeyFromObject(e.Object)
	c.memory.trialDeleted(key, e.Object.GetUID())
	c.Metrics.katib.Inc("deleted", key.Namespace)
	q.Add(reconcile.Request{NamespacedName: key})
}

func (c *Controller) forgetDeleted(ctx context.Context, key types.NamespacedName) error {
	for _, uid := range c.memory.takeDeleted(key) {
		c.memory.forgetJob(uid)
		c.expected.Forget(uid)
		if err := c.Store.Delete(ctx, string(uid)); err != nil {
			c.memory.trialDeleted(key, uid)
			return fmt.Errorf("delete the points of trial %s: %w", key, err)
		}
	}
	return nil
}

// sweep deletes the points of trials that were deleted while no manager ran, and
// those that came after their trial was deleted.
func (c *Controller) sweep(ctx context.Context) error {
	if !c.Cache.WaitForCacheSync(ctx) {
		return nil
	}
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		if err := errors.Join(c.sweepOnce(ctx), c.prune(ctx)); err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "sweep of the store failed, will try again", "after", sweepEvery)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (c *Controller) sweepOnce(ctx context.Context) error {
	// The store first: a trial that is made after this is not in stored.
	stored, err := c.Store.Inventory(ctx)
	if err != nil {
		return fmt.Errorf("list the trials of the store: %w", err)
	}
	var list v1beta1.TrialList
	if err := c.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list the trials: %w", err)
	}
	exist := make(map[string]bool, len(list.Items))
	for i := range list.Items {
		exist[string(list.Items[i].UID)] = true
	}
	for _, id := range stored {
		if exist[id.UID] {
			continue
		}
		there, err := c.trialExists(ctx, id)
		if err != nil {
			return err
		}
		if there {
			continue
		}
		if err := c.Store.Delete(ctx, id.UID); err != nil {
			return fmt.Errorf("delete the points of trial %s/%s: %w", id.Namespace, id.Name, err)
		}
	}
	return nil
}

// trialExists asks the API server for a trial that the cache does not show: another manager
// may have handed it out a moment ago.
func (c *Controller) trialExists(ctx context.Context, id collector.TrialInfo) (bool, error) {
	t := &metav1.PartialObjectMetadata{}
	t.SetGroupVersionKind(v1beta1.GroupVersion.WithKind("Trial"))
	err := c.Reader.Get(ctx, types.NamespacedName{Namespace: id.Namespace, Name: id.Name}, t)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("look for trial %s/%s: %w", id.Namespace, id.Name, err)
	}
	return err == nil && string(t.UID) == id.UID, nil
}

// prune deletes the curves that the retention does not keep.
func (c *Controller) prune(ctx context.Context) error {
	r := c.Retention
	if r.Zero() {
		return nil
	}
	for more := true; more; {
		var trials v1beta1.TrialList
		if err := c.Client.List(ctx, &trials, client.UnsafeDisableDeepCopy); err != nil {
			return fmt.Errorf("list the trials: %w", err)
		}
		var experiments v1beta1.ExperimentList
		if err := c.Client.List(ctx, &experiments, client.UnsafeDisableDeepCopy); err != nil {
			return fmt.Errorf("list the experiments: %w", err)
		}
		r.Keep = kept(trials.Items, experiments.Items)
		done, err := store.Prune(ctx, c.Store, r, c.Now())
		if n := len(done.Trials); n > 0 {
			log.FromContext(ctx).Info("Curves were deleted, as the retention says", "trials", n)
		}
		if err != nil {
			return err
		}
		more = done.More
	}
	return nil
}

// kept are the trials whose curves stay whatever the retention says: those that
// have not ended, and the best of each experiment.
func kept(trials []v1beta1.Trial, experiments []v1beta1.Experiment) func(collector.TrialID) bool {
	type name struct{ namespace, trial string }
	best := map[name]bool{}
	for i := range experiments {
		e := &experiments[i]
		for _, t := range append([]string{e.Status.CurrentOptimalTrial.BestTrialName}, e.Status.ParetoTrialList...) {
			best[name{e.Namespace, t}] = true
		}
	}
	stay := map[string]bool{}
	for i := range trials {
		t := &trials[i]
		if !t.IsCompleted() || best[name{t.Namespace, t.Name}] {
			stay[string(t.UID)] = true
		}
	}
	return func(id collector.TrialID) bool { return stay[id.UID] }
}

// needsWholeCurve says whether the result is computed from more than the least,
// greatest and last value.
func needsWholeCurve(o *v1beta1.ObjectiveSpec) bool {
	return slices.ContainsFunc(asksOf(o), func(a collector.Ask) bool { return a.Strategy != "" })
}
