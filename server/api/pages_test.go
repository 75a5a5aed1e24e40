package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	vernierv1 "github.com/vernier-ml/vernier/api/proto/vernier/v1"
	"github.com/vernier-ml/vernier/api/v1beta1"
)

func TestAlgorithmsAreListedWithTheirSettings(t *testing.T) {
	s := serve(t, interceptor.Funcs{})
	got, err := s.ListAlgorithms(t.Context(), &vernierv1.ListAlgorithmsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]*vernierv1.Algorithm{}
	for _, a := range append(got.GetAlgorithms(), got.GetStoppingRules()...) {
		found[a.GetName()] = a
	}
	if a := found["tpe"]; a.GetTitle() == "" || len(a.GetSettings()) == 0 || a.GetSettings()[0].GetTitle() == "" {
		t.Errorf("tpe: %v", a)
	}
	if found["medianstop"].GetTitle() == "" {
		t.Errorf("medianstop is not among %d", len(found))
	}
}

const preview = `
apiVersion: kubeflow.org/v1beta1
kind: Experiment
metadata: {name: new}
spec:
  objective: {type: minimize, objectiveMetricName: loss}
  algorithm: {algorithmName: random}
  maxTrialDuration: 2m
  parameters:
  - {name: layers, parameterType: int, feasibleSpace: {min: "1", max: "3"}}
  - {name: optimizer, parameterType: categorical, feasibleSpace: {list: [adam, sgd]}}
`

func TestAnExperimentIsPreviewed(t *testing.T) {
	cases := map[string]struct {
		yaml    string
		problem string // its field; empty: none
		samples int
		size    float64
	}{
		"it can be created": {yaml: preview, samples: 3, size: 6},
		"its name is taken": {yaml: strings.Replace(preview, "name: new", "name: taken", 1), problem: "metadata.name", samples: 3, size: 6},
		"it is no YAML":     {yaml: "{", problem: "?"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := serve(t, interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
				if o.GetName() == "taken" { // which the fake API server does not say of a dry run
					return apierrors.NewAlreadyExists(schema.GroupResource{Resource: "experiments"}, o.GetName())
				}
				return c.Create(ctx, o, options...)
			}})
			got, err := s.PreviewExperiment(t.Context(), &vernierv1.PreviewExperimentRequest{Yaml: c.yaml, Parent: "namespaces/ml", Samples: 3})
			if err != nil {
				t.Fatal(err)
			}
			if (len(got.GetProblems()) > 0) != (c.problem != "") || c.problem != "" && c.problem != "?" && got.GetProblems()[0].GetField() != c.problem {
				t.Errorf("problems %v, want one of %q", got.GetProblems(), c.problem)
			}
			if len(got.GetSamples()) != c.samples || got.GetSize() != c.size {
				t.Errorf("%d samples of %v points, want %d of %v", len(got.GetSamples()), got.GetSize(), c.samples, c.size)
			}
			for _, p := range got.GetSamples() {
				if n := p.GetFields()["layers"].GetNumberValue(); n < 1 || n > 3 {
					t.Errorf("a sample %v", p)
				}
			}
			if c.samples > 0 && (!strings.Contains(got.GetYaml(), "resumePolicy") || got.GetMaxTrialDuration().GetSeconds() != 120) {
				t.Errorf("with defaults it is %s, its trials end after %v", got.GetYaml(), got.GetMaxTrialDuration())
			}
			if err := s.Client.Get(t.Context(), place{namespace: "ml", experiment: "new"}.key(), &v1beta1.Experiment{}); err == nil {
				t.Error("it was created")
			}
		})
	}
}

