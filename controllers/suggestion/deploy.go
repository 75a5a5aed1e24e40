package suggestion

import (
	"cmp"
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/controllers/katib"
)

// Names within the pod of a service, as Katib's.
const (
	containerName = "suggestion"
	volumeName    = "suggestion-volume"
	volumePath    = "/opt/katib/data"
	probedService = "manager.v1beta1.Suggestion"
	labelIstio    = "sidecar.istio.io/inject"
)

var deploymentKind = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}

// labelsOf select the pod of the service.
func labelsOf(s *v1beta1.Suggestion) map[string]string {
	labels := maps.Clone(s.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[v1beta1.LabelDeployment] = v1beta1.ServiceName(s.Name, s.Spec.Algorithm)
	labels[v1beta1.LabelExperiment], labels[v1beta1.LabelSuggestion], labels[labelIstio] = s.Name, s.Name, "false"
	return labels
}

// metaOf is that of what belongs to the Suggestion. It does not block the deletion of
// its owner, for which the manager has no right.
func metaOf(s *v1beta1.Suggestion, labels map[string]string) metav1.ObjectMeta {
	owner := *metav1.NewControllerRef(s, v1beta1.GroupVersion.WithKind("Suggestion"))
	owner.BlockOwnerDeletion = nil
	return metav1.ObjectMeta{
		Namespace: s.Namespace, Name: v1beta1.ServiceName(s.Name, s.Spec.Algorithm), Labels: labels,
		OwnerReferences: []metav1.OwnerReference{owner},
	}
}

// serviceOf is what the pod of the service is reached by.
func serviceOf(s *v1beta1.Suggestion) *corev1.Service {
	return &corev1.Service{ObjectMeta: metaOf(s, nil), Spec: corev1.ServiceSpec{
		Selector: labelsOf(s), Type: corev1.ServiceTypeClusterIP,
		Ports: []corev1.ServicePort{{Name: v1beta1.SuggestionPortName, Port: v1beta1.SuggestionPort}},
	}}
}

// claimOf is the volume of the service with the resume policy FromVolume.
func claimOf(s *v1beta1.Suggestion, a katib.Algorithm) *corev1.PersistentVolumeClaim {
	spec := *a.PersistentVolumeClaimSpec.DeepCopy()
	if len(spec.AccessModes) == 0 {
		spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	}
	if spec.Resources.Requests == nil {
		spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	}
	return &corev1.PersistentVolumeClaim{ObjectMeta: metaOf(s, nil), Spec: spec}
}

// deploymentOf runs the service: one pod with the container that Katib's ConfigMap
// names.
func deploymentOf(s *v1beta1.Suggestion, a katib.Algorithm, probes bool) (client.Object, error) {
	container := *a.Container.DeepCopy()
	container.Name = cmp.Or(container.Name, containerName)
	container.ImagePullPolicy = cmp.Or(container.ImagePullPolicy, corev1.PullIfNotPresent)
	container.Ports = append(container.Ports, corev1.ContainerPort{Name: v1beta1.SuggestionPortName, ContainerPort: v1beta1.SuggestionPort})
	defaultResources(&container.Resources)
	health := corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: v1beta1.SuggestionPort, Service: ptr.To(probedService)}}
	if probes && container.ReadinessProbe == nil {
		container.ReadinessProbe = &corev1.Probe{ProbeHandler: health, PeriodSeconds: 2}
	}
	if probes && container.LivenessProbe == nil {
		container.LivenessProbe = &corev1.Probe{ProbeHandler: health, InitialDelaySeconds: 30, PeriodSeconds: 30, TimeoutSeconds: 10, FailureThreshold: 12}
	}
	pod := corev1.PodSpec{ServiceAccountName: a.ServiceAccountName}
	if s.Spec.ResumePolicy == v1beta1.FromVolume {
		pod.Volumes = []corev1.Volume{{Name: volumeName, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{
			ClaimName: v1beta1.VolumeClaimName(s.Name, s.Spec.Algorithm)}}}}
		container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: volumeName, MountPath: cmp.Or(a.VolumeMountPath, volumePath)})
	}
	pod.Containers = []corev1.Container{container}
	labels := labelsOf(s)
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod}
	// Without the Go types of Deployments the manager needs no more memory.
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&struct {
		metav1.ObjectMeta `json:"metadata"`
		Spec              map[string]any `json:"spec"`
	}{metaOf(s, s.Labels), map[string]any{"replicas": 1, "selector": metav1.LabelSelector{MatchLabels: labels}, "strategy": map[string]any{"type": "Recreate"}, "template": template}})
	if err != nil {
		return nil, fmt.Errorf("write the Deployment of %s: %w", s.Name, err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(deploymentKind)
	return u, nil
}

// defaultResources fills in what a ResourceQuota may demand. A default gives way to what
// is given: no request is above its limit.
func defaultResources(r *corev1.ResourceRequirements) {
	fill := func(list *corev1.ResourceList, name corev1.ResourceName, value string, other corev1.ResourceList, wrong int) {
		if *list == nil {
			*list = corev1.ResourceList{}
		}
		if _, given := (*list)[name]; given {
			return
		}
		q := resource.MustParse(value)
		if bound, given := other[name]; given && q.Cmp(bound) == wrong {
			q = bound
		}
		(*list)[name] = q
	}
	fill(&r.Limits, corev1.ResourceCPU, "1", r.Requests, -1)
	fill(&r.Limits, corev1.ResourceMemory, "1Gi", r.Requests, -1) // Katib's 100Mi end many a search
	fill(&r.Requests, corev1.ResourceCPU, "50m", r.Limits, 1)
	fill(&r.Requests, corev1.ResourceMemory, "64Mi", r.Limits, 1)
}

// deploy makes the service of an algorithm. What is there already stays.
func (c *Controller) deploy(ctx context.Context, s *v1beta1.Suggestion, a katib.Algorithm) error {
	deployment, err := deploymentOf(s, a, c.Dial == nil)
	if err != nil {
		return err
	}
	objects := []client.Object{serviceOf(s), deployment}
	if s.Spec.ResumePolicy == v1beta1.FromVolume {
		objects = append([]client.Object{claimOf(s, a)}, objects...)
	}
	for _, o := range objects {
		err := c.Client.Create(ctx, o)
		if _, claim := o.(*corev1.PersistentVolumeClaim); apierrors.IsAlreadyExists(err) && !claim {
			err = c.checkOwned(ctx, s, o)
		} else if apierrors.IsAlreadyExists(err) && !beingDeleted(err) {
			err = nil
		}
		if err != nil {
			return fmt.Errorf("make the service of algorithm %q, %s: %w", s.AlgorithmName(), kindOf(o).Kind, err)
		}
	}
	return nil
}

// takenError says that an object of the service's name belongs to another owner.
type takenError struct{ kind, name string }

func (e *takenError) Error() string {
	return fmt.Sprintf("a %s named %s exists already and does not belong to this experiment: delete it, or give the experiment another name", e.kind, e.name)
}

func kindOf(o client.Object) schema.GroupVersionKind {
	switch o.(type) {
	case *corev1.Service:
		return corev1.SchemeGroupVersion.WithKind("Service")
	case *corev1.PersistentVolumeClaim:
		return corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim")
	default:
		return deploymentKind
	}
}

// checkOwned returns a takenError unless s controls the object of o's kind and name.
func (c *Controller) checkOwned(ctx context.Context, s *v1beta1.Suggestion, o client.Object) error {
	there, err := c.find(ctx, o)
	if err == nil && there != nil && !metav1.IsControlledBy(there, s) {
		return &takenError{kindOf(o).Kind, o.GetName()}
	}
	return err // one that has gone meanwhile is made again when the service does not answer
}

// find reads the metadata of an object past the cache; nil if there is none.
func (c *Controller) find(ctx context.Context, o client.Object) (*metav1.PartialObjectMetadata, error) {
	there := &metav1.PartialObjectMetadata{}
	there.SetGroupVersionKind(kindOf(o))
	err := c.Reader.Get(ctx, client.ObjectKeyFromObject(o), there)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read %s %s/%s: %w", kindOf(o).Kind, o.GetNamespace(), o.GetName(), err)
	}
	return there, nil
}

// retire deletes the Deployment and the Service that belong to s; the volume stays with
// the Suggestion.
func (c *Controller) retire(ctx context.Context, s *v1beta1.Suggestion) error {
	meta := metav1.ObjectMeta{Namespace: s.Namespace, Name: v1beta1.ServiceName(s.Name, s.Spec.Algorithm)}
	for _, o := range []client.Object{&metav1.PartialObjectMetadata{ObjectMeta: meta}, &corev1.Service{ObjectMeta: meta}} {
		there, err := c.find(ctx, o)
		if err == nil && there != nil && metav1.IsControlledBy(there, s) {
			// By UID: one that was made since under the same name is not ours.
			options := &client.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}
			if uid := there.GetUID(); uid != "" {
				options.Preconditions = &metav1.Preconditions{UID: &uid}
			}
			err = client.IgnoreNotFound(c.Client.Delete(ctx, there, options))
		}
		if err != nil {
			return fmt.Errorf("delete the service of algorithm %q: %w", s.AlgorithmName(), err)
		}
	}
	return nil
}
