package api

import (
	"fmt"
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	vernierv1 "github.com/vernier-ml/vernier/api/proto/vernier/v1"
	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/suggest"
)

// searched is an experiment over a number and a word.
func searched() *v1beta1.Experiment {
	return &v1beta1.Experiment{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "exp", UID: "1"}, Spec: v1beta1.ExperimentSpec{
		Parameters: []v1beta1.ParameterSpec{
			{Name: "lr", ParameterType: v1beta1.ParameterTypeDouble, FeasibleSpace: v1beta1.FeasibleSpace{Min: "0", Max: "1"}},
			{Name: "optimizer", ParameterType: v1beta1.ParameterTypeCategorical, FeasibleSpace: v1beta1.FeasibleSpace{List: []string{"adam", "sgd"}}},
		},
		Objective: &v1beta1.ObjectiveSpec{Type: v1beta1.ObjectiveTypeMinimize, ObjectiveMetricName: "loss", AdditionalMetricNames: []string{"time"}},
		Algorithm: &v1beta1.AlgorithmSpec{AlgorithmName: "random"},
	}}
}

// tried is a trial of exp that has ended with a loss; NaN: that runs.
func tried(exp *v1beta1.Experiment, number int, lr, optimizer string, loss float64) *v1beta1.Trial {
	t := &v1beta1.Trial{ObjectMeta: metav1.ObjectMeta{
		Namespace: exp.Namespace, Name: v1beta1.TrialName(exp.Name, number), UID: types.UID("t" + strconv.Itoa(number)), CreationTimestamp: metav1.NewTime(noon),
		Labels:          map[string]string{v1beta1.LabelExperiment: exp.Name, v1beta1.LabelTrialNumber: strconv.Itoa(number)},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(exp, v1beta1.GroupVersion.WithKind("Experiment"))},
	}, Spec: v1beta1.TrialSpec{Objective: exp.Spec.Objective}}
	for name, value := range map[string]string{"lr": lr, "optimizer": optimizer} {
		if value != "" {
			t.Spec.ParameterAssignments = append(t.Spec.ParameterAssignments, v1beta1.ParameterAssignment{Name: name, Value: value})
		}
	}
	start := metav1.NewTime(noon.Add(time.Second))
	t.Status.StartTime = &start
	t.MarkRunning("Trial is running", start)
	if !math.IsNaN(loss) {
		end := metav1.NewTime(noon.Add(time.Minute))
		t.Status.CompletionTime = &end
		text := strconv.FormatFloat(loss, 'g', -1, 64)
		t.Status.Observation = &v1beta1.Observation{Metrics: []v1beta1.Metric{{Name: "loss", Min: text, Max: text, Latest: text}}}
		t.MarkSucceeded("Trial has succeeded", end)
	}
	return t
}

func TestATableOfTrialsByColumns(t *testing.T) {
	exp := searched()
	exp.Status.CurrentOptimalTrial.BestTrialName = "exp-0001"
	child := tried(exp, 3, "0.5", "", math.NaN())
	child.Annotations = map[string]string{v1beta1.AnnotationMeta: `{"` + suggest.MetaParent + `": "1"}`, v1beta1.AnnotationResource: "9"}
	byHand := tried(exp, 4, "0", "sgd", 0)
	delete(byHand.Labels, v1beta1.LabelTrialNumber)
	repeat := tried(exp, 1, "0.125", "adam", 2)
	repeat.Annotations = map[string]string{v1beta1.AnnotationWhy: "trial 0 again"}
	repeat.Status.Observation.Metrics[0].Latest = "NaN"
	s := serve(t, interceptor.Funcs{}, exp, tried(exp, 0, "0.25", "sgd", 3), repeat, child, byHand)
	ask := &vernierv1.ListTrialColumnsRequest{Parent: parent}
	got, err := s.ListTrialColumns(t.Context(), ask)
	if err != nil {
		t.Fatal(err)
	}
	nan, at := math.NaN(), float64(noon.Unix())
	want := &vernierv1.TrialColumns{
		Revision: "1.999", Whole: true, Total: 3, Number: []int32{0, 1, 3}, Optimal: []int32{1}, Continues: []int32{-1, -1, 1}, Resource: []float64{0, 0, 9},
		State:      []vernierv1.Trial_State{vernierv1.Trial_SUCCEEDED, vernierv1.Trial_SUCCEEDED, vernierv1.Trial_RUNNING},
		CreateTime: []float64{at, at, at}, StartTime: []float64{at + 1, at + 1, at + 1}, EndTime: []float64{at + 60, at + 60, nan},
		Message:  &vernierv1.TextColumn{Texts: []string{"Trial has succeeded", "trial 0 again", "Trial is running"}, Index: []int32{0, 1, 2}},
		Diverged: &vernierv1.TextColumn{Texts: []string{"loss NaN"}, Index: []int32{-1, 0, -1}},
		Parameters: []*vernierv1.Column{
			{Name: "lr", Number: []float64{0.25, 0.125, 0.5}},
			{Name: "optimizer", Text: &vernierv1.TextColumn{Texts: []string{"sgd", "adam"}, Index: []int32{0, 1, -1}}},
		},
		Metrics: []*vernierv1.Column{{Name: "loss", Number: []float64{3, nan, nan}}, {Name: "time", Number: []float64{nan, nan, nan}}},
	}
	if diff := cmp.Diff(want, got, protocmp.Transform(), cmpopts.EquateNaNs()); diff != "" {
		t.Fatal(diff)
	}

	ask.Since = got.GetRevision()
	if got, err = s.ListTrialColumns(t.Context(), ask); err != nil || got.GetWhole() || len(got.GetNumber()) != 0 || got.GetTotal() != 3 || len(got.GetParameters()) != 2 {
		t.Fatalf("nothing has changed: %v, %v", got, err)
	}
	ended := &v1beta1.Trial{}
	if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(child), ended); err != nil {
		t.Fatal(err)
	}
	ended.MarkFailed("Trial has failed. out of memory", metav1.NewTime(noon))
	if err := s.Client.Status().Update(t.Context(), ended); err != nil {
		t.Fatal(err)
	}
	got, err = s.ListTrialColumns(t.Context(), ask)
	if err != nil || got.GetWhole() || !cmp.Equal(got.GetNumber(), []int32{3}) || got.GetState()[0] != vernierv1.Trial_FAILED || got.GetMessage().GetTexts()[0] != "Trial has failed. out of memory" {
		t.Fatalf("one has failed: %v, %v", got, err)
	}
	if err := s.Client.Delete(t.Context(), ended); err != nil {
		t.Fatal(err)
	}
	ask.Since = got.GetRevision()
	if got, err = s.ListTrialColumns(t.Context(), ask); err != nil || got.GetTotal() != 2 || len(got.GetNumber()) != 0 || got.GetRevision() != ask.GetSince() {
		t.Fatalf("one was deleted: %v, %v", got, err)
	}
	for _, strange := range []string{"2.999", "1", "1.x", "1.-4"} {
		if got, err = s.ListTrialColumns(t.Context(), &vernierv1.ListTrialColumnsRequest{Parent: parent, Since: strange}); err != nil || !got.GetWhole() || len(got.GetNumber()) != 2 {
			t.Errorf("since %q: %v, %v", strange, got, err)
		}
	}
}

