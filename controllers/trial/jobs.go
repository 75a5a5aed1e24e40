package trial

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/codes"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/tracing"
	"github.com/vernier-ml/vernier/trainer"
	"github.com/vernier-ml/vernier/trainer/kind"
)

// aggregationLabel marks the ClusterRoles that say which kinds the manager may
// use; see config/rbac/kinds.yaml.
const aggregationLabel = "vernier.ml/aggregate-to-manager"

// grace is the termination grace period of pods that set none.
const grace = 30 * time.Second

// unseenJob begins why it is not known whether a trial has a job.
const unseenJob = "its job cannot be seen: "

// errNoJob says that a trial's runSpec is no job.
var errNoJob = errors.New("spec.runSpec is not an object with apiVersion and kind")

func kindOf(t *v1beta1.Trial) (schema.GroupVersionKind, error) {
	if t.Spec.RunSpec == nil {
		return schema.GroupVersionKind{}, errNoJob
	}
	raw, err := json.Marshal(t.Spec.RunSpec)
	if err != nil {
		return schema.GroupVersionKind{}, fmt.Errorf("%w: %w", errNoJob, err)
	}
	var head metav1.TypeMeta
	if err := json.Unmarshal(raw, &head); err != nil || head.APIVersion == "" || head.Kind == "" {
		return schema.GroupVersionKind{}, errNoJob
	}
	return head.GroupVersionKind(), nil
}

// namespace is one whose metadata is read.
func namespace() *metav1.PartialObjectMetadata {
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	return o
}

// resources are what the collector of a trial gets: annotations of the trial take
// precedence over those of its namespace, and these over the manager's options.
func (r Reporting) resources(ctx context.Context, reader client.Reader, t *v1beta1.Trial) (corev1.ResourceRequirements, error) {
	in := namespace()
	if err := reader.Get(ctx, client.ObjectKey{Name: t.Namespace}, in); err != nil {
		return corev1.ResourceRequirements{}, fmt.Errorf("read the namespace %s: %w", t.Namespace, err)
	}
	has, err := v1beta1.CollectorResources(in.Annotations, r.Resources)
	if err != nil {
		return has, fmt.Errorf("annotation of the namespace %s: %w", t.Namespace, err)
	}
	if has, err = v1beta1.CollectorResources(t.Annotations, has); err != nil {
		return has, fmt.Errorf("annotation of the trial %s: %w", t.Name, err)
	}
	return has, nil
}

// jobOf is the job that a trial asks for.
func jobOf(t *v1beta1.Trial) (*unstructured.Unstructured, error) {
	raw, err := json.Marshal(t.Spec.RunSpec)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoJob, err)
	}
	job := &unstructured.Unstructured{}
	if err := job.UnmarshalJSON(raw); err != nil {
		return nil, fmt.Errorf("%w: %w", errNoJob, err)
	}
	return job, nil
}

func (c *Controller) build(ctx context.Context, t *v1beta1.Trial, gvk schema.GroupVersionKind, resources corev1.ResourceRequirements) (*unstructured.Unstructured, error) {
	job, err := jobOf(t)
	if err != nil {
		return nil, err
	}
	job.SetName(t.Name)
	job.SetNamespace(t.Namespace)
	job.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(t, v1beta1.GroupVersion.WithKind("Trial"))})
	inject, err := c.Reporting.collector(ctx, t)
	if err != nil {
		return nil, err
	}
	inject.Resources = resources
	inject.Mount = c.Reporting.Mount != nil && c.Reporting.Mount(ctx)
	if err := trainer.Inject(job, kind.For(gvk), inject); err != nil {
		return nil, err
	}
	return job, nil
}

