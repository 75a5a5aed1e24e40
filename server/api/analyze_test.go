package api

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	vernierv1 "github.com/vernier-ml/vernier/api/proto/vernier/v1"
	"github.com/vernier-ml/vernier/api/v1beta1"
)

// All trials that are compared have the same of the resource: importance is of the other
// parameters. A trial that a user queued has what it trained for, though none is recorded.
func TestImportanceLeavesOutTheResource(t *testing.T) {
	exp := searched()
	exp.Spec.Parameters = append([]v1beta1.ParameterSpec{{Name: "epochs", ParameterType: v1beta1.ParameterTypeInt, FeasibleSpace: v1beta1.FeasibleSpace{Min: "1", Max: "27"}}}, exp.Spec.Parameters...)
	exp.Spec.Algorithm = &v1beta1.AlgorithmSpec{AlgorithmName: "auto", AlgorithmSettings: []v1beta1.AlgorithmSetting{{Name: "resource_name", Value: "epochs"}}}
	objects := []client.Object{exp}
	for i := range 20 {
		trial := tried(exp, i, fmt.Sprint(float64(i)/20), "adam", float64(i))
		epochs := []string{"3", "27"}[i/18] // the last two
		trial.Spec.ParameterAssignments = append(trial.Spec.ParameterAssignments, v1beta1.ParameterAssignment{Name: "epochs", Value: epochs})
		if i > 0 { // the first was queued
			trial.Annotations = map[string]string{v1beta1.AnnotationResource: epochs}
		}
		objects = append(objects, trial)
	}
	s := serve(t, interceptor.Funcs{}, objects...)
	got, err := s.Analyze(t.Context(), &vernierv1.AnalyzeRequest{Parent: parent, Question: &vernierv1.AnalyzeRequest_Importance_{}})
	if err != nil || got.GetResource() != 3 || got.GetResults() != 18 || got.GetLeftOut() != 2 {
		t.Errorf("%v, %v", got, err)
	}
	if diff := cmp.Diff([]string{"lr", "optimizer"}, got.GetImportance().GetParameters()) + cmp.Diff([]string{"lr", "optimizer"}, leading(got.GetImportance())); diff != "" || len(got.GetImportance().GetShares()) != 2 {
		t.Errorf("(-want +got):\n%s", diff)
	}
	named, err := s.Analyze(t.Context(), importanceBy(vernierv1.AnalyzeRequest_Importance_F_ANOVA))
	if diff := cmp.Diff(named, got, protocmp.Transform()); err != nil || diff != "" {
		t.Errorf("without a method it is not F_ANOVA: %v\n%s", err, diff)
	}
	for method, want := range map[vernierv1.AnalyzeRequest_Importance_Method]string{
		vernierv1.AnalyzeRequest_Importance_PED_ANOVA: "failed_precondition: there are too few points with results to tell: 18 of 24",
		7: "invalid_argument: the method 7 is unknown",
	} {
		if _, err := s.Analyze(t.Context(), importanceBy(method)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("by %v: %v, want %s", method, err, want)
		}
	}
}

func importanceBy(m vernierv1.AnalyzeRequest_Importance_Method) *vernierv1.AnalyzeRequest {
	return &vernierv1.AnalyzeRequest{Parent: parent, Question: &vernierv1.AnalyzeRequest_Importance_{Importance: &vernierv1.AnalyzeRequest_Importance{Method: m}}}
}
