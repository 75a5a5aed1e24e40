package main

import (
	"context"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