func (r Reporting) collector(ctx context.Context, t *v1beta1.Trial) (trainer.Collector, error) {
	token, err := r.Token(idOf(t))
	if err != nil {
		return trainer.Collector{}, fmt.Errorf("make the token of trial %s: %w", t.Name, err)
	}
	labels := map[string]string{}
	for k, v := range t.Labels {
		if k != v1beta1.LabelTrialNumber {
			labels[k] = v
		}
	}
	// Admission does not see an annotation that was changed alone; with one that
	// cannot be read the default holds.
	rate, _ := v1beta1.CollectorRate(t.Annotations)
	number, ok := t.Number()
	if !ok {
		number = -1
	}
	inject := trainer.Collector{
		Image: r.Image, Binary: r.Binary, ImagePullPolicy: r.PullPolicy,
		Kind: string(collectorKind(t)), Metrics: metricNames(t.Spec.Objective), Rate: cmp.Or(rate, r.Rate),
		Experiment: t.Labels[v1beta1.LabelExperiment], Trial: t.Name, Number: number, Seed: t.Annotations[v1beta1.AnnotationSeed], Labels: labels,
		ReportURL: r.URL, Token: token, CA: r.CA,
		PrimaryContainer: t.Spec.PrimaryContainerName, PrimaryPodLabels: t.Spec.PrimaryPodLabels,
		Grace: grace, RerunDisrupted: r.RerunDisrupted, Commands: r.Commands,
	}
	if parent := t.Annotations[v1beta1.AnnotationTraceparent]; tracing.Valid(parent) {
		inject.Traceparent = parent
	}
	if k := t.Spec.Checkpoints; k != nil {
		inject.Checkpoints = &trainer.Checkpoints{Path: k.Path, Claim: k.ClaimName, Folder: k.Folder, Parent: k.Parent, UID: string(v1beta1.Origin(&t.ObjectMeta))}
	}
	if r.Entrypoint != nil {
		inject.Entrypoint = func(i trainer.Image) ([]string, []string, error) { return r.Entrypoint(ctx, i) }
	}
	if needsWholeCurve(t.Spec.Objective) {
		inject.Rate = -1 // a curve that is thinned keeps the least, the greatest and the last point only
	}
	inject.Parameters = map[string]string{}
	for _, a := range t.Spec.ParameterAssignments {
		inject.Parameters[a.Name] = a.Value
	}
	if m := t.Spec.MetricsCollector.Collector; m != nil {
		inject.Custom = m.CustomCollector
	}
	if s := t.Spec.MetricsCollector.Source; s != nil {
		if s.FileSystemPath != nil {
			inject.Path, inject.Format = s.FileSystemPath.Path, string(s.FileSystemPath.Format)
			inject.Directory = s.FileSystemPath.Kind == v1beta1.DirectoryKind
		}
		if h := s.HTTPGet; h != nil {
			inject.Endpoint = trainer.EndpointOf(h)
		}
		if s.Filter != nil {
			inject.Filters = s.Filter.MetricsFormat
		}
	}
	return inject, nil
}

// launch creates the trial's job. fatal says why that can never work, trouble
// why it does not work now. That the job exists already and is ours is success.
func (c *Controller) launch(ctx context.Context, t *v1beta1.Trial) (fatal, trouble string) {
	ctx, span := c.Traces.Continue(ctx, t.Annotations[v1beta1.AnnotationTraceparent], "job.create", ofTrace(t))
	defer func() {
		if why := fatal + trouble; why != "" {
			span.SetStatus(codes.Error, why)
		}
		span.End()
	}()
	gvk, err := kindOf(t)
	if err != nil {
		return err.Error(), ""
	}
	if err := c.watch(ctx, gvk); err != nil {
		switch {
		case meta.IsNoMatchError(err):
			return "", fmt.Sprintf("this cluster has no kind %s (%s): install what provides it", gvk.Kind, gvk.GroupVersion())
		case apierrors.IsForbidden(err):
			return "", fmt.Sprintf(unseenJob+"%v: make a ClusterRole with the label %s=true that lets the manager get, list, watch, create and delete it", err, aggregationLabel)
		}
		return "", err.Error()
	}
	resources, err := c.Reporting.resources(ctx, c.Client, t)
	if err != nil {
		return "", err.Error()
	}
	job, err := c.build(ctx, t, gvk, resources)
	switch {
	case errors.Is(err, trainer.ErrImage):
		return "", err.Error()
	case err != nil:
		return err.Error(), ""
	}
	if why, err := c.rooms.take(ctx, t, job, c.Now()); why != "" || err != nil {
		return "", cmp.Or(why, fmt.Sprint(err))
	}
	c.memory.forgetJob(t.UID)
	if fatal, trouble = c.make(ctx, t, job); fatal+trouble != "" {
		c.rooms.release(t.UID)
	}
	return fatal, trouble
}

