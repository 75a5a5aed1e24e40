package api

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"path"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	vernierv1 "github.com/vernier-ml/vernier/api/proto/vernier/v1"
	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector/store"
	"github.com/vernier-ml/vernier/controllers/experiment"
	"github.com/vernier-ml/vernier/controllers/katib"
)

var noon = time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)

const parent = "namespaces/ml/experiments/exp"

// serve is the service of one user, at noon, with objects in its cluster.
func serve(t *testing.T, catch interceptor.Funcs, objects ...client.Object) *service {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1beta1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&v1beta1.Trial{}, &v1beta1.Experiment{}).
		WithIndex(&v1beta1.Trial{}, "experiment", func(o client.Object) []string { return []string{string(metav1.GetControllerOf(o).UID)} }).
		WithIndex(&corev1.Event{}, "involvedObject.name", func(o client.Object) []string { return []string{o.(*corev1.Event).InvolvedObject.Name} }).
		WithInterceptorFuncs(catch).Build()
	points, err := store.Open(t.Context(), "memory:")
	if err != nil {
		t.Fatal(err)
	}
	now := func() time.Time { return noon }
	return newService(Config{
		Client: c, Reader: c, Store: points, Access: OneToken("any"), Now: now, OnEnd: func(context.Context, *v1beta1.Trial, *v1beta1.TrialStatus) {},
		Experiments: experiment.New(experiment.Options{Client: c, Reader: c, Now: now}), Changes: &Changes{},
	})
}

// runs is a trial that a worker runs, and its experiment, of which no other may run.
func runs(t *testing.T) (*v1beta1.Experiment, *v1beta1.Trial) {
	t.Helper()
	exp := &v1beta1.Experiment{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "exp", UID: "1"}, Spec: v1beta1.ExperimentSpec{
		Parameters: []v1beta1.ParameterSpec{{Name: "lr", ParameterType: v1beta1.ParameterTypeDouble, FeasibleSpace: v1beta1.FeasibleSpace{Min: "0", Max: "1"}}},
		Objective:  &v1beta1.ObjectiveSpec{Type: v1beta1.ObjectiveTypeMinimize, ObjectiveMetricName: "loss"},
		Algorithm:  &v1beta1.AlgorithmSpec{AlgorithmName: "random"}, ParallelTrialCount: ptr.To[int32](1),
	}}
	exp.MarkCreated("", metav1.NewTime(noon))
	trial := &v1beta1.Trial{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ml", Name: "exp-0000", UID: "2", Labels: map[string]string{v1beta1.LabelExperiment: "exp", v1beta1.LabelTrialNumber: "0"},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(exp, v1beta1.GroupVersion.WithKind("Experiment"))},
	}, Spec: v1beta1.TrialSpec{Objective: exp.Spec.Objective}}
	if err := trial.SetLease(v1beta1.Lease{Worker: "w", Attempt: 1, Seconds: 60, Started: noon, Expires: noon.Add(time.Minute)}); err != nil {
		t.Fatal(err)
	}
	return exp, trial
}

// A client that guesses tokens or names must not turn every call of the others into a review.
func TestAnswersAreRememberedHoweverManyThereWere(t *testing.T) {
	asked := 0
	access := Reviews(interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
			asked++
			switch review := o.(type) {
			case *authenticationv1.TokenReview:
				review.Status.Authenticated = true
			case *authorizationv1.SubjectAccessReview:
				review.Status.Allowed = true
			}
			return nil
		}}))
	ctx := t.Context()
	with := func(token string) *http.Request {
		return &http.Request{Header: http.Header{"Authorization": {"Bearer " + token}}}
	}
	for i := range 2 * maxAnswers {
		_, _, err1 := access.Authenticate(ctx, with(fmt.Sprint("guess", i)))
		_, err2 := access.Allowed(ctx, authenticationv1.UserInfo{Username: "eve"}, authorizationv1.ResourceAttributes{Name: fmt.Sprint(i)})
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
	}
	asked = 0
	for range 3 {
		_, known, err1 := access.Authenticate(ctx, with("mine"))
		allowed, err2 := access.Allowed(ctx, authenticationv1.UserInfo{Username: "me"}, authorizationv1.ResourceAttributes{})
		if err := errors.Join(err1, err2); err != nil || !known || !allowed {
			t.Fatal(known, allowed, err)
		}
	}
	if asked != 2 {
		t.Errorf("the API server was asked %d times, want once for each answer", asked)
	}
}

