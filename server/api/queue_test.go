package api

import (
	"context"
	"math"
	"testing"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	vernierv1 "github.com/vernier-ml/vernier/api/proto/vernier/v1"
	"github.com/vernier-ml/vernier/api/v1beta1"
)

func queued(t *testing.T, s *service) (ids []string) {
	t.Helper()
	e, err := s.GetExperiment(t.Context(), &vernierv1.GetExperimentRequest{Name: parent})
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range e.GetQueued() {
		ids = append(ids, q.GetId())
	}
	return ids
}

func TestAPointIsQueuedOnceForEachRequest(t *testing.T) {
	exp := searched()
	trial := tried(exp, 0, "0.25", "sgd", 3)
	conflicts := 2
	s := serve(t, interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, options ...client.PatchOption) error {
		if conflicts--; conflicts >= 0 {
			return apierrors.NewConflict(schema.GroupResource{Resource: "experiments"}, o.GetName(), nil)
		}
		return c.Patch(ctx, o, p, options...)
	}}, exp, trial)
	point := map[string]*structpb.Value{"lr": structpb.NewNumberValue(0.125), "optimizer": structpb.NewStringValue("adam")}
	for range 2 {
		got, err := s.CreateTrial(t.Context(), &vernierv1.CreateTrialRequest{Parent: parent, Parameters: point, RequestId: "a"})
		if err != nil || got.GetId() != "a" || got.GetParameters()["lr"].GetNumberValue() != 0.125 {
			t.Fatalf("%v, %v", got, err)
		}
	}
	again, err := s.RerunTrial(t.Context(), &vernierv1.RerunTrialRequest{Name: parent + "/trials/exp-0000", RequestId: "b"})
	if err != nil || again.GetRerunOf() != 0 || again.RerunOf == nil || again.GetParameters()["optimizer"].GetStringValue() != "sgd" {
		t.Fatalf("%v, %v", again, err)
	}
	if diff := cmp.Diff([]string{"a", "b"}, queued(t, s)); diff != "" {
		t.Error(diff)
	}
	next := tried(exp, 1, "0.125", "adam", 2)
	next.Annotations = map[string]string{v1beta1.AnnotationMeta: `{"queued": "a"}`}
	if err := s.Client.Create(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"b"}, queued(t, s)); diff != "" {
		t.Error("once the first has a trial:", diff)
	}
}

func TestWhatCannotBeQueuedSaysWhy(t *testing.T) {
	ended, theirs := searched(), searched()
	ended.MarkSucceeded(v1beta1.ReasonExperimentMaxTrialsReached, "it has ended", metav1.NewTime(noon))
	theirs.Spec.Algorithm = &v1beta1.AlgorithmSpec{AlgorithmName: "theirs"}
	good := map[string]*structpb.Value{"lr": structpb.NewNumberValue(0.5)}
	cases := map[string]struct {
		exp  *v1beta1.Experiment
		r    *vernierv1.CreateTrialRequest
		code connect.Code
	}{
		"it has ended":               {ended, &vernierv1.CreateTrialRequest{Parameters: good}, connect.CodeFailedPrecondition},
		"a service proposes":         {theirs, &vernierv1.CreateTrialRequest{Parameters: good}, connect.CodeFailedPrecondition},
		"a value is no value":        {searched(), &vernierv1.CreateTrialRequest{Parameters: map[string]*structpb.Value{"lr": structpb.NewBoolValue(true)}}, connect.CodeInvalidArgument},
		"a parameter has no value":   {searched(), &vernierv1.CreateTrialRequest{Parameters: good}, connect.CodeInvalidArgument},
		"the request's id is a book": {searched(), &vernierv1.CreateTrialRequest{Parameters: good, RequestId: string(make([]byte, 101))}, connect.CodeInvalidArgument},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			c.r.Parent = parent
			if _, err := serve(t, interceptor.Funcs{}, c.exp).CreateTrial(t.Context(), c.r); connect.CodeOf(err) != c.code {
				t.Errorf("%v, want %v", err, c.code)
			}
		})
	}
}

// A point that no trial will ever take is refused, and not forgotten in silence.
func TestNoMoreIsQueuedThanTheBudgetHasTrialsFor(t *testing.T) {
	exp := searched()
	exp.Spec.MaxTrialCount = ptr.To[int32](2)
	s := serve(t, interceptor.Funcs{}, exp, tried(exp, 0, "0.25", "sgd", math.NaN()))
	queue := func(id string) error {
		_, err := s.RerunTrial(t.Context(), &vernierv1.RerunTrialRequest{Name: parent + "/trials/exp-0000", RequestId: id})
		return err
	}
	if err := queue("a"); err != nil {
		t.Fatal(err)
	}
	if err := queue("b"); connect.CodeOf(err) != connect.CodeFailedPrecondition {
		t.Errorf("one too many: %v", err)
	}
	if err := queue("a"); err != nil {
		t.Errorf("the first again: %v", err)
	}
}