func TestResultsAreAnalyzed(t *testing.T) {
	exp := searched()
	trials := []*v1beta1.Trial{
		tried(exp, 0, "0.9", "sgd", 9), tried(exp, 1, "0.1", "adam", 1), tried(exp, 2, "0.5", "sgd", 5),
		tried(exp, 3, "0.2", "adam", 0.5), tried(exp, 4, "0.3", "adam", math.NaN()),
	}
	s := serve(t, interceptor.Funcs{}, exp)
	ask := func(r *vernierv1.AnalyzeRequest) (*vernierv1.AnalyzeResponse, error) {
		r.Parent = parent
		return s.Analyze(t.Context(), r)
	}
	importance := &vernierv1.AnalyzeRequest{Question: &vernierv1.AnalyzeRequest_Importance_{}}
	if _, err := ask(importance); connect.CodeOf(err) != connect.CodeFailedPrecondition {
		t.Errorf("without results: %v", err)
	}
	for i := range 40 { // the loss is lr alone
		x := float64(i%10) / 10
		trials = append(trials, tried(exp, 5+i, []string{"0", "0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9"}[i%10], []string{"adam", "sgd"}[i/10%2], 10*x))
	}
	resourceOf := func(i int) string {
		switch { // 10 of the last 20 had all of it, with each value of lr
		case i < 5:
			return "3"
		case i >= 25 && i%2 == i/35:
			return "27"
		}
		return "9"
	}
	for i, trial := range trials {
		trial.Annotations = map[string]string{v1beta1.AnnotationResource: resourceOf(i)}
		if err := s.Client.Create(t.Context(), trial.DeepCopy()); err != nil {
			t.Fatal(err)
		}
		status := trial.DeepCopy()
		if err := s.Client.Get(t.Context(), place{"ml", "exp", trial.Name}.trialKey(), status); err != nil {
			t.Fatal(err)
		}
		status.Status = trial.Status
		if err := s.Client.Status().Update(t.Context(), status); err != nil {
			t.Fatal(err)
		}
	}
	got, err := ask(&vernierv1.AnalyzeRequest{Question: &vernierv1.AnalyzeRequest_History_{}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]float64{0, 1, 3, 5}, got.GetHistory().GetAt()); diff != "" || got.GetResults() != 44 {
		t.Errorf("better than all before, of %d results: %s", got.GetResults(), diff)
	}
	if got, err = ask(importance); err != nil || got.GetImportance().GetShares()[0] < 0.9 || got.GetResults() != 30 || got.GetResource() != 9 || got.GetLeftOut() != 14 {
		t.Errorf("importance of the 30 results of a resource, without 14 of others: %v, %v", got, err)
	}
	if got, err = ask(&vernierv1.AnalyzeRequest{Question: &vernierv1.AnalyzeRequest_Distribution_{}}); err != nil || got.GetDistribution().GetAt()[len(got.GetDistribution().GetAt())-1] != 1 {
		t.Errorf("distribution: %v, %v", got, err)
	}
	got, err = ask(&vernierv1.AnalyzeRequest{Question: &vernierv1.AnalyzeRequest_Contour_{Contour: &vernierv1.AnalyzeRequest_Contour{X: "lr", Y: "optimizer", Points: 3}}})
	if err != nil || got.GetResults() != 10 || got.GetResource() != 27 || got.GetLeftOut() != 34 {
		t.Fatalf("contour of the 10 results of the largest resource, without 34 of others: %v, %v", got, err)
	}
	z := got.GetContour().GetZ()
	if len(z) != 6 || z[0] > z[1] || z[1] > z[2] || got.GetContour().GetY().GetText().GetTexts()[0] != "adam" {
		t.Errorf("contour: %v", got.GetContour())
	}
	if got, err = ask(&vernierv1.AnalyzeRequest{Question: &vernierv1.AnalyzeRequest_Pareto_{}}); err != nil || !cmp.Equal(got.GetPareto().GetFront(), []int32{5, 15, 25, 35}) {
		t.Errorf("pareto: %v, %v", got, err)
	}
	for name, r := range map[string]*vernierv1.AnalyzeRequest{
		"no question":          {},
		"an unknown objective": {Objective: 7, Question: &vernierv1.AnalyzeRequest_History_{}},
		"an unknown parameter": {Question: &vernierv1.AnalyzeRequest_Contour_{Contour: &vernierv1.AnalyzeRequest_Contour{X: "lr", Y: "nothing"}}},
		"too many points":      {Question: &vernierv1.AnalyzeRequest_Contour_{Contour: &vernierv1.AnalyzeRequest_Contour{X: "lr", Y: "optimizer", Points: 1000}}},
	} {
		if _, err := ask(r); connect.CodeOf(err) != connect.CodeInvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// aPod is a pod of trial exp-0000.
func aPod(name string, edit func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name, Labels: map[string]string{v1beta1.LabelTrial: "exp-0000"}, CreationTimestamp: metav1.NewTime(noon)},
		Spec: corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("2")}}}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{Name: "main", RestartCount: 1,
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no such image"}}}}}}
	if edit != nil {
		edit(p)
	}
	return p
}

