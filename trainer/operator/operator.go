// Package operator runs the jobs of Kubeflow's training operator where that is not
// installed: TFJob, PyTorchJob and their kin, as pods with a headless Service each,
// with the environment, labels, conditions and policies that their users know.
//
// A kind is run as long as its CustomResourceDefinition is ours (trainer.IsOurs). Where
// another definition is installed, also over ours, nothing is done.
//
// Names are deterministic, so that every create is idempotent. A reconcile reads
// (job.go), plans (plan.go, pure), writes the status, and acts.
package operator

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	event "github.com/vernier-ml/vernier/controllers/events"
)

const conflictPause = 50 * time.Millisecond

// longestPause is between two attempts of a job that fails: an API server takes half a
// minute to know the kinds of a definition that is new.
const longestPause = 10 * time.Second

// Controller runs jobs.
type Controller struct {
	// client reads the cache, reader the API server.
	client   client.Client
	reader   client.Reader
	cache    cache.Cache
	recorder events.EventRecorder
	now      func() time.Time
	kinds    map[string]framework
	ports    portBook

	mu       sync.Mutex
	watching controller.TypedController[request]
	watched  map[string]bool
}

// Reconcile brings one job a step further.
func (c *Controller) Reconcile(ctx context.Context, req request) (reconcile.Result, error) {
	f := c.kinds[req.kind]
	if ours, err := c.runs(ctx, f); err != nil || !ours {
		return reconcile.Result{}, err
	}
	if req.Name == "" {
		return reconcile.Result{}, c.watch(f)
	}
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(f.gvk())
	if err := c.client.Get(ctx, req.NamespacedName, obj); err != nil || obj.GetDeletionTimestamp() != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	j, err := read(obj, f)
	if j == nil {
		return reconcile.Result{}, err
	}
	j.invalid = err
	if !j.status.finished() {
		c.ports.hold(j.ports)
	}
	if by := j.spec.RunPolicy.ManagedBy; by != "" && by != "kubeflow.org/training-operator" {
		return reconcile.Result{}, nil // MultiKueue runs it elsewhere
	}
	pods, err := c.pods(ctx, j)
	if err != nil {
		return reconcile.Result{}, err
	}
	d := plan(j, pods, c.now())
	if d.status != nil {
		err := c.write(ctx, obj, j, *d.status)
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			return reconcile.Result{RequeueAfter: conflictPause}, nil // the cache is behind
		}
		if err != nil {
			return reconcile.Result{}, err
		}
	}
	err = c.act(ctx, obj, j, d)
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: conflictPause}, nil
	}
	if err != nil || j.status.finished() || j.spec.RunPolicy.Suspend {
		return reconcile.Result{RequeueAfter: d.after}, err
	}
	return reconcile.Result{RequeueAfter: d.after}, c.serve(ctx, j, pods)
}

// serve makes the Services again that pods have lost: their names would not resolve.
func (c *Controller) serve(ctx context.Context, j *job, pods []corev1.Pod) error {
	var list corev1.ServiceList
	if err := c.client.List(ctx, &list, client.InNamespace(j.Namespace), client.MatchingLabels{labelJobName: j.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list the Services of %s %s/%s: %w", j.kind, j.Namespace, j.Name, err)
	}
	lost := map[string]bool{}
	for i := range pods {
		lost[pods[i].Name] = pods[i].DeletionTimestamp == nil
	}
	for i := range list.Items {
		delete(lost, list.Items[i].Name)
	}
	var errs []error
	for _, r := range j.replicas {
		for i := range r.count {
			if s := (seat{r.name, i}); lost[j.podName(r.name, i)] {
				errs = append(errs, c.create(ctx, j, j.service(s, j.pod(s))))
			}
		}
	}
	return errors.Join(errs...)
}

// pods are those that the job controls.
func (c *Controller) pods(ctx context.Context, j *job) ([]corev1.Pod, error) {
	var list corev1.PodList
	err := c.client.List(ctx, &list, client.InNamespace(j.Namespace), client.MatchingFields{ownerIndex: string(j.UID)}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("list the pods of %s %s/%s: %w", j.kind, j.Namespace, j.Name, err)
	}
	return list.Items, nil
}

// write writes the status, and then tells what has changed.
func (c *Controller) write(ctx context.Context, obj *unstructured.Unstructured, j *job, s status) error {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&s)
	if err != nil {
		return fmt.Errorf("write the status of %s %s/%s: %w", j.kind, j.Namespace, j.Name, err)
	}
	obj.Object["status"] = fields
	if err := c.client.Status().Update(ctx, obj); err != nil {
		return fmt.Errorf("write the status of %s %s/%s: %w", j.kind, j.Namespace, j.Name, err)
	}
	for _, condition := range started(j.status, s) {
		tell := event.Normal
		if condition.Type == failed || condition.Type == restarting {
			tell = event.Warning
		}
		tell(condition.Reason, "Reconcile", condition.Message).Send(c.recorder, obj)
	}
	j.status = s
	return nil
}

