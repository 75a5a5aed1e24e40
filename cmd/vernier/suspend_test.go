package main

import (
	"bytes"
	"context"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/vernier-ml/vernier/api/v1beta1"
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

func TestWhatHasEndedIsNotResumed(t *testing.T) {
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	stopped := anExperiment()
	stopped.Annotations = map[string]string{v1beta1.AnnotationEnd: v1beta1.EndStop}
	completed := ended(anExperiment(), v1beta1.ExperimentSucceeded, "ExperimentMaxTrialsReached", "")
	completed.Status.Conditions[1].Status = "True"
	for name, e := range map[string]*v1beta1.Experiment{"stopped": stopped, "completed": completed} {
		t.Run(name, func(t *testing.T) {
			s := &session{client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(e).Build(), namespace: e.Namespace}
			cmd := newSuspendCommand(func(context.Context, bool) (*session, error) { return s, nil }, false)
			cmd.SetArgs([]string{e.Name})
			cmd.SilenceErrors, cmd.SilenceUsage = true, true
			if err := cmd.ExecuteContext(t.Context()); exitCode(err) != exitConflict {
				t.Errorf("got %v", err)
			}
		})
	}
}