func TestTheUseOfMachinesIsNoMetric(t *testing.T) {
	exp := searched()
	used := tried(exp, 0, "0.25", "sgd", 3)
	used.Status.Usage = []v1beta1.Metric{
		{Name: "system/cpu_cores", Value: "1.5", Max: "4"}, {Name: "system/memory_gib", Value: "2", Max: "3"},
		{Name: "system/gpu0.utilization_percent", Value: "90", Max: "100"}, {Name: "system/gpu1.utilization_percent", Value: "30", Max: "100"},
		{Name: "system/gpu0.memory_gib", Value: "10", Max: "20"}, {Name: "system/gpu1.memory_gib", Value: "1", Max: "2"},
	}
	partly := tried(exp, 1, "0.5", "sgd", 2)
	partly.Status.Usage = []v1beta1.Metric{{Name: "system/cpu_cores", Value: "0.5", Max: "1"}}
	s := serve(t, interceptor.Funcs{}, exp, used, partly, tried(exp, 2, "0.5", "adam", 1))
	got, err := s.ListTrialColumns(t.Context(), &vernierv1.ListTrialColumnsRequest{Parent: parent})
	if err != nil {
		t.Fatal(err)
	}
	nan := math.NaN()
	want := []*vernierv1.Column{
		{Name: "gpu_utilization", Number: []float64{60, nan, nan}}, {Name: "gpu_memory", Number: []float64{22, nan, nan}},
		{Name: "cpu_cores", Number: []float64{1.5, 0.5, nan}}, {Name: "memory", Number: []float64{3, nan, nan}},
	}
	if diff := cmp.Diff(want, got.GetUsage(), protocmp.Transform(), cmpopts.EquateNaNs()); diff != "" {
		t.Error(diff)
	}
	if n := len(got.GetMetrics()); n != 2 {
		t.Errorf("there are %d metrics", n)
	}
}

func TestTablesThatWereUsedLongAgoAreForgotten(t *testing.T) {
	var all tables
	first := all.of("a", maxRows/2)
	all.of("b", maxRows/2)
	if again := all.of("a", maxRows/2); again != first {
		t.Error("a table that fits is forgotten")
	}
	all.of("c", maxRows/2)
	all.of("d", 2*maxRows)
	if len(all.used) != 1 || all.used[0].uid != "d" {
		t.Errorf("%d are kept", len(all.used))
	}
}

// 10,000 trials of 12 parameters, of which one has changed since.
func BenchmarkColumns(b *testing.B) {
	exp := searched()
	exp.Spec.Parameters = nil
	for i := range 12 {
		exp.Spec.Parameters = append(exp.Spec.Parameters, v1beta1.ParameterSpec{Name: fmt.Sprint("p", i), ParameterType: v1beta1.ParameterTypeDouble})
	}
	var trials []*v1beta1.Trial
	for i := range 10_000 {
		t := tried(exp, i, "", "", float64(i))
		t.ResourceVersion = strconv.Itoa(i + 1)
		for k := range 12 {
			t.Spec.ParameterAssignments = append(t.Spec.ParameterAssignments, v1beta1.ParameterAssignment{Name: fmt.Sprint("p", k), Value: fmt.Sprint(float64(i*k) / 7)})
		}
		trials = append(trials, t)
	}
	for name, fresh := range map[string]bool{"first": true, "again": false} {
		b.Run(name, func(b *testing.B) {
			known := &table{}
			for b.Loop() {
				if fresh {
					known = &table{}
				}
				known.update(exp, trials, noon)
				text, err := proto.Marshal(columnsOf(exp, known.rows))
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(len(text)), "bytes")
			}
		})
	}
}
