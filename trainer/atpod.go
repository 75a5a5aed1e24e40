package trainer

import (
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// AtPod says whether the collector of a job is injected into its primary pod when that
// is created, because the job does not show its template.
func AtPod(job *unstructured.Unstructured, kind Kind, primaryContainer string) bool {
	opaque, ok := kind.(Opaque)
	if !ok {
		return false
	}
	roles, err := kind.Roles(job)
	shown := slices.ContainsFunc(roles, func(r Role) bool {
		tpl, err := Template(job, r)
		return err == nil && container(tpl, primaryContainer) != nil
	})
	return errors.Is(err, ErrNoTemplate) || err == nil && opaque.Beside() && !shown
}

// markAtPod labels a job whose pods are injected when they are created, and its pods if
// the kind has a place for their labels.
func markAtPod(job *unstructured.Unstructured, kind Opaque, c Collector) error {
	work := job.DeepCopy()
	c = atPod(c)
	if err := addLabels(work.Object, nil, c); err != nil {
		return err
	}
	if at := kind.PodLabels(); len(at) > 0 {
		parent, where := work.Object, []string(nil)
		for _, key := range at {
			child, err := childMap(parent, where, key)
			if err != nil {
				return err
			}
			parent, where = child, under(where, key)
		}
		c.label(parent)
	}
	job.Object = work.Object
	return nil
}

func atPod(c Collector) Collector {
	labels := map[string]string{LabelInject: InjectAtPod}
	for k, v := range c.Labels {
		labels[k] = v
	}
	c.Labels = labels
	c.Mount = false // LacksCollector looks for the sidecar
	return c
}

// InjectPod edits a pod of the trial, before it is created, as Inject edits templates.
// Every pod gets the trial's labels; the one that reports gets the collector too.
// namespace is that of the pod, which may not be in it yet. On an error the pod is
// unchanged.
func InjectPod(pod *unstructured.Unstructured, namespace string, c Collector) error {
	work := pod.DeepCopy()
	c = atPod(c)
	c.Commands.name(work.Object)
	if err := prepare(work.Object, Role{}, c); err != nil {
		return err
	}
	if container(work.Object, c.PrimaryContainer) != nil && Reports(c.PrimaryPodLabels, work.GetLabels()) {
		if err := injectTemplate(work.Object, Role{}, namespace, c); err != nil {
			return err
		}
	}
	pod.Object = work.Object
	return nil
}

// LacksCollector says whether a pod that was to get the collector when it was created,
// and reports, has none.
func LacksCollector(pod *corev1.Pod, primaryContainer string, primaryPodLabels map[string]string) bool {
	is := func(name string) func(corev1.Container) bool {
		return func(c corev1.Container) bool { return c.Name == name }
	}
	return pod.Labels[LabelInject] == InjectAtPod && Reports(primaryPodLabels, pod.Labels) &&
		slices.ContainsFunc(pod.Spec.Containers, is(primaryContainer)) &&
		!slices.ContainsFunc(pod.Spec.InitContainers, is(Sidecar)) && !slices.ContainsFunc(pod.Spec.InitContainers, is(SidecarLogger))
}
