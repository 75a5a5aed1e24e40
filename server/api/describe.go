package api

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/component-helpers/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	vernierv1 "github.com/vernier-ml/vernier/api/proto/vernier/v1"
	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/trainer"
)

const (
	// mostEvents and mostPods bound what is told of one object: the newest of them.
	mostEvents, mostPods = 200, 100
	// mostNamed bounds of how many pods the events are looked for.
	mostNamed = 10
)

// Describe implements vernierv1.DashboardServiceHandler.
func (s *service) Describe(ctx context.Context, r *vernierv1.DescribeRequest) (*vernierv1.DescribeResponse, error) {
	if p, err := parsePlace("name", r.GetName(), trialForm); err == nil {
		return s.describeTrial(ctx, p)
	}
	p, err := parsePlace("name", r.GetName(), experimentForm)
	if err != nil {
		return nil, err
	}
	return s.describeExperiment(ctx, p)
}

func (s *service) describeExperiment(ctx context.Context, p place) (*vernierv1.DescribeResponse, error) {
	if err := s.allow(ctx, "get", "experiments", p); err != nil {
		return nil, err
	}
	exp := &v1beta1.Experiment{}
	if err := s.Reader.Get(ctx, p.key(), exp); err != nil {
		return nil, explain(ctx, err)
	}
	out, err := aboutExperiment(exp)
	if err != nil {
		return nil, explain(ctx, err)
	}
	out.Events, err = s.events(ctx, p.namespace, exp.Name)
	return out, err
}

// aboutExperiment is what is said of an experiment, but for its events.
func aboutExperiment(exp *v1beta1.Experiment) (*vernierv1.DescribeResponse, error) {
	text, err := asYAML(exp, "Experiment")
	out := &vernierv1.DescribeResponse{Yaml: text}
	if c := exp.LastCondition(); c != nil {
		out.Why = c.Message
	}
	for _, c := range exp.Status.Conditions {
		out.Conditions = append(out.Conditions, conditionOut(string(c.Type), c.Condition))
	}
	return out, err
}

func (s *service) describeTrial(ctx context.Context, p place) (*vernierv1.DescribeResponse, error) {
	if err := s.allow(ctx, "get", "trials", p); err != nil {
		return nil, err
	}
	t, err := s.wholeTrial(ctx, p)
	if err != nil {
		return nil, err
	}
	text, err := asYAML(t, "Trial")
	if err != nil {
		return nil, explain(ctx, err)
	}
	out := &vernierv1.DescribeResponse{Yaml: text}
	if c := t.LastCondition(); c != nil {
		out.Why = c.Message
	}
	for _, c := range t.Status.Conditions {
		out.Conditions = append(out.Conditions, conditionOut(string(c.Type), c.Condition))
	}
	pods, err := s.pods(ctx, t)
	if err != nil {
		return nil, err
	}
	names := []string{t.Name} // its job has the same name
	for i := range pods {
		out.Pods = append(out.Pods, podOut(t, &pods[i]))
		if i < mostNamed {
			names = append(names, pods[i].Name)
		}
	}
	if out.Metrics, err = s.Store.Metrics(ctx, string(t.UID)); err != nil {
		return nil, explain(ctx, err)
	}
	out.Events, err = s.events(ctx, p.namespace, names...)
	return out, err
}

// wholeTrial is the trial as the API server has it: the cache shortens its job.
func (s *service) wholeTrial(ctx context.Context, p place) (*v1beta1.Trial, error) {
	t := &v1beta1.Trial{}
	err := s.Reader.Get(ctx, p.trialKey(), t)
	if err == nil && t.Labels[v1beta1.LabelExperiment] != p.experiment {
		err = fault(connect.CodeNotFound, ReasonNotFound, "correct the name", "experiment %s has no trial %s", p.key(), p.trial)
	}
	return t, explain(ctx, err)
}

// asYAML is an object without what only machines read.
func asYAML(o client.Object, kind string) (string, error) {
	o.SetManagedFields(nil)
	annotations := o.GetAnnotations()
	delete(annotations, corev1.LastAppliedConfigAnnotation)
	o.SetAnnotations(annotations)
	o.GetObjectKind().SetGroupVersionKind(v1beta1.GroupVersion.WithKind(kind))
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return "", fmt.Errorf("encode %s %s/%s: %w", kind, o.GetNamespace(), o.GetName(), err)
	}
	text, err := yaml.Marshal(fields)
	return string(text), err
}