func anEvent(name, object, message string) *corev1.Event {
	return &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name}, InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: object},
		Type: corev1.EventTypeWarning, Reason: "Failed", Message: message, Count: 3, LastTimestamp: metav1.NewTime(noon)}
}

func TestATrialIsDescribed(t *testing.T) {
	exp, trial := runs(t)
	trial.Spec.PrimaryContainerName = "main"
	trial.MarkRunning("Trial is running", metav1.NewTime(noon))
	s := serve(t, interceptor.Funcs{}, exp, trial, aPod("exp-0000-x", nil), anEvent("a", "exp-0000-x", "pull failed"), anEvent("b", "other", "of another pod"))
	got, err := s.Describe(t.Context(), &vernierv1.DescribeRequest{Name: parent + "/trials/exp-0000"})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(got.GetYaml(), "kind: Trial") || got.GetWhy() != "Trial is running" || len(got.GetConditions()) == 0 {
		t.Errorf("why %q, conditions %v, %s", got.GetWhy(), got.GetConditions(), got.GetYaml())
	}
	if e := got.GetEvents(); len(e) != 1 || e[0].GetMessage() != "pull failed" || e[0].GetCount() != 3 || !e[0].GetWarning() {
		t.Errorf("events %v", e)
	}
	if len(got.GetPods()) != 1 {
		t.Fatalf("pods %v", got.GetPods())
	}
	p := got.GetPods()[0]
	if p.GetMessage() != "no such image" || p.GetResources()["nvidia.com/gpu"] != "2" || !p.GetContainers()[0].GetPrimary() || p.GetContainers()[0].GetReason() != "ImagePullBackOff" {
		t.Errorf("pod %v", p)
	}

	s.Access = only("get") // not list, so neither pods nor events
	if got, err = s.Describe(t.Context(), &vernierv1.DescribeRequest{Name: parent + "/trials/exp-0000"}); err != nil || len(got.GetPods())+len(got.GetEvents()) > 0 {
		t.Errorf("who may not list pods and events: %v, %v", got, err)
	}
	if _, err := s.Describe(t.Context(), &vernierv1.DescribeRequest{Name: strings.Replace(parent, "exp", "other", 1) + "/trials/exp-0000"}); err == nil {
		t.Error("a trial of another experiment is described")
	}
}

func TestAnExperimentIsDescribed(t *testing.T) {
	exp, _ := runs(t)
	exp.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: "much"}
	s := serve(t, interceptor.Funcs{}, exp, anEvent("a", "exp", "it waits"))
	got, err := s.Describe(t.Context(), &vernierv1.DescribeRequest{Name: parent})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(got.GetYaml(), "kind: Experiment") || strings.Contains(got.GetYaml(), "much") || len(got.GetEvents()) != 1 || len(got.GetConditions()) == 0 {
		t.Errorf("%v", got)
	}
}

