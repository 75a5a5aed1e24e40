package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	vernierv1 "github.com/vernier-ml/vernier/api/proto/vernier/v1"
	"github.com/vernier-ml/vernier/api/v1beta1"
)

func TestStop(t *testing.T) {
	const running, succeeded = v1beta1.TrialRunning, v1beta1.TrialSucceeded
	tests := map[string]struct {
		args   []string
		trials []v1beta1.TrialConditionType
		says   string
		code   int
		// stopped are the trials that are asked to stop, limit the maxTrialCount.
		stopped []string
		limit   int32
	}{
		"an experiment, whose trials may finish": {[]string{"charlm"}, []v1beta1.TrialConditionType{succeeded, running},
			"experiment charlm makes no new trials: 1/2 done, 1 running\n", 0, nil, 2},
		"an experiment with its trial": {[]string{"charlm", "--now"}, []v1beta1.TrialConditionType{succeeded, running},
			"experiment charlm makes no new trials: 1/2 done, 1 running; the one that runs was asked to stop\n", 0, []string{"charlm-0001"}, 2},
		"an experiment with its trials": {[]string{"charlm", "--now"}, []v1beta1.TrialConditionType{running, running},
			"experiment charlm makes no new trials: 0/2 done, 2 running; the 2 that run were asked to stop\n", 0, []string{"charlm-0000", "charlm-0001"}, 2},
		"a trial": {[]string{"charlm/1"}, []v1beta1.TrialConditionType{running, running},
			"trial charlm-0001 was asked to stop: what it has reported is kept, and its experiment goes on\n", 0, []string{"charlm-0001"}, 24},
		"a trial that has ended": {[]string{"charlm/0"}, []v1beta1.TrialConditionType{succeeded, running},
			"trial charlm-0000 has ended already: Succeeded\n", 0, nil, 24},
		"a trial that is not there": {[]string{"charlm/7"}, []v1beta1.TrialConditionType{running}, "", exitNotFound, nil, 24},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			scheme, err := newScheme()
			if err != nil {
				t.Fatal(err)
			}
			e := anExperiment()
			e.UID = "one"
			builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(e)
			for i, state := range test.trials {
				trial := aTrial(i, state, "0.5")
				trial.Labels[v1beta1.LabelExperiment] = e.Name
				trial.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(e, v1beta1.GroupVersion.WithKind("Experiment"))}
				builder.WithObjects(&trial)
			}
			s := &session{client: builder.Build(), namespace: e.Namespace}
			cmd := newStopCommand(func(context.Context, bool) (*session, error) { return s, nil })
			var out bytes.Buffer
			cmd.SetOut(&out)
			cmd.SetArgs(test.args)
			cmd.SilenceErrors, cmd.SilenceUsage = true, true
			if err := cmd.ExecuteContext(t.Context()); exitCode(err) != test.code {
				t.Fatalf("code %d (%v), want %d", exitCode(err), err, test.code)
			}
			v, err := loadExperiment(t.Context(), s.client, types.NamespacedName{Namespace: e.Namespace, Name: e.Name})
			if err != nil {
				t.Fatal(err)
			}
			var stopped []string
			for _, trial := range v.Trials {
				if trial.Object.AskedToStop() {
					stopped = append(stopped, trial.Name)
				}
			}
			if diff := cmp.Diff(test.says, out.String()) + cmp.Diff(test.stopped, stopped) + cmp.Diff(test.limit, *v.Experiment.Spec.MaxTrialCount); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The role vernier-edit has no right to patch trials, but one that the API knows.
func TestStopByTheAPI(t *testing.T) {
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	trial := aTrial(1, v1beta1.TrialRunning, "0.5")
	trial.Labels[v1beta1.LabelExperiment] = "charlm"
	c := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(_ context.Context, _ client.WithWatch, o client.Object, _ client.Patch, _ ...client.PatchOption) error {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "trials"}, o.GetName(), nil)
		},
	}).Build()
	t.Setenv("VERNIER_SERVER", "")
	err = stopTrial(t.Context(), &session{client: c}, &trial, "enough")
	if exitCode(err) != exitNotAllowed {
		t.Fatalf("code %d (%v), want %d", exitCode(err), err, exitNotAllowed)
	}
	requireText(t, err.Error(), "stop trial charlm-0001", "VERNIER_SERVER")

	var asked vernierv1.StopTrialRequest
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		if err == nil && r.URL.Path == "/vernier.v1.ExperimentService/StopTrial" && r.Header.Get("Authorization") == "Bearer mine" {
			err = proto.Unmarshal(text, &asked)
		}
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/proto")
	}))
	t.Cleanup(server.Close)
	t.Setenv("VERNIER_SERVER", server.URL)
	t.Setenv("VERNIER_TOKEN", "mine")
	if err := stopTrial(t.Context(), &session{client: c}, &trial, "enough"); err != nil {
		t.Fatal(err)
	}
	want := vernierv1.StopTrialRequest{Name: "namespaces/default/experiments/charlm/trials/charlm-0001", Reason: "enough"}
	if diff := cmp.Diff(&want, &asked, protocmp.Transform()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
