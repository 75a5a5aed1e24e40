package operator

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/vernier-ml/vernier/trainer"
)

// request is for a job; without a name, for the kind itself.
type request struct {
	kind string
	types.NamespacedName
}

const ownerIndex = "owner"

// Register adds the operator to mgr, with a cache of its own: mgr's holds what belongs
// to trials, and the operator runs other jobs too. kubectl is the command by which the
// launchers of MPIJobs reach their workers.
func Register(ctx context.Context, mgr manager.Manager, kubectl string, now func() time.Time) error {
	marked := cache.ByObject{Label: labels.SelectorFromSet(labels.Set{trainer.LabelOperator: "true"})}
	own, err := cache.New(mgr.GetConfig(), cache.Options{
		Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{&corev1.Pod{}: marked, &corev1.Service{}: marked, definition(): marked},
	})
	if err != nil {
		return fmt.Errorf("make the operator's cache: %w", err)
	}
	if err := mgr.Add(own); err != nil {
		return fmt.Errorf("add the operator's cache: %w", err)
	}
	err = own.IndexField(ctx, &corev1.Pod{}, ownerIndex, func(o client.Object) []string {
		if owner := metav1.GetControllerOf(o); owner != nil {
			return []string{string(owner.UID)}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("index pods by owner: %w", err)
	}
	cached, err := client.New(mgr.GetConfig(), client.Options{
		Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), Cache: &client.CacheOptions{Reader: own, Unstructured: true},
	})
	if err != nil {
		return fmt.Errorf("make the operator's client: %w", err)
	}
	c := &Controller{
		client: cached, reader: mgr.GetAPIReader(), cache: own, recorder: mgr.GetEventRecorder("training-operator"), now: now,
		kinds: map[string]framework{}, watched: map[string]bool{},
	}
	for _, f := range frameworks(kubectl) {
		c.kinds[f.kind] = f
	}
	c.watching, err = controller.NewTyped("training-operator", mgr, controller.TypedOptions[request]{
		Reconciler: c, MaxConcurrentReconciles: 8,
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[request](100*time.Millisecond, longestPause),
	})
	if err != nil {
		return fmt.Errorf("set up the operator: %w", err)
	}
	for what, o := range map[string]client.Object{"pods": &corev1.Pod{}, "Services": &corev1.Service{}} {
		if err := c.watching.Watch(source.TypedKind(own, o, c.wake(controllingJob))); err != nil {
			return fmt.Errorf("watch %s: %w", what, err)
		}
	}
	if err := c.watching.Watch(source.TypedKind(own, client.Object(definition()), c.wake(definedKind))); err != nil {
		return fmt.Errorf("watch the definitions of kinds: %w", err)
	}
	return nil
}

func definition() *unstructured.Unstructured {
	crd := &unstructured.Unstructured{}
	crd.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	return crd
}

// runs says whether a kind is the operator's to run.
func (c *Controller) runs(ctx context.Context, f framework) (bool, error) {
	crd := definition()
	err := c.client.Get(ctx, client.ObjectKey{Name: f.plural + "." + group}, crd)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read the definition of %s: %w", f.kind, err)
	}
	return trainer.IsOurs(crd), nil
}

// watch has the jobs of a kind wake the controller, from now on.
func (c *Controller) watch(f framework) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watched[f.kind] {
		return nil
	}
	jobs := &unstructured.Unstructured{}
	jobs.SetGroupVersionKind(f.gvk())
	itself := func(o client.Object) request { return request{f.kind, client.ObjectKeyFromObject(o)} }
	if err := c.watching.Watch(source.TypedKind(c.cache, client.Object(jobs), c.wake(itself))); err != nil {
		return fmt.Errorf("watch %s: %w", f.plural, err)
	}
	c.watched[f.kind] = true
	return nil
}

// wake has what becomes of an object wake the job, or the kind, that it concerns.
func (c *Controller) wake(concerned func(client.Object) request) handler.TypedEventHandler[client.Object, request] {
	return handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []request {
		r := concerned(o)
		if _, known := c.kinds[r.kind]; !known {
			return nil
		}
		return []request{r}
	})
}

func controllingJob(o client.Object) request {
	owner := metav1.GetControllerOf(o)
	if owner == nil || schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).Group != group {
		return request{}
	}
	return request{owner.Kind, types.NamespacedName{Namespace: o.GetNamespace(), Name: owner.Name}}
}

func definedKind(o client.Object) request {
	crd, _ := o.(*unstructured.Unstructured)
	kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
	return request{kind: kind}
}
