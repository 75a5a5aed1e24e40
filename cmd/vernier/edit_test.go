package main

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func TestEditChangesGPUHours(t *testing.T) {
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		args []string
		want *float64
		exit int
	}{
		"set":            {[]string{"--max-gpu-hours", "2.5"}, ptr.To(2.5), 0},
		"taken away":     {[]string{"--max-gpu-hours", "0"}, nil, 0},
		"something else": {[]string{"--max-trials", "30"}, ptr.To(8.0), 0},
		"no number":      {[]string{"--max-gpu-hours", "NaN"}, ptr.To(8.0), exitUsage},
		"below zero":     {[]string{"--max-gpu-hours", "-1"}, ptr.To(8.0), exitUsage},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			e := anExperiment()
			e.Spec.MaxGPUHours = ptr.To(8.0)
			s := &session{client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(e).Build(), namespace: e.Namespace}
			cmd := newEditCommand(func(context.Context, bool) (*session, error) { return s, nil })
			cmd.SetOut(&bytes.Buffer{})
			cmd.SetArgs(append(tc.args, e.Name))
			cmd.SilenceErrors, cmd.SilenceUsage = true, true
			if err := cmd.ExecuteContext(t.Context()); err != nil && exitCode(err) != tc.exit || err == nil && tc.exit != 0 {
				t.Fatal(err)
			}
			if err := s.client.Get(t.Context(), client.ObjectKeyFromObject(e), e); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, e.Spec.MaxGPUHours); diff != "" {
				t.Errorf("maxGPUHours (-want +got):\n%s", diff)
			}
		})
	}
}

func TestARefusedEditSpeaksInFlags(t *testing.T) {
	refused := apierrors.NewInvalid(schema.GroupKind{Kind: "Experiment"}, "charlm", field.ErrorList{
		field.Invalid(field.NewPath("spec", "maxTrialCount"), 4, "the experiment has ended with all of its 4 trials: raise maxTrialCount above that to go on")})
	for name, tc := range map[string]struct {
		err  error
		code int
		want string
	}{
		"the API server refuses it": {refused, exitInvalid, "experiment charlm was not changed: --max-trials: the experiment has ended with all of its 4 trials: raise --max-trials above that to go on"},
		"it is not reached":         {errors.New("no route"), exitFailure, "edit experiment charlm: no route"},
	} {
		err := refusedEdit("charlm", tc.err)
		if diff := cmp.Diff(tc.want, err.Error()); diff != "" || exitCode(err) != tc.code {
			t.Errorf("%s: code %d, want %d (-want +got):\n%s", name, exitCode(err), tc.code, diff)
		}
	}
}
