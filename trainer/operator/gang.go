package operator

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
)

// schedulingPolicy asks that the pods of a job are scheduled all at once or not at all.
type schedulingPolicy struct {
	// MinAvailable is how many pods are enough. Default: all.
	MinAvailable *int32 `json:"minAvailable"`
	// Queue and PriorityClass are Volcano's.
	Queue         string `json:"queue"`
	PriorityClass string `json:"priorityClass"`
	// MinResources is what the group needs at least. Default: not said.
	MinResources corev1.ResourceList `json:"minResources"`
	// ScheduleTimeoutSeconds is how long the coscheduling plugin waits for all pods.
	ScheduleTimeoutSeconds *int32 `json:"scheduleTimeoutSeconds"`
}

// gangScheduler is a scheduler that knows the pods of a group by an object of its own.
type gangScheduler struct {
	group schema.GroupVersionKind
	// scheduler is the schedulerName of pods that have none.
	scheduler string
	// join makes a pod of a role a member of the group.
	join func(pod *corev1.Pod, group, role string)
	// fields are those of the group besides minMember and minResources.
	fields func(schedulingPolicy) map[string]any
}

// The names are those of Volcano's API (scheduling.volcano.sh/v1beta1) and of the
// coscheduling plugin's (scheduling.x-k8s.io/v1alpha1).
var volcano = gangScheduler{
	group: schema.GroupVersionKind{Group: "scheduling.volcano.sh", Version: "v1beta1", Kind: "PodGroup"}, scheduler: "volcano",
	join: func(pod *corev1.Pod, group, role string) {
		set(&pod.Annotations, "scheduling.k8s.io/group-name", group)
		set(&pod.Annotations, "volcano.sh/task-spec", role)
	},
	fields: func(p schedulingPolicy) map[string]any {
		return map[string]any{"queue": p.Queue, "priorityClassName": p.PriorityClass}
	},
}

var coscheduling = gangScheduler{
	group: schema.GroupVersionKind{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Kind: "PodGroup"}, scheduler: "scheduler-plugins-scheduler",
	join: func(pod *corev1.Pod, group, _ string) { set(&pod.Labels, "scheduling.x-k8s.io/pod-group", group) },
	fields: func(p schedulingPolicy) map[string]any {
		if p.ScheduleTimeoutSeconds == nil {
			return nil
		}
		return map[string]any{"scheduleTimeoutSeconds": int64(*p.ScheduleTimeoutSeconds)}
	},
}

func set(in *map[string]string, key, value string) {
	if *in == nil {
		*in = map[string]string{}
	}
	(*in)[key] = value
}

// chooseGang finds the scheduler that starts a job's pods together, if the job asks for it
// by runPolicy.schedulingPolicy or by pods whose schedulerName is Volcano's. What the pods
// name decides, else what the cluster has.
func (j *job) chooseGang(mapper meta.RESTMapper) error {
	named := j.replicas[0].template.Spec.SchedulerName
	if j.spec.RunPolicy.SchedulingPolicy == nil && named != volcano.scheduler {
		return nil
	}
	for _, g := range []gangScheduler{volcano, coscheduling} {
		if named != "" && (named == volcano.scheduler) != (g.scheduler == volcano.scheduler) {
			continue
		}
		_, err := mapper.RESTMapping(g.group.GroupKind(), g.group.Version)
		switch {
		case err == nil:
			j.gang = &g
			return nil
		case !meta.IsNoMatchError(err):
			return fmt.Errorf("find the kind %s: %w", g.group, err)
		}
	}
	return nil
}

// podGroup is the group of a job's pods.
func (j *job) podGroup() *unstructured.Unstructured {
	policy := ptr.Deref(j.spec.RunPolicy.SchedulingPolicy, schedulingPolicy{})
	members := j.total()
	if j.last != "" {
		members -= j.count(j.last) // it is made when the others run
	}
	spec := map[string]any{"minMember": int64(min(ptr.Deref(policy.MinAvailable, int32(members)), int32(members)))}
	if len(policy.MinResources) > 0 {
		least := map[string]any{}
		for name, q := range policy.MinResources {
			least[string(name)] = q.String()
		}
		spec["minResources"] = least
	}
	for name, value := range j.gang.fields(policy) {
		if value != "" {
			spec[name] = value
		}
	}
	group := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	group.SetGroupVersionKind(j.gang.group)
	of := j.meta(j.Name, nil)
	group.SetNamespace(of.Namespace)
	group.SetName(of.Name)
	group.SetOwnerReferences(of.OwnerReferences)
	return group
}

// join makes a pod a member of the job's group.
func (j *job) join(pod *corev1.Pod, replica string) {
	if j.gang == nil {
		return
	}
	if pod.Spec.SchedulerName == "" {
		pod.Spec.SchedulerName = j.gang.scheduler
	}
	j.gang.join(pod, j.Name, strings.ToLower(replica))
}
