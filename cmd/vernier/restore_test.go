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

// emptyCluster is an API server with ways of its own.
func emptyCluster(t *testing.T, ways interceptor.Funcs) client.Client {
	t.Helper()
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(ways).Build()
}

// restored runs the command with objects that were backed up.
func restored(t *testing.T, c client.Client, objects string, args ...string) (string, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "objects.yaml")
	if err := os.WriteFile(file, []byte(objects), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := newRestoreCommand(func(context.Context, bool) (*session, error) { return &session{client: c}, nil })
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(append([]string{file}, args...))
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

// An experiment that admission refuses keeps nothing else from being restored.
func TestRestorePassesOverARefusedExperiment(t *testing.T) {
	c := emptyCluster(t, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if o.GetName() == "refused" {
				return apierrors.NewInvalid(v1beta1.GroupVersion.WithKind("Experiment").GroupKind(), o.GetName(), nil)
			}
			return c.Create(ctx, o, opts...)
		}})
	const objects = backedUp + `- {apiVersion: kubeflow.org/v1beta1, kind: Experiment, metadata: {namespace: default, name: refused, uid: e1}}
- {apiVersion: kubeflow.org/v1beta1, kind: Trial, metadata: {namespace: default, name: refused-0000, uid: t1, ownerReferences: [{apiVersion: kubeflow.org/v1beta1, kind: Experiment, name: refused, uid: e1}]}}
- {apiVersion: kubeflow.org/v1beta1, kind: Experiment, metadata: {namespace: default, name: valid, uid: e2}}
`
	out, err := restored(t, c, objects)
	if err == nil {
		t.Fatal("that an experiment was refused is no error")
	}
	requireText(t, err.Error(), "default/refused", "1 experiments", "1 suggestions and trials")
	requireText(t, out, "2 objects are restored")
	var trials v1beta1.TrialList
	if err := c.List(t.Context(), &trials); err != nil || len(trials.Items) != 1 {
		t.Errorf("trials are %+v, %v", trials.Items, err)
	}
}

// One that is made, and whose state cannot be, would begin anew without its trials.
func TestRestoreEndsWhereAnExperimentIsHalfMade(t *testing.T) {
	c := emptyCluster(t, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			o.SetUID(types.UID("new-" + o.GetName()))
			delete(o.(*unstructured.Unstructured).Object, "status") // as the API server
			return c.Create(ctx, o, opts...)
		},
		SubResourceUpdate: func(context.Context, client.Client, string, client.Object, ...client.SubResourceUpdateOption) error {
			return apierrors.NewForbidden(v1beta1.GroupVersion.WithResource("experiments").GroupResource(), "e", nil)
		}})
	const objects = `{apiVersion: v1, kind: List, items: [
  {apiVersion: kubeflow.org/v1beta1, kind: Experiment, metadata: {namespace: default, name: a, uid: a}, status: {trials: 3}},
  {apiVersion: kubeflow.org/v1beta1, kind: Experiment, metadata: {namespace: default, name: b, uid: b}, status: {trials: 3}}]}`
	_, err := restored(t, c, objects)
	if err == nil {
		t.Fatal("that a state cannot be made is no error")
	}
	requireText(t, err.Error(), "restore Experiment default/a: experiments", "forbidden")
	var made v1beta1.ExperimentList
	if err := c.List(t.Context(), &made); err != nil || len(made.Items) != 1 {
		t.Errorf("%d experiments are there, %v: want the first alone", len(made.Items), err)
	}
}

// What is made is tested with an API server, in cmd/manager.
func TestRestoreGivesCurvesTheNewUIDs(t *testing.T) {
	c := emptyCluster(t, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			o.SetUID(types.UID("new-" + o.GetName()))
			return c.Create(ctx, o, opts...)
		}})
	dir := t.TempDir()
	from, to := "sqlite:"+filepath.Join(dir, "from.db"), "sqlite:"+filepath.Join(dir, "to.db")
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
	if out, err := restored(t, c, backedUp, "--from", from); exitCode(err) != exitUsage {
		t.Errorf("without --to: %v\n%s", err, out)
	}
	for range 2 {
		out, err := restored(t, c, backedUp, "--from", from, "--to", to)
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