func TestLogsAreStreamed(t *testing.T) {
	exp, trial := runs(t)
	trial.Spec.PrimaryContainerName = "main"
	older := aPod("exp-0000-a", func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(noon.Add(-60e9)) })
	s := serve(t, interceptor.Funcs{}, exp, trial, older, aPod("exp-0000-b", nil), aPod("stranger", func(p *corev1.Pod) { p.Labels = nil }))
	long := strings.Repeat("x", 3*logPart)
	var asked []string
	s.Logs = func(_ context.Context, namespace, pod string, o *corev1.PodLogOptions) (io.ReadCloser, error) {
		asked = append(asked, namespace+"/"+pod+"/"+o.Container)
		return io.NopCloser(strings.NewReader("loss=1\nloss=0.5\n" + long + "\nend")), nil
	}
	url := listen(t, s).URL
	cases := map[string]struct {
		pod, want string
		code      connect.Code
	}{
		"the newest pod":            {want: "ml/exp-0000-b/main"},
		"one that is named":         {pod: "exp-0000-a", want: "ml/exp-0000-a/main"},
		"a pod of something else":   {pod: "stranger", code: connect.CodeNotFound},
		"a pod that does not exist": {pod: "nothing", code: connect.CodeNotFound},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			asked = nil
			stream, err := vernierv1.NewDashboardServiceClient(&http.Client{Transport: authorized{http.DefaultTransport}}, url).ReadLogs(t.Context(), &vernierv1.ReadLogsRequest{Name: parent + "/trials/exp-0000", Pod: c.pod})
			if err != nil {
				t.Fatal(err)
			}
			var text strings.Builder
			for stream.Receive() {
				text.Write(stream.Msg().GetText())
			}
			if c.code != 0 {
				if connect.CodeOf(stream.Err()) != c.code || len(asked) > 0 {
					t.Errorf("%v, read %v", stream.Err(), asked)
				}
				return
			}
			if err := stream.Err(); err != nil || text.String() != "loss=1\nloss=0.5\n"+long+"\nend" {
				t.Errorf("%v, %d bytes", err, text.Len())
			}
			if diff := cmp.Diff([]string{c.want}, asked); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestLogsOfEndedTrialsAreThoseThatWereKept(t *testing.T) {
	exp, trial := runs(t)
	trial.Spec.PrimaryContainerName = "main"
	trial.MarkSucceeded("it has ended", metav1.NewTime(noon))
	s := serve(t, interceptor.Funcs{}, exp, trial)
	read := func() (string, error) {
		stream, err := vernierv1.NewDashboardServiceClient(&http.Client{Transport: authorized{http.DefaultTransport}}, listen(t, s).URL).ReadLogs(t.Context(), &vernierv1.ReadLogsRequest{Name: parent + "/trials/exp-0000", Tail: 5})
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		for stream.Receive() {
			text.Write(stream.Msg().GetText())
		}
		return text.String(), stream.Err()
	}
	if _, err := read(); connect.CodeOf(err) != connect.CodeNotFound {
		t.Errorf("where none are kept: %v", err)
	}
	s.EndedLogs = func(_ context.Context, trial types.NamespacedName, experiment string, o *corev1.PodLogOptions) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(fmt.Sprint(trial, experiment, o.Container, *o.TailLines))), nil
	}
	if text, err := read(); err != nil || text != "ml/exp-0000expmain5" {
		t.Errorf("%q, %v", text, err)
	}
	s.EndedLogs = func(context.Context, types.NamespacedName, string, *corev1.PodLogOptions) (io.ReadCloser, error) {
		return nil, fmt.Errorf("%w: it was removed", ErrNoLog)
	}
	if _, err := read(); connect.CodeOf(err) != connect.CodeNotFound || !strings.Contains(err.Error(), "it was removed") {
		t.Errorf("where it was removed: %v", err)
	}
}

func TestPartsOfALogEndWithLines(t *testing.T) {
	failed := errors.New("connection lost")
	var got []string
	err := lines(io.MultiReader(strings.NewReader("a\nb"), strings.NewReader("c\nd"), errorReader{failed}), func(b []byte) error {
		got = append(got, string(b))
		return nil
	})
	if diff := cmp.Diff([]string{"a\n", "bc\n", "d"}, got); diff != "" || !errors.Is(err, failed) {
		t.Errorf("error %v, parts:\n%s", err, diff)
	}
}

type errorReader struct{ error }

func (e errorReader) Read([]byte) (int, error) { return 0, e.error }
