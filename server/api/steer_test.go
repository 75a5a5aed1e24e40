package api

import (
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	vernierv1 "github.com/vernier-ml/vernier/api/proto/vernier/v1"
	"github.com/vernier-ml/vernier/api/v1beta1"
)

func (s *service) there(t *testing.T) *v1beta1.Experiment {
	t.Helper()
	exp := &v1beta1.Experiment{}
	if err := s.Client.Get(t.Context(), client.ObjectKey{Namespace: "ml", Name: "exp"}, exp); err != nil {
		t.Fatal(err)
	}
	return exp
}

func TestAnUpdateChangesWhatItNames(t *testing.T) {
	exp := searched()
	exp.Spec.MaxTrialCount, exp.Spec.MaxFailedTrialCount = ptr.To[int32](9), ptr.To[int32](3)
	exp.Annotations = map[string]string{"mine": "stays", v1beta1.AnnotationNotes: "old"}
	s := serve(t, interceptor.Funcs{}, exp)
	spec, err := structpb.NewStruct(map[string]any{"maxTrialCount": 40, "parallelTrialCount": 5, "suspend": true})
	if err != nil {
		t.Fatal(err)
	}
	ask := &vernierv1.UpdateExperimentRequest{
		Experiment: &vernierv1.Experiment{Name: parent, Spec: spec, Tags: []string{"b", "a", "b"}},
		UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"spec.max_trial_count", "spec.suspend", "spec.maxFailedTrialCount", "notes", "tags"}},
	}
	got, err := s.UpdateExperiment(t.Context(), ask)
	if err != nil || !got.GetSuspended() || !cmp.Equal(got.GetTags(), []string{"a", "b"}) || got.GetNotes() != "" {
		t.Fatalf("%v, %v", got, err)
	}
	now := s.there(t)
	if diff := cmp.Diff(map[string]string{"mine": "stays", v1beta1.AnnotationTags: "a,b"}, now.Annotations); diff != "" {
		t.Error(diff)
	}
	if *now.Spec.MaxTrialCount != 40 || now.Spec.MaxFailedTrialCount != nil || now.Spec.ParallelTrialCount != nil || len(now.Spec.Parameters) != 2 {
		t.Errorf("%+v", now.Spec)
	}

	ask.Experiment.Etag = "1"
	if _, err := s.UpdateExperiment(t.Context(), ask); connect.CodeOf(err) != connect.CodeAborted {
		t.Errorf("with an old etag: %v", err)
	}
	ask.Experiment.Etag, ask.ValidateOnly = got.GetEtag(), true
	ask.Experiment.Spec.Fields["suspend"] = structpb.NewBoolValue(false)
	if got, err = s.UpdateExperiment(t.Context(), ask); err != nil || got.GetSuspended() || !s.there(t).Spec.Suspend {
		t.Errorf("a check only: %v, %v", got, err)
	}
	for name, change := range map[string]func(r *vernierv1.UpdateExperimentRequest){
		"the space":    func(r *vernierv1.UpdateExperimentRequest) { r.UpdateMask.Paths = []string{"spec.parameters"} },
		"the state":    func(r *vernierv1.UpdateExperimentRequest) { r.UpdateMask.Paths = []string{"state"} },
		"nothing":      func(r *vernierv1.UpdateExperimentRequest) { r.UpdateMask = nil },
		"a wrong tag":  func(r *vernierv1.UpdateExperimentRequest) { r.Experiment.Tags = []string{"a,b"} },
		"a long note":  func(r *vernierv1.UpdateExperimentRequest) { r.Experiment.Notes = strings.Repeat("x", maxNotes+1) },
		"a wrong name": func(r *vernierv1.UpdateExperimentRequest) { r.Experiment.Name = "exp" },
	} {
		r := &vernierv1.UpdateExperimentRequest{Experiment: &vernierv1.Experiment{Name: parent, Spec: spec}, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"notes", "tags"}}}
		change(r)
		if _, err := s.UpdateExperiment(t.Context(), r); connect.CodeOf(err) != connect.CodeInvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestStoppingAndDeleting(t *testing.T) {
	exp, trial := runs(t)
	s := serve(t, interceptor.Funcs{}, exp, trial)
	for _, cancel := range []bool{false, true, false} {
		if _, err := s.StopExperiment(t.Context(), &vernierv1.StopExperimentRequest{Name: parent, Cancel: cancel}); err != nil {
			t.Fatal(err)
		}
	}
	if end := s.there(t).Annotations[v1beta1.AnnotationEnd]; end != v1beta1.EndCancel {
		t.Errorf("it is to %q: that it was cancelled cannot be taken back", end)
	}
	name := parent + "/trials/exp-0000"
	for _, why := range []string{"too slow", "again"} {
		got, err := s.StopTrial(t.Context(), &vernierv1.StopTrialRequest{Name: name, Reason: why})
		if err != nil || got.GetState() != vernierv1.Trial_STOPPING {
			t.Fatalf("%v, %v", got, err)
		}
	}
	got := &v1beta1.Trial{}
	if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(trial), got); err != nil || got.Annotations[v1beta1.AnnotationStop] != "too slow" || got.Annotations[v1beta1.AnnotationLease] == "" {
		t.Errorf("%v, %v", got.Annotations, err)
	}
	noted, err := s.UpdateTrial(t.Context(), &vernierv1.UpdateTrialRequest{
		Trial: &vernierv1.Trial{Name: name, Notes: "odd", Tags: []string{"look"}}, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"notes", "tags"}}})
	if err != nil || noted.GetNotes() != "odd" || !cmp.Equal(noted.GetTags(), []string{"look"}) {
		t.Errorf("%v, %v", noted, err)
	}
	pruned := &vernierv1.CompleteTrialRequest{Name: name, Attempt: 1, Outcome: &vernierv1.CompleteTrialRequest_Pruned_{Pruned: &vernierv1.CompleteTrialRequest_Pruned{}}}
	if _, err := s.CompleteTrial(t.Context(), pruned); err != nil { // as a worker answers STOP
		t.Fatal(err)
	}
	if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(trial), got); err != nil || got.State() != v1beta1.TrialKilled || !strings.Contains(got.LastCondition().Message, "too slow") {
		t.Errorf("a stopped trial is %s: %v, %v", got.State(), got.Status.Conditions, err)
	}
	if _, err := s.GetTrial(t.Context(), &vernierv1.GetTrialRequest{Name: "namespaces/ml/experiments/other/trials/exp-0000"}); connect.CodeOf(err) != connect.CodeNotFound {
		t.Errorf("a trial of another experiment: %v", err)
	}
	for range 2 { // again is no error
		if _, err := s.DeleteExperiment(t.Context(), &vernierv1.DeleteExperimentRequest{Name: parent}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.GetExperiment(t.Context(), &vernierv1.GetExperimentRequest{Name: parent}); connect.CodeOf(err) != connect.CodeNotFound {
		t.Errorf("it was deleted: %v", err)
	}
}

func TestAnExperimentFromYAML(t *testing.T) {
	const text = "apiVersion: kubeflow.org/v1beta1\nkind: Experiment\nmetadata: {name: fresh, annotations: {vernier.ml/notes: why}}\nspec: {maxTrialCount: 3}\nstatus: {trials: 9}\n"
	s := serve(t, interceptor.Funcs{})
	ask := &vernierv1.CreateExperimentRequest{Yaml: text, Parent: "namespaces/ml", ValidateOnly: true}
	if got, err := s.CreateExperiment(t.Context(), ask); err != nil || got.GetName() != "namespaces/ml/experiments/fresh" || got.GetNotes() != "why" || got.GetTrials() != 0 {
		t.Fatalf("%v, %v", got, err)
	}
	if _, err := s.GetExperiment(t.Context(), &vernierv1.GetExperimentRequest{Name: "namespaces/ml/experiments/fresh"}); connect.CodeOf(err) != connect.CodeNotFound {
		t.Errorf("after a check only: %v", err)
	}
	ask.ValidateOnly = false
	for range 2 { // again is no error
		if _, err := s.CreateExperiment(t.Context(), ask); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{
		"another kind":      strings.Replace(text, "kind: Experiment", "kind: Trial", 1),
		"another namespace": strings.Replace(text, "name: fresh", "name: fresh, namespace: other", 1),
		"no name":           strings.Replace(text, "name: fresh, ", "", 1),
		"a field twice":     text + "spec: {}\n",
		"an unknown field":  strings.Replace(text, "maxTrialCount", "maxTrials", 1),
	} {
		if _, err := s.CreateExperiment(t.Context(), &vernierv1.CreateExperimentRequest{Yaml: text, Parent: "namespaces/ml"}); connect.CodeOf(err) != connect.CodeInvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
}
