package trial

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

// sweepEvery is how often points of trials that no longer exist are looked for.
const sweepEvery = 10 * time.Minute

// trialDeleted notes a deleted trial; its points go with the next reconcile.
// There is no finalizer, so that a deletion never waits for the store.
func (c *Controller) trialDeleted(_ context.Context, e event.DeleteEvent, q queue) {
	key := client.ObjectKeyFromObject(e.Object)
	c.memory.trialDeleted(key, e.Object.GetUID())
	q.Add(reconcile.Request{NamespacedName: key})
}

// forgetDeleted deletes the points of deleted trials with the given name.
func (c *Controller) forgetDeleted(ctx context.Context, key types.NamespacedName) error {
	for _, uid := range c.memory.takeDeleted(key) {
		c.memory.forgetJob(uid)
		c.tracker.Forget(uid)
		if err := c.Store.Delete(ctx, string(uid)); err != nil {
			c.memory.trialDeleted(key, uid)
			return fmt.Errorf("delete the points of trial %s: %w", key, err)
		}
	}
	return nil
}

// sweep deletes the points of trials that were deleted while nobody looked, and
// those that came after their trial was deleted.
func (c *Controller) sweep(ctx context.Context) error {
	if !c.Cache.WaitForCacheSync(ctx) {
		return nil
	}
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		if err := c.sweepOnce(ctx); err != nil && ctx.Err() == nil {
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
	stored, err := c.Store.Trials(ctx)
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
		if err := c.Store.Delete(ctx, id.UID); err != nil {
			return fmt.Errorf("delete the points of trial %s/%s: %w", id.Namespace, id.Name, err)
		}
	}
	return nil
}