func TestACallerThatIsGoneIsNotWaitedFor(t *testing.T) {
	ctx, gone := context.WithCancel(t.Context())
	looks := 0
	exp, trial := runs(t)
	s := serve(t, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, o ...client.ListOption) error {
		if looks++; looks > 10 {
			return errors.New("it looks again and again")
		}
		gone()
		return c.List(ctx, list, o...)
	}}, exp, trial)
	_, err := s.SuggestTrials(ctx, &vernierv1.SuggestTrialsRequest{Parent: parent, MaxWait: durationpb.New(longestWait)})
	if connect.CodeOf(err) != connect.CodeCanceled || looks != 1 {
		t.Errorf("it looked %d times: %v", looks, err)
	}
}

func TestOneWhoGetsNoTrialIsToldWhy(t *testing.T) {
	down := &v1beta1.Suggestion{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "exp"}, Spec: v1beta1.SuggestionSpec{Requests: 9}}
	down.MarkDeploymentNotReady("the service does not answer", metav1.NewTime(noon))
	for reason, f := range map[string]func(e *v1beta1.Experiment){
		"PARALLEL":  func(*v1beta1.Experiment) {},
		"SUSPENDED": func(e *v1beta1.Experiment) { e.Spec.Suspend = true },
		"SERVICE": func(e *v1beta1.Experiment) {
			e.Spec.Algorithm.AlgorithmName, e.Spec.ParallelTrialCount = "my-own", ptr.To[int32](2)
		},
		"ENDED": func(e *v1beta1.Experiment) {
			e.MarkSucceeded(v1beta1.ReasonExperimentGoalReached, "goal", metav1.NewTime(noon))
		},
	} {
		exp, trial := runs(t)
		f(exp)
		down.OwnerReferences = trial.OwnerReferences
		s := serve(t, interceptor.Funcs{}, exp, trial, down)
		got, err := s.SuggestTrials(t.Context(), &vernierv1.SuggestTrialsRequest{Parent: parent})
		if err != nil || len(got.GetTrials()) > 0 || got.GetReason() != reason || got.GetMessage() == "" || (got.GetRetryAfter() == nil) != (reason == "ENDED") {
			t.Errorf("%s: %v, %v", reason, got, err)
		}
	}
}

func TestWhyATrialFailedIsCut(t *testing.T) {
	for name, r := range map[string]*vernierv1.CompleteTrialRequest{
		"failed":     {Outcome: &vernierv1.CompleteTrialRequest_Failed_{Failed: &vernierv1.CompleteTrialRequest_Failed{}}},
		"infeasible": {Outcome: &vernierv1.CompleteTrialRequest_Infeasible_{Infeasible: &vernierv1.CompleteTrialRequest_Infeasible{}}},
	} {
		t.Run(name, func(t *testing.T) {
			exp, trial := runs(t)
			s := serve(t, interceptor.Funcs{}, exp, trial)
			long := "no room " + strings.Repeat("é", 1<<20)
			r.Name, r.Attempt = parent+"/trials/exp-0000", 1
			if f := r.GetFailed(); f != nil {
				f.Reason = long
			} else {
				r.GetInfeasible().Reason = long
			}
			got, err := s.CompleteTrial(t.Context(), r)
			if err != nil || !strings.Contains(got.GetMessage(), "no room é") || len(got.GetMessage()) > 2*maxReason {
				t.Errorf("%d bytes: %.100s, %v", len(got.GetMessage()), got.GetMessage(), err)
			}
		})
	}
}

func TestTheEndOfATrialIsToldOnce(t *testing.T) {
	exp, trial := runs(t)
	s := serve(t, interceptor.Funcs{}, exp, trial)
	var told []string
	s.OnEnd = func(_ context.Context, t *v1beta1.Trial, before *v1beta1.TrialStatus) {
		told = append(told, fmt.Sprint(t.Name, t.State(), before.CompletionTime == nil))
	}
	for range 2 { // it may be sent again
		r := &vernierv1.CompleteTrialRequest{Name: parent + "/trials/exp-0000", Attempt: 1, Outcome: &vernierv1.CompleteTrialRequest_Succeeded_{
			Succeeded: &vernierv1.CompleteTrialRequest_Succeeded{Values: map[string]float64{"loss": 1}}}}
		if _, err := s.CompleteTrial(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{fmt.Sprint("exp-0000", v1beta1.TrialSucceeded, true)}, told); diff != "" {
		t.Error(diff)
	}
}

func TestNoTrialIsHandedOutBesideKatib(t *testing.T) {
	exp, _ := runs(t)
	s := serve(t, interceptor.Funcs{}, exp)
	scheme := runtime.NewScheme()
	if err := admissionv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	installed := fake.NewClientBuilder().WithScheme(scheme).WithObjects(&admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "katib.kubeflow.org"}}).Build()
	var err error
	if s.Experiments.Katib, err = katib.Look(t.Context(), installed); err != nil {
		t.Fatal(err)
	}
	if got, err := s.SuggestTrials(t.Context(), &vernierv1.SuggestTrialsRequest{Parent: parent}); connect.CodeOf(err) != connect.CodeFailedPrecondition {
		t.Errorf("%v, %v", got, err)
	}
}

