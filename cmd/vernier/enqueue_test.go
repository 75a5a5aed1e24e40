package main

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

func TestValuesChangeAPoint(t *testing.T) {
	type point = []v1beta1.ParameterAssignment
	cases := map[string]struct {
		from   point
		values []string
		want   point
		wrong  bool
	}{
		"new":         {values: []string{"lr=0.1", "text=a=b"}, want: point{{Name: "lr", Value: "0.1"}, {Name: "text", Value: "a=b"}}},
		"changed":     {from: point{{Name: "lr", Value: "0.1"}, {Name: "n", Value: "3"}}, values: []string{"lr=0.2"}, want: point{{Name: "lr", Value: "0.2"}, {Name: "n", Value: "3"}}},
		"no value":    {values: []string{"lr"}, wrong: true},
		"no name":     {values: []string{"=3"}, wrong: true},
		"as it is":    {from: point{{Name: "lr", Value: "0.1"}}, want: point{{Name: "lr", Value: "0.1"}}},
		"empty value": {values: []string{"note="}, want: point{{Name: "note"}}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := assigned(c.from, c.values)
			if diff := cmp.Diff(c.want, got); diff != "" || (err != nil) != c.wrong {
				t.Errorf("%v\n%s", err, diff)
			}
		})
	}
}

// A point that is not tried next is not said to be.
func TestWhenAQueuedPointIsTried(t *testing.T) {
	limited := func(trials int32) func(*v1beta1.Experiment) {
		return func(e *v1beta1.Experiment) { e.Status.Trials = trials }
	}
	for name, c := range map[string]struct {
		change  func(*v1beta1.Experiment)
		refused bool
		says    string
		trials  int // that are there
	}{
		"room":         {limited(23), false, "lr=0.5 next", 0},
		"no room":      {limited(24), false, "vernier edit charlm --max-trials 25", 0},
		"no limit":     {func(e *v1beta1.Experiment) { e.Spec.MaxTrialCount, e.Status.Trials = nil, 99 }, false, "lr=0.5 next", 0},
		"room for one": {func(e *v1beta1.Experiment) { limited(23)(e); e.Spec.InitialTrials = []v1beta1.InitialTrial{{ID: "a"}} }, false, "vernier edit charlm --max-trials 25", 0},
		"trials that its status does not count yet": {limited(23), false, "vernier edit charlm --max-trials 25", 24},
		"behind another": {func(e *v1beta1.Experiment) {
			limited(2)(e)
			e.Spec.InitialTrials = []v1beta1.InitialTrial{{ID: "a"}, {}}
		}, false, "after 1 other", 0},
		"ended": {func(e *v1beta1.Experiment) {
			e.MarkSucceeded(v1beta1.ReasonExperimentMaxTrialsReached, "", metav1.NewTime(noon))
		}, true, "has ended", 0},
		"ended, may go on": {func(e *v1beta1.Experiment) {
			e.MarkSucceeded(v1beta1.ReasonExperimentMaxTrialsReached, "", metav1.NewTime(noon))
			e.Spec.ResumePolicy, e.Status.Trials = v1beta1.LongRunning, 24
			e.Spec.InitialTrials = []v1beta1.InitialTrial{{ID: "a"}}
		}, false, "its limit of trials is 26 now", 0},
		"a service": {func(e *v1beta1.Experiment) { e.Spec.Algorithm.AlgorithmName = "elsewhere" }, true, "service", 0},
	} {
		t.Run(name, func(t *testing.T) {
			scheme, err := newScheme()
			if err != nil {
				t.Fatal(err)
			}
			e := anExperiment()
			e.UID = "uid"
			c.change(e)
			api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(e)
			for number := range c.trials {
				trial := aTrial(number, v1beta1.TrialRunning, "")
				trial.Labels[v1beta1.LabelExperiment] = e.Name
				trial.OwnerReferences = []metav1.OwnerReference{{UID: e.UID, Controller: ptr.To(true)}}
				api.WithObjects(&trial)
			}
			open := func(context.Context, bool) (*session, error) {
				return &session{client: api.Build(), namespace: e.Namespace}, nil
			}
			var out strings.Builder
			err = enqueue(t.Context(), e.Name, []string{"lr=0.5"}, streams{out: &out}, open)
			said := out.String()
			if err != nil {
				said = err.Error()
			}
			if (err != nil) != c.refused || !strings.Contains(said, c.says) {
				t.Errorf("%v, %q; want %q", err, said, c.says)
			}
		})
	}
}

func TestAPointIsQueuedOnceThoughTheExperimentChanges(t *testing.T) {
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	conflicts := 2
	e := anExperiment()
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(e).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if conflicts--; conflicts >= 0 {
				return apierrors.NewConflict(schema.GroupResource{Resource: "experiments"}, o.GetName(), nil)
			}
			return c.Patch(ctx, o, patch, opts...)
		},
	}).Build()
	open := func(context.Context, bool) (*session, error) { return &session{client: c, namespace: e.Namespace}, nil }
	if err := enqueue(t.Context(), e.Name, []string{"lr=0.5"}, streams{out: io.Discard}, open); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(e), e); err != nil {
		t.Fatal(err)
	}
	if queued := e.Spec.InitialTrials; len(queued) != 1 || queued[0].ID == "" || queued[0].ParameterAssignments[0].Value != "0.5" {
		t.Errorf("queued: %+v", queued)
	}
}
