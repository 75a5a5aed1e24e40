// Package katib keeps Vernier and an installed Katib from working on the same objects,
// takes a cluster from Katib to Vernier (migrate.go), and lets objects go that an
// uninstalled Katib has left behind.
package katib

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// Warning tells who applies an experiment that Katib is installed too.
const Warning = "Katib is installed in this cluster and acts on every Experiment, so Vernier leaves all of them to it. " +
	"kubectl vernier migrate katib shows how Vernier takes them over"

const (
	// webhooks is the name of Katib's webhook configurations.
	webhooks = "katib.kubeflow.org"
	// component labels the Deployments and pods of Katib.
	component  = "katib.kubeflow.org/component"
	controller = "controller"
	// home is the namespace of Katib's own manifests. Pods of others do not count:
	// everyone could bring Vernier to a halt.
	home      = "kubeflow"
	lookEvery = 10 * time.Second
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

// look finds Katib by its webhook configuration, or by a pod of its controller in its
// usual namespace: someone may have deleted the configuration first.
func (p *Presence) look(ctx context.Context) error {
	there, err := exists(ctx, p.client, validating, webhooks)
	switch {
	case apierrors.IsForbidden(err): // the role of an earlier version
		log.FromContext(ctx).Error(err, "whether Katib is installed cannot be seen, so it counts as not installed; apply config/rbac again")
	case err != nil:
		return err
	}
	if !there {
		// The API server answers this from its memory, however many pods there are.
		recent := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: "0"}}
		pods, err := runningPods(ctx, p.client, recent, client.InNamespace(home), client.MatchingLabels{component: controller})
		if err != nil && !apierrors.IsForbidden(err) { // admission may not list pods, and only warns
			return err
		}
		there = len(pods) > 0
	}
	p.installed.Store(there)
	return nil
}

const (
	mutating   = "MutatingWebhookConfiguration"
	validating = "ValidatingWebhookConfiguration"
)

func webhookConfiguration(kind, name string) *metav1.PartialObjectMetadata {
	o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name}}
	o.SetGroupVersionKind(schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: kind})
	return o
}

func exists(ctx context.Context, c client.Reader, kind, name string) (bool, error) {
	o := webhookConfiguration(kind, name)
	err := c.Get(ctx, client.ObjectKeyFromObject(o), o)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("look for the %s %s: %w", kind, name, err)
	}
	return err == nil, nil
}

// runningPods names the selected pods that have not ended.
func runningPods(ctx context.Context, c client.Reader, selected ...client.ListOption) (names []string, err error) {
	var pods corev1.PodList
	if err := c.List(ctx, &pods, selected...); err != nil {
		return nil, fmt.Errorf("list the pods of Katib's controller: %w", err)
	}
	for _, p := range pods.Items {
		if p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
			names = append(names, p.Namespace+"/"+p.Name)
		}
	}
	return names, nil
}

// Start keeps looking; it implements manager.Runnable.
func (p *Presence) Start(ctx context.Context) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	said := false
	for {
		now := p.Installed()
		switch {
		case now && !said:
			log.FromContext(ctx).Info(Warning)
		case said && !now:
			log.FromContext(ctx).Info("Katib is no longer installed: Vernier acts on all Experiments")
		}
		said = now
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

// Leave says for how long an object is left to Katib, which acts on every Experiment
// and Trial while it is installed. Once it is uninstalled, Leave removes its
// finalizers from an object that is being deleted.
func (p *Presence) Leave(ctx context.Context, c client.Client, o client.Object) (time.Duration, error) {
	if p.Installed() {
		return lookEvery, nil
	}
	if o.GetDeletionTimestamp() == nil || !isSeen(o) {
		return 0, nil
	}
	return 0, release(ctx, c, o, nil)
}

// release removes Katib's finalizers from an object, with another change or nil.
func release(ctx context.Context, c client.Client, o client.Object, change func()) error {
	before := o.DeepCopyObject().(client.Object)
	o.SetFinalizers(slices.DeleteFunc(slices.Clone(o.GetFinalizers()), isKatibs))
	if change != nil {
		change()
	}
	err := c.Patch(ctx, o, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("take %T %s from Katib: %w", o, client.ObjectKeyFromObject(o), err)
	}
	return nil
}

// isSeen says whether Katib has seen an object.
func isSeen(o client.Object) bool { return slices.ContainsFunc(o.GetFinalizers(), isKatibs) }

func isKatibs(finalizer string) bool { return slices.Contains(finalizers, finalizer) }