func (c *Controller) make(ctx context.Context, t *v1beta1.Trial, job *unstructured.Unstructured) (fatal, trouble string) {
	err := c.Client.Create(ctx, job)
	switch {
	case err == nil:
		return "", ""
	case apierrors.IsAlreadyExists(err):
		return c.exists(ctx, t, job.GroupVersionKind())
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err):
		return fmt.Sprintf("the API server refuses it: %v", err), ""
	default:
		return "", err.Error()
	}
}

func (c *Controller) exists(ctx context.Context, t *v1beta1.Trial, gvk schema.GroupVersionKind) (fatal, trouble string) {
	have := &metav1.PartialObjectMetadata{}
	have.SetGroupVersionKind(gvk)
	if err := c.Reader.Get(ctx, client.ObjectKeyFromObject(t), have); err != nil {
		return "", err.Error()
	}
	owner := metav1.GetControllerOf(have)
	switch {
	case owner != nil && owner.UID == t.UID:
		return "", ""
	case have.DeletionTimestamp != nil || owner != nil && owner.Kind == "Trial" && owner.Name == t.Name:
		return "", fmt.Sprintf("the %s of a deleted trial with the same name is still being removed", gvk.Kind)
	default:
		return fmt.Sprintf("a %s named %s exists already and does not belong to this trial: delete it, or give the experiment another name", gvk.Kind, t.Name), ""
	}
}

// watch sees to it that jobs of a kind wake their trials. A kind that the
// cluster does not have is an error that meta.IsNoMatchError knows; one that the
// manager may not read, one that apierrors.IsForbidden knows.
func (c *Controller) watch(ctx context.Context, gvk schema.GroupVersionKind) error {
	c.mu.Lock()
	known := c.kinds[gvk]
	c.mu.Unlock()
	if known {
		return nil
	}
	// This may ask the API server: other trials do not wait for it.
	if _, err := c.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version); err != nil {
		return fmt.Errorf("find the kind %s: %w", gvk, err)
	}
	// The cache of a kind that may not be read never fills, and a request to it
	// waits in vain.
	probe := &metav1.PartialObjectMetadataList{}
	probe.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if err := c.Reader.List(ctx, probe, client.Limit(1)); err != nil {
		return fmt.Errorf("list the kind %s: %w", gvk.Kind, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kinds[gvk] {
		return nil
	}
	job := &unstructured.Unstructured{}
	job.SetGroupVersionKind(gvk)
	if err := c.watching.Watch(source.Kind(c.Cache, client.Object(job), c.jobHandler())); err != nil {
		return fmt.Errorf("watch the kind %s: %w", gvk, err)
	}
	c.kinds[gvk] = true
	return nil
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// jobHandler wakes the trial that owns a job, and remembers a job that goes.
func (c *Controller) jobHandler() handler.EventHandler {
	wake := func(o client.Object, q queue) {
		owner := metav1.GetControllerOf(o)
		if owner == nil || owner.Kind != "Trial" || owner.APIVersion != v1beta1.GroupVersion.String() {
			return
		}
		q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: owner.Name}})
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { wake(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) { wake(e.ObjectNew, q) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) {
			job, ok := e.Object.(*unstructured.Unstructured)
			// After a gap in the watch the last state is not the final one.
			if owner := metav1.GetControllerOf(e.Object); ok && owner != nil && !e.DeleteStateUnknown {
				c.memory.jobGone(owner.UID, job)
			}
			wake(e.Object, q)
		},
	}
}

func idOf(t *v1beta1.Trial) collector.TrialID {
	return collector.TrialID{Namespace: t.Namespace, Name: t.Name, Experiment: t.Labels[v1beta1.LabelExperiment], UID: string(t.UID)}
}
