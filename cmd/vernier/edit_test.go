package main

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/vernier-ml/vernier/api/v1beta1"
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

func TestALimitOfTimeIsOfNewTrials(t *testing.T) {
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		args   []string
		states []v1beta1.TrialConditionType
		want   string
	}{
		"two run": {[]string{"--max-trial-duration", "5s"}, []v1beta1.TrialConditionType{v1beta1.TrialSucceeded, v1beta1.TrialRunning, v1beta1.TrialRunning},
			"experiment charlm: 1/24 done, 2 running\n--max-trial-duration holds for new trials; 2 trials that run keep theirs, and vernier stop charlm/1 ends one\n"},
		"none runs":      {[]string{"--max-trial-duration", "5s"}, []v1beta1.TrialConditionType{v1beta1.TrialSucceeded}, "experiment charlm: 1/24 done, 0 running\n"},
		"something else": {[]string{"--parallel", "3"}, []v1beta1.TrialConditionType{v1beta1.TrialRunning}, "experiment charlm: 0/24 done, 1 running\n"},
	} {
		t.Run(name, func(t *testing.T) {
			e := anExperiment()
			e.UID = "1"
			objects := []client.Object{e}
			for i, state := range tc.states {
				trial := aTrial(i, state, "0.5")
				trial.Labels[v1beta1.LabelExperiment] = "charlm"
				trial.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(e, v1beta1.GroupVersion.WithKind("Experiment"))}
				objects = append(objects, &trial)
			}
			s := &session{client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build(), namespace: "default"}
			cmd, out := newEditCommand(func(context.Context, bool) (*session, error) { return s, nil }), &bytes.Buffer{}
			cmd.SetOut(out)
			cmd.SetArgs(append(tc.args, "charlm"))
			if err := cmd.ExecuteContext(t.Context()); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, out.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestARefusedEditSpeaksInFlags(t *testing.T) {
	spec := field.NewPath("spec")
	refused := func(causes ...*field.Error) error {
		return apierrors.NewInvalid(schema.GroupKind{Kind: "Experiment"}, "charlm", causes)
	}
	for name, tc := range map[string]struct {
		err  error
		code int
		want string
	}{
		"a budget": {refused(field.Invalid(spec.Child("maxFailedTrialCount"), 3, "11 trials have failed: raise maxFailedTrialCount above that to go on")), exitInvalid,
			"experiment charlm was not changed: --max-failed 3: 11 trials have failed: raise --max-failed above that to go on"},
		"several, by the API server": {refused(
			field.Invalid(spec.Child("maxTrialCount"), 0, "spec.maxTrialCount in body should be greater than or equal to 1"),
			field.Invalid(spec, field.OmitValueType{}, "parallelTrialCount must not be above maxTrialCount"),
			field.Invalid(nil, nil, "some validation rules were not checked because the object was invalid")), exitInvalid,
			"experiment charlm was not changed: --max-trials 0: it should be greater than or equal to 1; --parallel must not be above --max-trials"},
		"an ended one": {refused(field.Forbidden(spec.Child("maxTrialCount"), "the experiment has failed and cannot go on")), exitInvalid,
			"experiment charlm was not changed: --max-trials: Forbidden: the experiment has failed and cannot go on"},
		"another field, with a colon in its value": {refused(field.Invalid(spec.Child("trialTemplate"), "a: b", "use a c: d")), exitInvalid,
			`experiment charlm was not changed: spec.trialTemplate: Invalid value: "a: b": use a c: d`},
		"it is not there":   {apierrors.NewNotFound(schema.GroupResource{Resource: "experiments"}, "charlm"), exitNotFound, `edit experiment charlm: experiments "charlm" not found`},
		"it is not reached": {errors.New("no route"), exitFailure, "edit experiment charlm: no route"},
	} {
		err := refusedEdit("charlm", tc.err)
		if diff := cmp.Diff(tc.want, err.Error()); diff != "" || exitCode(err) != tc.code {
			t.Errorf("%s: code %d, want %d (-want +got):\n%s", name, exitCode(err), tc.code, diff)
		}
	}
}
