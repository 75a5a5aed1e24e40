package demo

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector"
)

// memory reads the objects of a demo as a client does. Writes panic in the embedded
// nil client, so the API answers that nothing can be changed before it comes to that.
type memory struct {
	demo *Demo
	client.Client
}

var errReadOnly = apierrors.NewMethodNotSupported(schema.GroupResource{Group: "kubeflow.org", Resource: "experiments"}, "change (this is a demo: its experiments are made up)")

func (memory) Create(context.Context, client.Object, ...client.CreateOption) error {
	return errReadOnly
}
func (memory) Update(context.Context, client.Object, ...client.UpdateOption) error {
	return errReadOnly
}
func (memory) Delete(context.Context, client.Object, ...client.DeleteOption) error {
	return errReadOnly
}
func (memory) Patch(context.Context, client.Object, client.Patch, ...client.PatchOption) error {
	return errReadOnly
}

// Get implements client.Reader.
func (m memory) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	m.demo.mu.RLock()
	defer m.demo.mu.RUnlock()
	for _, e := range m.demo.experiments {
		switch into := into.(type) {
		case *v1beta1.Experiment:
			if client.ObjectKeyFromObject(e.object) == key {
				e.object.DeepCopyInto(into)
				return nil
			}
		case *v1beta1.Trial:
			for _, t := range e.trials {
				if client.ObjectKeyFromObject(t) == key {
					t.DeepCopyInto(into)
					return nil
				}
			}
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{Group: "kubeflow.org"}, key.String())
}

// List implements client.Reader. What it hands out is shared; of what a demo does not
// have, such as events, there is none. A single trial has no pods: they have no logs.
func (m memory) List(_ context.Context, into client.ObjectList, options ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(options)
	m.demo.mu.RLock()
	defer m.demo.mu.RUnlock()
	switch into := into.(type) {
	case *metav1.PartialObjectMetadataList:
		into.Items = namespaces()
		return nil
	case *corev1.NodeList:
		into.Items = nodes()
		return nil
	}
	for _, e := range m.demo.experiments {
		if o.Namespace != "" && o.Namespace != e.object.Namespace {
			continue
		}
		switch into := into.(type) {
		case *v1beta1.ExperimentList:
			into.Items = append(into.Items, *e.object)
		case *v1beta1.TrialList:
			if o.FieldSelector != nil && !strings.Contains(o.FieldSelector.String(), string(e.object.UID)) {
				continue
			}
			into.Items = slices.Grow(into.Items, len(e.trials))
			for _, t := range e.trials {
				into.Items = append(into.Items, *t)
			}
		case *corev1.PodList:
			if o.LabelSelector != nil && o.LabelSelector.String() == v1beta1.LabelTrial {
				into.Items = append(into.Items, e.pods()...)
			}
		}
	}
	return nil
}

// curves computes the points of the trials of a demo.
type curves struct {
	demo *Demo
	collector.Store
}

func (c curves) find(uid string) (s source, began time.Time, err error) {
	c.demo.mu.RLock()
	defer c.demo.mu.RUnlock()
	exp, number, _ := strings.Cut(uid, "/")
	n, err := strconv.Atoi(number)
	for _, m := range c.demo.experiments {
		if err == nil && string(m.object.UID) == exp && n >= 0 && n < len(m.trials) {
			return m.sources[n], m.trials[n].Status.StartTime.Time, nil
		}
	}
	return s, began, fmt.Errorf("the demo has no trial %q", uid)
}

// Metrics implements collector.Store.
func (c curves) Metrics(context.Context, string) ([]string, error) { return metricNames, nil }

// Scan implements collector.Scanner.
func (c curves) Scan(ctx context.Context, uid string, metrics []string, yield func(collector.Attempt, collector.Point) error) error {
	s, began, err := c.find(uid)
	if err != nil {
		return err
	}
	if len(metrics) == 0 {
		metrics = metricNames
	}
	attempt := collector.Attempt{ID: uid, Started: began}
	for step := range s.steps {
		for i, name := range metrics {
			if !slices.Contains(metricNames, name) {
				continue
			}
			p := collector.Point{Metric: name, Value: s.at(name, step+1), Step: int64(step + 1), Time: began.Add(time.Duration(step) * stepTime), Source: "push", Seq: int64(step*len(metrics) + i + 1)}
			if err := yield(attempt, p); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}
