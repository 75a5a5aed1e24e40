package main

import (
	"bytes"
	"context"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/vernier-ml/vernier/controllers/katib"
)

// The migration itself is tested with an API server, in cmd/manager.
func TestMigrationIsShownBeforeItIsDone(t *testing.T) {
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	unable := anExperiment()
	unable.Spec.Algorithm.AlgorithmName = "hyperdrive"
	unable.Finalizers = []string{"update-prometheus-metrics"}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(unable,
		&admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "katib.kubeflow.org"}},
		&admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "vernier-webhook"}}).Build()
	run := func(args ...string) (string, error) {
		root := newMigrateCommand(func(context.Context, bool) (*session, error) { return &session{client: c}, nil })
		var out bytes.Buffer
		root.SetOut(&out)
		root.SetErr(&out)
		root.SetArgs(append([]string{"katib"}, args...))
		err := root.ExecuteContext(t.Context())
		return out.String(), err
	}
	shown, err := run()
	if err != nil {
		t.Error(err)
	}
	requireText(t, shown, "keeps Vernier from acting", "1, 1 have not ended", "default/charlm: hyperdrive", "cannot go on under Vernier", "To do        1. Delete the Validating", "Nothing was changed")
	for _, args := range [][]string{{"--yes"}, {"--yes", "--restart-running"}} {
		if out, err := run(args...); exitCode(err) != exitConflict {
			t.Errorf("%q: %v\n%s", args, err, out)
		}
	}
	if s, err := katib.Inspect(t.Context(), c); err != nil || !s.Validating {
		t.Errorf("it was done: %+v, %v", s, err)
	}
	if err := c.Delete(t.Context(), unable); err != nil {
		t.Fatal(err)
	}
	done, err := run("--yes", "--restart-running")
	if err == nil {
		done, err = run()
	}
	if err != nil {
		t.Error(err)
	}
	requireText(t, done, "Katib        is not installed", "Nothing is left to do")
}
