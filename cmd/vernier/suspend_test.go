package main

import (
	"bytes"
	"context"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func TestSuspendAndResume(t *testing.T) {
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	e := anExperiment()
	s := &session{client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(e).Build(), namespace: e.Namespace}
	for _, suspend := range []bool{true, false} {
		run := func(name string) error {
			cmd := newSuspendCommand(func(context.Context, bool) (*session, error) { return s, nil }, suspend)
			cmd.SetOut(&bytes.Buffer{})
			cmd.SetArgs([]string{name})
			cmd.SilenceErrors, cmd.SilenceUsage = true, true
			return cmd.ExecuteContext(t.Context())
		}
		if err := run(e.Name); err != nil {
			t.Fatal(err)
		}
		if err := s.client.Get(t.Context(), client.ObjectKeyFromObject(e), e); err != nil || e.Spec.Suspend != suspend {
			t.Errorf("suspend is %v, %v; want %v", e.Spec.Suspend, err, suspend)
		}
		if shown := newExperimentView(e, nil).State == stateSuspended; shown != suspend {
			t.Errorf("shown as suspended: %v, want %v", shown, suspend)
		}
		if err := run("absent"); exitCode(err) != exitNotFound {
			t.Errorf("of no experiment: %v", err)
		}
	}
}
