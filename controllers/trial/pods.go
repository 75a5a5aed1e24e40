package trial

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/trainer"
	"github.com/vernier-ml/vernier/trainer/kind"
)

const (
	// PodPath is where the webhook of pods listens.
	PodPath = "/mutate-v1-pod"
	// ownersDeep bounds the way from a pod to its trial: a TrainJob's pod has three
	// objects in between.
	ownersDeep = 8
	// ownersKept is how many owners of pods are remembered, with the trials that they
	// lead to.
	ownersKept = 4096
)

// Pods injects the collector into pods when they are created: into those of trials
// whose jobs do not show their templates. It lets every pod pass. One that belongs to a
// trial and cannot be injected is annotated, so that its trial says why.
type Pods struct {
	// reader is not a cache: a trial's pod may be there a moment after its trial.
	reader    client.Reader
	reporting Reporting
	owners    *lru.Cache // UID of an owner: the name of the trial above it, "" if none
}

var _ admission.Handler = (*Pods)(nil)

// NewPods returns the handler. It reads Trials, the metadata of their namespaces, and that
// of the objects between a pod and its trial.
func NewPods(reader client.Reader, reporting Reporting) *Pods {
	return &Pods{reader: reader, reporting: reporting, owners: lru.New(ownersKept)}
}

// Handle implements admission.Handler.
func (p *Pods) Handle(ctx context.Context, req admission.Request) (response admission.Response) {
	defer func() {
		if r := recover(); r != nil {
			log.FromContext(ctx).Error(fmt.Errorf("panic: %v", r), "admission of a pod is broken", "namespace", req.Namespace, "pod", req.Name, "stack", string(debug.Stack()))
			response = unchanged(fmt.Errorf("panic: %v", r))
		}
	}()
	pod := &unstructured.Unstructured{}
	if err := json.Unmarshal(req.Object.Raw, &pod.Object); err != nil {
		return unchanged(err)
	}
	name := pod.GetGenerateName() + pod.GetName()
	edited, err := p.edit(ctx, req.Namespace, pod)
	switch {
	case err != nil && !edited:
		// Its trial, if it has one, finds the pod without a collector.
		log.FromContext(ctx).Error(err, "it is not known whether a pod belongs to a trial", "namespace", req.Namespace, "pod", name)
		return unchanged(fmt.Errorf("it is not known whether this pod belongs to a trial: %w", err))
	case err != nil:
		log.FromContext(ctx).Error(err, "a pod comes without its collector", "namespace", req.Namespace, "pod", name)
	case !edited:
		return admission.Allowed("it belongs to no trial whose collector is injected here")
	}
	raw, err := json.Marshal(pod.Object)
	if err != nil {
		return unchanged(err)
	}
	return admission.PatchResponseFromRaw(req.Object.Raw, raw)
}

// unchanged admits a pod as it is. An error response would refuse it: failurePolicy only
// holds when nothing answers.
func unchanged(err error) admission.Response {
	return admission.Allowed("").WithWarnings("Vernier leaves this pod as it is: " + err.Error())
}

// edit injects into a pod what it needs, and says whether anything was changed. A pod that
// cannot be injected is labelled, and annotated with why.
func (p *Pods) edit(ctx context.Context, namespace string, pod *unstructured.Unstructured) (edited bool, err error) {
	t, err := p.trialOf(ctx, namespace, pod)
	if err != nil || t == nil {
		return false, err
	}
	err = p.inject(ctx, t, pod, namespace)
	if err == nil {
		return true, nil
	}
	labels, annotations := pod.GetLabels(), pod.GetAnnotations()
	if labels == nil {
		labels = map[string]string{}
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	labels[trainer.LabelTrial], labels[trainer.LabelInject] = t.Name, trainer.InjectAtPod
	annotations[trainer.AnnotationNotInjected] = err.Error()
	pod.SetLabels(labels)
	pod.SetAnnotations(annotations)
	return true, err
}

func (p *Pods) inject(ctx context.Context, t *v1beta1.Trial, pod *unstructured.Unstructured, namespace string) error {
	inject, err := p.reporting.collector(ctx, t)
	if err != nil {
		return err
	}
	if inject.Resources, err = p.reporting.resources(ctx, p.reader, t); err != nil {
		return err
	}
	return trainer.InjectPod(pod, namespace, inject)
}

// trialOf is the trial that a pod belongs to, or nil if there is none whose pods are
// injected here.
func (p *Pods) trialOf(ctx context.Context, namespace string, pod *unstructured.Unstructured) (*v1beta1.Trial, error) {
	name := pod.GetLabels()[v1beta1.LabelTrial]
	if pod.GetLabels()[trainer.LabelInject] != trainer.InjectAtPod {
		var err error
		if name, err = p.above(ctx, namespace, metav1.GetControllerOf(pod), ownersDeep); err != nil {
			return nil, err
		}
	}
	if name == "" {
		return nil, nil
	}
	t := &v1beta1.Trial{}
	if err := p.reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, t); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("read the trial %s/%s: %w", namespace, name, err)
	}
	job, err := jobOf(t)
	if err != nil || t.IsCompleted() {
		return nil, nil //nolint:nilerr // no job was made of it
	}
	if !trainer.AtPod(job, kind.For(job.GroupVersionKind()), t.Spec.PrimaryContainerName) {
		return nil, nil
	}
	return t, nil
}

// above is the name of the trial that controls an owner, directly or through others; ""
// if there is none.
func (p *Pods) above(ctx context.Context, namespace string, owner *metav1.OwnerReference, deep int) (string, error) {
	switch {
	case owner == nil || deep == 0:
		return "", nil
	case owner.APIVersion == v1beta1.GroupVersion.String() && owner.Kind == "Trial":
		return owner.Name, nil
	}
	if known, ok := p.owners.Get(owner.UID); ok {
		return known.(string), nil
	}
	object := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: owner.APIVersion, Kind: owner.Kind}}
	err := p.reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: owner.Name}, object)
	switch {
	case apierrors.IsNotFound(err):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("read the %s %s/%s, which controls it: %w", owner.Kind, namespace, owner.Name, err)
	case object.UID != owner.UID:
		return "", nil
	}
	trial, err := p.above(ctx, namespace, metav1.GetControllerOf(object), deep-1)
	if err == nil {
		p.owners.Add(types.UID(owner.UID), trial)
	}
	return trial, err
}