// act does what was decided. What exists already, or is gone already, is success.
func (c *Controller) act(ctx context.Context, obj *unstructured.Unstructured, j *job, d decision) error {
	var errs []error
	for i := range d.remove {
		if d.remove[i].DeletionTimestamp == nil {
			errs = append(errs, c.remove(ctx, &d.remove[i]))
		}
	}
	if len(d.create) > 0 {
		if err := c.prepare(ctx, obj, j, d.anew); err != nil {
			if !apierrors.IsConflict(err) { // the cache is behind
				event.Warning("FailedCreate", "Create", err.Error()).Send(c.recorder, obj)
			}
			return errors.Join(append(errs, err)...)
		}
	}
	for _, o := range j.objects(d.create) {
		err := c.create(ctx, j, o)
		switch {
		case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
			s := j.status.clone()
			s.reject(j, err, c.now())
			return c.write(ctx, obj, j, s)
		case err != nil:
			event.Warning("FailedCreate", "Create", err.Error()).Send(c.recorder, obj)
			return errors.Join(append(errs, err)...)
		}
	}
	if d.removeJob {
		errs = append(errs, c.remove(ctx, obj))
	}
	return errors.Join(errs...)
}

// prepare decides what all pods of a job must know alike, before some are made.
func (c *Controller) prepare(ctx context.Context, obj *unstructured.Unstructured, j *job, anew bool) error {
	if err := c.shareNetwork(ctx, obj, j, anew); err != nil {
		return err
	}
	if err := j.chooseGang(c.client.RESTMapper()); err != nil {
		return err
	}
	if j.gang == nil && j.spec.RunPolicy.SchedulingPolicy != nil {
		event.Warning("NoPodGroups", "Create", "this cluster has no PodGroups (of Volcano or the coscheduling plugin): runPolicy.schedulingPolicy is left aside").Send(c.recorder, obj)
	}
	return nil
}

func (c *Controller) create(ctx context.Context, j *job, obj client.Object) error {
	err := c.client.Create(ctx, obj)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	have := obj.DeepCopyObject().(client.Object)
	if err := c.reader.Get(ctx, client.ObjectKeyFromObject(obj), have); err != nil {
		return fmt.Errorf("read %s, which exists already: %w", obj.GetName(), err)
	}
	switch owner := metav1.GetControllerOf(have); {
	case owner != nil && owner.UID == j.UID:
		return nil
	case have.GetDeletionTimestamp() != nil || owner != nil && owner.Kind == j.kind && owner.Name == j.Name:
		return fmt.Errorf("the %T %s of a deleted %s with the same name is still being removed", obj, obj.GetName(), j.kind)
	default:
		return fmt.Errorf("the %T %s exists already and does not belong to this %s: delete it, or give the job another name", obj, obj.GetName(), j.kind)
	}
}

// remove deletes the object that was seen, and no other of its name.
func (c *Controller) remove(ctx context.Context, obj client.Object) error {
	err := c.client.Delete(ctx, obj, client.Preconditions{UID: ptr.To(obj.GetUID())}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete %s/%s: %w", obj.GetNamespace(), obj.GetName(), err)
	}
	return nil
}
