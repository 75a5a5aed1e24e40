// Package katib keeps Vernier and an installed Katib from working on the same objects,
// and lets objects go that an uninstalled Katib has left behind.
package katib

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// Warning tells who applies an experiment that Katib is installed too.
const Warning = "Katib is installed in this cluster too and acts on the same Experiments: those that it has seen are left to it. Uninstall one of the two"

const (
	// webhooks is the name of Katib's webhook configurations, which exist for as long
	// as Katib is installed.
	webhooks  = "katib.kubeflow.org"
	lookEvery = time.Minute
)

// finalizers are put by Katib's controllers on each experiment and trial that they have
// seen, and removed by them alone: Vernier uses none.
var finalizers = []string{"update-prometheus-metrics", "clean-metrics-in-db"}

// Presence knows whether Katib is installed. A nil Presence says that it is not.
type Presence struct {
	client    client.Reader
	installed atomic.Bool
}

// Look finds out whether Katib is installed. c reads from the API server.
func Look(ctx context.Context, c client.Reader) (*Presence, error) {
	p := &Presence{client: c}
	return p, p.look(ctx)
}

func (p *Presence) look(ctx context.Context) error {
	configuration := &metav1.PartialObjectMetadata{}
	configuration.SetGroupVersionKind(schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingWebhookConfiguration"})
	err := p.client.Get(ctx, client.ObjectKey{Name: webhooks}, configuration)
	switch {
	case apierrors.IsForbidden(err): // the role of an earlier version
		log.FromContext(ctx).Error(err, "whether Katib is installed cannot be seen, so it counts as not installed; apply config/rbac again")
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("look for Katib's webhook configuration %s: %w", webhooks, err)
	}
	p.installed.Store(err == nil)
	return nil
}

// Start looks again every minute; it implements manager.Runnable.
func (p *Presence) Start(ctx context.Context) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		if p.Installed() {
			log.FromContext(ctx).Info(Warning)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := p.look(ctx); err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "it is not known whether Katib is still installed")
		}
	}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: every replica admits
// experiments.
func (*Presence) NeedLeaderElection() bool { return false }

// Installed says whether Katib is installed.
func (p *Presence) Installed() bool { return p != nil && p.installed.Load() }

// Owns says whether an object is left to Katib: it is installed and has seen the object.
func (p *Presence) Owns(o client.Object) bool {
	return p.Installed() && slices.ContainsFunc(o.GetFinalizers(), isKatibs)
}

// Leave says for how long an object is left to Katib. Once Katib is
// uninstalled, Leave removes its finalizers from an object that is being deleted.
func (p *Presence) Leave(ctx context.Context, c client.Client, o client.Object) (time.Duration, error) {
	if p.Owns(o) {
		return lookEvery, nil
	}
	if o.GetDeletionTimestamp() == nil || !slices.ContainsFunc(o.GetFinalizers(), isKatibs) {
		return 0, nil
	}
	before := o.DeepCopyObject().(client.Object)
	o.SetFinalizers(slices.DeleteFunc(slices.Clone(o.GetFinalizers()), isKatibs))
	err := c.Patch(ctx, o, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		return 0, fmt.Errorf("remove the finalizer of Katib, which is not installed, from %s: %w", client.ObjectKeyFromObject(o), err)
	}
	return 0, nil
}

func isKatibs(finalizer string) bool { return slices.Contains(finalizers, finalizer) }