func TestCreatingTheSameExperimentAgainIsNoError(t *testing.T) {
	job := map[string]any{"apiVersion": "batch/v1", "kind": "Job", "spec": map[string]any{"template": map[string]any{"spec": map[string]any{
		"restartPolicy": "Never", "containers": []any{map[string]any{"name": "main", "image": "i", "command": []any{"sh", "-c", "train && test > log"}}}}}}}
	for name, template := range map[string]map[string]any{
		"outside":       nil,
		"inline":        {"primaryContainerName": "main", "trialSpec": job},
		"a ConfigMap's": {"primaryContainerName": "main", "configMap": map[string]any{"configMapName": "templates", "templatePath": "job"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				if exp := o.(*v1beta1.Experiment); exp.Spec.TrialTemplate != nil && exp.Spec.TrialTemplate.ConfigMap != nil {
					exp.Spec.TrialTemplate.ConfigMap.ConfigMapNamespace = exp.Namespace // as admission does
				}
				return c.Create(ctx, o, opts...)
			}})
			fields := map[string]any{"maxTrialCount": 3.0}
			if template != nil {
				fields["trialTemplate"] = template
			}
			spec, err := structpb.NewStruct(fields)
			if err != nil {
				t.Fatal(err)
			}
			create := &vernierv1.CreateExperimentRequest{Experiment: &vernierv1.Experiment{Name: parent, Spec: spec}}
			for range 2 {
				if _, err := s.CreateExperiment(t.Context(), create); err != nil {
					t.Fatal(err)
				}
			}
			spec.Fields["maxTrialCount"] = structpb.NewNumberValue(4)
			if _, err := s.CreateExperiment(t.Context(), create); connect.CodeOf(err) != connect.CodeAlreadyExists {
				t.Errorf("another one: %v", err)
			}
		})
	}
}

func TestTheGreatestStepIsRefused(t *testing.T) {
	report := func(step int64) error {
		_, err := readPoints([]*vernierv1.Measurement{{Step: step, Values: map[string]float64{"loss": 1}}}, noon)
		return err
	}
	if err := report(math.MaxInt64); connect.CodeOf(err) != connect.CodeInvalidArgument {
		t.Errorf("2^63-1: %v", err)
	}
	if err := report(math.MaxInt64 - 1); err != nil {
		t.Errorf("2^63-2: %v", err)
	}
}

// Page by page, of one trial each.
func TestTrialsAreListedByState(t *testing.T) {
	exp, trial := runs(t)
	failed := trial.DeepCopy()
	failed.Name, failed.UID, failed.Labels[v1beta1.LabelTrialNumber] = "exp-0001", "3", "1"
	failed.MarkFailed("out of memory", metav1.NewTime(noon))
	s := serve(t, interceptor.Funcs{}, exp, trial, failed)
	for name, c := range map[string]struct {
		states []vernierv1.Trial_State
		newest bool
		want   []string
	}{
		"all":              {want: []string{"exp-0000", "exp-0001"}},
		"the newest first": {newest: true, want: []string{"exp-0001", "exp-0000"}},
		"one state":        {states: []vernierv1.Trial_State{vernierv1.Trial_FAILED}, want: []string{"exp-0001"}},
		"two states":       {states: []vernierv1.Trial_State{vernierv1.Trial_FAILED, vernierv1.Trial_RUNNING}, want: []string{"exp-0000", "exp-0001"}},
		"a state of none":  {states: []vernierv1.Trial_State{vernierv1.Trial_PRUNED}},
	} {
		t.Run(name, func(t *testing.T) {
			var names []string
			for ask := (&vernierv1.ListTrialsRequest{Parent: parent, States: c.states, NewestFirst: c.newest, PageSize: 1}); ; {
				got, err := s.ListTrials(t.Context(), ask)
				if err != nil {
					t.Fatal(err)
				}
				for _, trial := range got.GetTrials() {
					names = append(names, path.Base(trial.GetName()))
				}
				if ask.PageToken = got.GetNextPageToken(); ask.PageToken == "" {
					break
				}
			}
			if diff := cmp.Diff(c.want, names); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