func conditionOut(name string, c v1beta1.Condition) *vernierv1.DescribeResponse_Condition {
	return &vernierv1.DescribeResponse_Condition{
		Type: name, Holds: c.Status == corev1.ConditionTrue, Reason: c.Reason, Message: c.Message, Since: timestamppb.New(c.LastTransitionTime.Time),
	}
}

// events are those of objects with these names, oldest first; none where the caller may
// not list events.
func (s *service) events(ctx context.Context, namespace string, names ...string) (out []*vernierv1.DescribeResponse_Event, err error) {
	if ok, err := s.mayRead(ctx, namespace, "list", "events", ""); err != nil || !ok {
		return nil, err
	}
	for _, name := range names {
		var list corev1.EventList
		selector := client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("involvedObject.name", name)}
		if err := s.Reader.List(ctx, &list, client.InNamespace(namespace), selector, client.Limit(mostEvents)); err != nil {
			return nil, explain(ctx, err)
		}
		for i := range list.Items {
			out = append(out, eventOut(&list.Items[i]))
		}
	}
	slices.SortStableFunc(out, func(a, b *vernierv1.DescribeResponse_Event) int { return a.Time.AsTime().Compare(b.Time.AsTime()) })
	return out[max(0, len(out)-mostEvents):], nil
}

func eventOut(e *corev1.Event) *vernierv1.DescribeResponse_Event {
	at, count := e.LastTimestamp.Time, e.Count
	if e.Series != nil {
		at, count = e.Series.LastObservedTime.Time, e.Series.Count
	}
	for _, other := range []time.Time{e.EventTime.Time, e.CreationTimestamp.Time} {
		if at.IsZero() {
			at = other
		}
	}
	return &vernierv1.DescribeResponse_Event{
		Object: e.InvolvedObject.Kind + " " + e.InvolvedObject.Name, Warning: e.Type == corev1.EventTypeWarning,
		Reason: e.Reason, Message: e.Message, Count: max(1, count), Time: timestamppb.New(at),
	}
}

// pods are those of a trial, the newest first; none where the caller may not list pods.
func (s *service) pods(ctx context.Context, t *v1beta1.Trial) ([]corev1.Pod, error) {
	if ok, err := s.mayRead(ctx, t.Namespace, "list", "pods", ""); err != nil || !ok {
		return nil, err
	}
	var list corev1.PodList
	if err := s.Reader.List(ctx, &list, client.InNamespace(t.Namespace), client.MatchingLabels{v1beta1.LabelTrial: t.Name}); err != nil {
		return nil, explain(ctx, err)
	}
	slices.SortStableFunc(list.Items, func(a, b corev1.Pod) int {
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return list.Items[:min(len(list.Items), mostPods)], nil
}

func podOut(t *v1beta1.Trial, p *corev1.Pod) *vernierv1.DescribeResponse_Pod {
	out := &vernierv1.DescribeResponse_Pod{
		Name: p.Name, Node: p.Spec.NodeName, Phase: string(p.Status.Phase), Message: p.Status.Message, StartTime: timeOut(p.Status.StartTime),
		Primary: trainer.Reports(t.Spec.PrimaryPodLabels, p.Labels), Resources: map[string]string{},
	}
	for _, c := range p.Status.Conditions {
		if out.Message == "" && c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			out.Message = c.Message
		}
	}
	for name, q := range resource.PodRequests(p, resource.PodResourcesOptions{}) {
		out.Resources[string(name)] = q.String()
	}
	for _, c := range p.Status.ContainerStatuses {
		shown := containerOut(&c)
		shown.Primary = out.Primary && c.Name == t.Spec.PrimaryContainerName
		out.Containers = append(out.Containers, shown)
		if w := c.State.Waiting; out.Message == "" && w != nil {
			out.Message = w.Message
		}
	}
	return out
}

func containerOut(c *corev1.ContainerStatus) *vernierv1.DescribeResponse_Container {
	out := &vernierv1.DescribeResponse_Container{Name: c.Name, State: "waiting", Restarts: c.RestartCount}
	switch {
	case c.State.Running != nil:
		out.State = "running"
	case c.State.Terminated != nil:
		out.State, out.Reason, out.ExitCode = "ended", c.State.Terminated.Reason, c.State.Terminated.ExitCode
	case c.State.Waiting != nil:
		out.Reason = c.State.Waiting.Reason
	}
	return out
}
