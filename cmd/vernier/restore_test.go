package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/store"
)

const backedUp = `apiVersion: v1
kind: List
items:
- {apiVersion: kubeflow.org/v1beta1, kind: Trial, metadata: {namespace: default, name: exp-0000, uid: old, resourceVersion: "7"}}
- {apiVersion: kubeflow.org/v1beta1, kind: Trial, metadata: {namespace: default, name: exp-0001, uid: gone, deletionTimestamp: "2026-01-01T00:00:00Z"}}
`

// An experiment that admission refuses keeps nothing else from being restored.
func TestRestorePassesOverARefusedExperiment(t *testing.T) {
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if o.GetName() == "refused" {
				return apierrors.NewInvalid(v1beta1.GroupVersion.WithKind("Experiment").GroupKind(), o.GetName(), nil)
			}
			return c.Create(ctx, o, opts...)
		}}).Build()
	const objects = backedUp + `- {apiVersion: kubeflow.org/v1beta1, kind: Experiment, metadata: {namespace: default, name: refused, uid: e1}}
- {apiVersion: kubeflow.org/v1beta1, kind: Trial, metadata: {namespace: default, name: refused-0000, uid: t1, ownerReferences: [{apiVersion: kubeflow.org/v1beta1, kind: Experiment, name: refused, uid: e1}]}}
- {apiVersion: kubeflow.org/v1beta1, kind: Experiment, metadata: {namespace: default, name: valid, uid: e2}}
`
	file := filepath.Join(t.TempDir(), "objects.yaml")
	if err := os.WriteFile(file, []byte(objects), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := newRestoreCommand(func(context.Context, bool) (*session, error) { return &session{client: c}, nil })
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs([]string{file})
	if err := cmd.ExecuteContext(t.Context()); err == nil {
		t.Error("that an experiment was refused is no error")
	} else {
		requireText(t, err.Error(), "default/refused", "1 experiments", "1 suggestions and trials")
	}
	requireText(t, out.String(), "2 objects are restored")
	var trials v1beta1.TrialList
	if err := c.List(t.Context(), &trials); err != nil || len(trials.Items) != 1 {
		t.Errorf("trials are %+v, %v", trials.Items, err)
	}
}

// One that is made, and whose state cannot be, would begin anew without its trials.
func TestRestoreEndsWhereAnExperimentIsHalfMade(t *testing.T) {
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			o.SetUID(types.UID("new-" + o.GetName()))
			delete(o.(*unstructured.Unstructured).Object, "status") // as the API server
			return c.Create(ctx, o, opts...)
		},
		SubResourceUpdate: func(context.Context, client.Client, string, client.Object, ...client.SubResourceUpdateOption) error {
			return apierrors.NewForbidden(v1beta1.GroupVersion.WithResource("experiments").GroupResource(), "e", nil)
		}}).Build()
	const objects = `{apiVersion: v1, kind: List, items: [
  {apiVersion: kubeflow.org/v1beta1, kind: Experiment, metadata: {namespace: default, name: a, uid: a}, status: {trials: 3}},
  {apiVersion: kubeflow.org/v1beta1, kind: Experiment, metadata: {namespace: default, name: b, uid: b}, status: {trials: 3}}]}`
	file := filepath.Join(t.TempDir(), "objects.yaml")
	if err := os.WriteFile(file, []byte(objects), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := newRestoreCommand(func(context.Context, bool) (*session, error) { return &session{client: c}, nil })
	cmd.SetArgs([]string{file})
	if err := cmd.ExecuteContext(t.Context()); err == nil {
		t.Error("that a state cannot be made is no error")
	} else {
		requireText(t, err.Error(), "restore Experiment default/a: experiments", "forbidden")
	}
	var made v1beta1.ExperimentList
	if err := c.List(t.Context(), &made); err != nil || len(made.Items) != 1 {
		t.Errorf("%d experiments are there, %v: want the first alone", len(made.Items), err)
	}
}

// What is made is tested with an API server, in cmd/manager.
func TestRestoreGivesCurvesTheNewUIDs(t *testing.T) {
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			o.SetUID(types.UID("new-" + o.GetName()))
			return c.Create(ctx, o, opts...)
		}}).Build()
	dir := t.TempDir()
	file, from, to := filepath.Join(dir, "objects.yaml"), "sqlite:"+filepath.Join(dir, "from.db"), "sqlite:"+filepath.Join(dir, "to.db")
	if err := os.WriteFile(file, []byte(backedUp), 0o600); err != nil {
		t.Fatal(err)
	}
	source, err := store.Open(t.Context(), from)
	if err != nil {
		t.Fatal(err)
	}
	points := []collector.Point{{Metric: "loss", Value: 0.5, Time: time.Unix(1, 0), Source: "stdout"}}
	for _, uid := range []string{"old", "gone"} {
		if err := source.Append(t.Context(), collector.TrialID{Namespace: "default", Name: "exp-" + uid, UID: uid}, collector.Attempt{ID: "pod/0"}, points); err != nil {
			t.Fatal(err)
		}
	}
	if err := source.Close(); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) (string, error) {
		cmd := newRestoreCommand(func(context.Context, bool) (*session, error) { return &session{client: c}, nil })
		var out bytes.Buffer
		cmd.SetOut(&out)
		cmd.SetErr(&out)
		cmd.SetArgs(append([]string{file}, args...))
		err := cmd.ExecuteContext(t.Context())
		return out.String(), err
	}
	if out, err := run("--from", from); exitCode(err) != exitUsage {
		t.Errorf("without --to: %v\n%s", err, out)
	}
	for range 2 {
		out, err := run("--from", from, "--to", to)
		if err != nil {
			t.Fatal(err)
		}
		requireText(t, out, "1 objects are restored", "1 trials with 1 points are equal in both stores")
	}
	target, err := store.Open(t.Context(), to)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = target.Close() }()
	stored, err := target.Inventory(t.Context())
	if err != nil || len(stored) != 1 || stored[0].UID != "new-exp-0000" {
		t.Errorf("stored are %+v, %v", stored, err)
	}
}
