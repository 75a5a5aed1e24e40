package suggestion

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	pb "github.com/vernier-ml/vernier/api/proto/katib/v1beta1"
	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/controllers/index"
)

const katibConfig = `
apiVersion: config.kubeflow.org/v1beta1
kind: KatibConfig
runtime:
  suggestions:
  - algorithmName: theirs
    image: example.com/theirs:v1
    env: [{name: LEVEL, value: debug}]
    serviceAccountName: tuner
    volumeMountPath: /data
`

// algorithm is a service of someone else's.
type algorithm struct {
	mu        sync.Mutex
	validate  func() error
	suggest   func(*pb.GetSuggestionsRequest) (*pb.GetSuggestionsReply, error)
	questions []*pb.GetSuggestionsRequest
}

func (a *algorithm) ValidateAlgorithmSettings(context.Context, *pb.ValidateAlgorithmSettingsRequest) (*pb.ValidateAlgorithmSettingsReply, error) {
	if a.validate == nil {
		return nil, connect.NewError(connect.CodeUnimplemented, errors.New("not implemented"))
	}
	return &pb.ValidateAlgorithmSettingsReply{}, a.validate()
}

func (a *algorithm) GetSuggestions(_ context.Context, r *pb.GetSuggestionsRequest) (*pb.GetSuggestionsReply, error) {
	a.mu.Lock()
	a.questions = append(a.questions, r)
	a.mu.Unlock()
	return a.suggest(r)
}

func proposes(r *pb.GetSuggestionsRequest) (*pb.GetSuggestionsReply, error) {
	reply := &pb.GetSuggestionsReply{Algorithm: &pb.AlgorithmSpec{AlgorithmSettings: []*pb.AlgorithmSetting{{Name: "state", Value: fmt.Sprint(r.TotalRequestNumber)}}}}
	for i := range r.CurrentRequestNumber {
		reply.ParameterAssignments = append(reply.ParameterAssignments, &pb.GetSuggestionsReply_ParameterAssignments{
			Assignments: []*pb.ParameterAssignment{{Name: "x", Value: fmt.Sprint(r.TotalRequestNumber - r.CurrentRequestNumber + i)}},
			Labels:      map[string]string{"generation": "1", v1beta1.LabelTrialNumber: "99"},
		})
	}
	return reply, nil
}

// world has a controller and the services that it asks.
type world struct {
	*Controller
	client.Client
	now time.Time
}

func newServiceWorld(t *testing.T, services map[string]*algorithm, objects ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1beta1.AddToScheme, corev1.AddToScheme, metav1.AddMetaToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	addresses := map[string]string{}
	for name, a := range services {
		mux := http.NewServeMux()
		mux.Handle(pb.NewSuggestionHandler(a))
		s := httptest.NewUnstartedServer(mux)
		s.Config.Protocols = new(http.Protocols)
		s.Config.Protocols.SetUnencryptedHTTP2(true)
		s.Start()
		t.Cleanup(s.CloseClientConnections)
		addresses[name+"-theirs"] = s.Listener.Addr().String()
	}
	objects = append(objects, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeflow", Name: "katib-config"}, Data: map[string]string{"katib-config.yaml": katibConfig}})
	w := &world{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	w.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&v1beta1.Suggestion{}, &v1beta1.Experiment{}).
		WithIndex(&v1beta1.Trial{}, index.Owner, func(client.Object) []string { return nil }).Build()
	w.Controller = New(Options{Client: w.Client, Reader: w.Client, Now: func() time.Time { return w.now },
		Dial: func(ctx context.Context, _, service string, _ int) (net.Conn, error) {
			address, ok := addresses[service]
			if !ok {
				return nil, errors.New("no pod runs")
			}
			return new(net.Dialer).DialContext(ctx, "tcp", address)
		}})
	return w
}

func theirs(name string) *v1beta1.Experiment {
	return &v1beta1.Experiment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: "uid-of-e"},
		Spec: v1beta1.ExperimentSpec{
			Algorithm:  &v1beta1.AlgorithmSpec{AlgorithmName: "theirs", AlgorithmSettings: []v1beta1.AlgorithmSetting{{Name: "state", Value: "0"}}},
			Objective:  &v1beta1.ObjectiveSpec{Type: v1beta1.ObjectiveTypeMinimize, ObjectiveMetricName: "loss"},
			Parameters: []v1beta1.ParameterSpec{{Name: "x", ParameterType: v1beta1.ParameterTypeInt, FeasibleSpace: v1beta1.FeasibleSpace{Min: "0", Max: "9"}}},
		},
	}
}

func (w *world) reconcile(t *testing.T, name string) (*v1beta1.Suggestion, reconcile.Result) {
	t.Helper()
	key := client.ObjectKey{Namespace: "ns", Name: name}
	result, err := w.Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
	if err != nil {
		t.Fatal(err)
	}
	s := &v1beta1.Suggestion{}
	if err := w.Get(t.Context(), key, s); err != nil {
		t.Fatal(err)
	}
	return s, result
}

// request does what the experiment's controller does.
func (w *world) request(t *testing.T, name string, n int32) {
	t.Helper()
	s, _ := w.reconcile(t, name)
	if s.UID == "" {
		s.UID = "uid-of-s" // the fake API server gives none
	}
	s.Spec.Requests = n
	if err := w.Update(t.Context(), s); err != nil {
		t.Fatal(err)
	}
}

// answered waits until a service has answered or failed, and takes what came.
func (w *world) answered(t *testing.T, name string) (*v1beta1.Suggestion, reconcile.Result) {
	t.Helper()
	select {
	case e := <-w.woken:
		if e.Object.GetName() != name {
			t.Fatalf("%s was answered, want %s", e.Object.GetName(), name)
		}
	case <-time.After(time.Minute):
		t.Fatal("nothing is answered")
	}
	return w.reconcile(t, name)
}

func TestAServiceProposesTrials(t *testing.T) {
	a := &algorithm{suggest: proposes}
	e := theirs("e")
	e.Spec.ResumePolicy = v1beta1.FromVolume
	w := newServiceWorld(t, map[string]*algorithm{"e": a}, e)
	w.request(t, "e", 2)
	w.reconcile(t, "e")
	s, _ := w.answered(t, "e")
	w.request(t, "e", 3)
	w.reconcile(t, "e")
	s, _ = w.answered(t, "e")
	var got []string
	for _, p := range s.Status.Suggestions {
		got = append(got, fmt.Sprintf("%s x=%s %v", p.Name, p.ParameterAssignments[0].Value, p.Labels))
	}
	if diff := cmp.Diff([]string{"e-0000 x=0 map[generation:1]", "e-0001 x=1 map[generation:1]", "e-0002 x=2 map[generation:1]"}, got); diff != "" {
		t.Errorf("the proposals (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]v1beta1.AlgorithmSetting{{Name: "state", Value: "3"}}, s.Status.AlgorithmSettings); diff != "" {
		t.Errorf("the settings that the service keeps (-want +got):\n%s", diff)
	}
	if last := a.questions[len(a.questions)-1]; last.Experiment.Spec.Algorithm.AlgorithmSettings[0].Value != "2" || last.CurrentRequestNumber != 1 || last.TotalRequestNumber != 3 {
		t.Errorf("the last question does not hold what the service wrote: %v", last)
	}
	if !s.HasCondition(v1beta1.SuggestionDeploymentReady) || !s.HasCondition(v1beta1.SuggestionRunning) {
		t.Errorf("the conditions %+v", s.Status.Conditions)
	}
	checkObjects(t, w)

	if err := w.Get(t.Context(), client.ObjectKeyFromObject(e), e); err != nil {
		t.Fatal(err)
	}
	e.MarkSucceeded(v1beta1.ReasonExperimentGoalReached, "done", metav1.NewTime(w.now))
	if err := w.Status().Update(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	if s, _ := w.reconcile(t, "e"); !s.IsSucceeded() {
		t.Errorf("the conditions after the end: %+v", s.Status.Conditions)
	}
	key := client.ObjectKey{Namespace: "ns", Name: "e-theirs"}
	if err := w.Get(t.Context(), key, &corev1.Service{}); !apierrors.IsNotFound(err) {
		t.Errorf("the Service after the end: %v", err)
	}
	if err := w.Get(t.Context(), key, &corev1.PersistentVolumeClaim{}); err != nil {
		t.Errorf("the volume after the end: %v", err)
	}
}

// checkObjects holds that the service runs by Katib's names, labels and ports.
func checkObjects(t *testing.T, w *world) {
	t.Helper()
	key := client.ObjectKey{Namespace: "ns", Name: "e-theirs"}
	labels := map[string]any{"katib.kubeflow.org/deployment": "e-theirs", "katib.kubeflow.org/experiment": "e", "katib.kubeflow.org/suggestion": "e", "sidecar.istio.io/inject": "false"}
	d := &unstructured.Unstructured{}
	d.SetGroupVersionKind(deploymentKind)
	if err := w.Get(t.Context(), key, d); err != nil {
		t.Fatal(err)
	}
	pod, _, _ := unstructured.NestedMap(d.Object, "spec", "template", "spec")
	container := pod["containers"].([]any)[0].(map[string]any)
	selector, _, _ := unstructured.NestedMap(d.Object, "spec", "selector", "matchLabels")
	got := map[string]any{
		"selector": selector, "account": pod["serviceAccountName"], "name": container["name"], "image": container["image"],
		"ports": container["ports"], "env": container["env"], "mounts": container["volumeMounts"], "owner": d.GetOwnerReferences()[0].Kind,
	}
	want := map[string]any{
		"selector": labels, "account": "tuner", "name": "suggestion", "image": "example.com/theirs:v1",
		"ports":  []any{map[string]any{"name": "suggestion-api", "containerPort": int64(6789)}},
		"env":    []any{map[string]any{"name": "LEVEL", "value": "debug"}},
		"mounts": []any{map[string]any{"name": "suggestion-volume", "mountPath": "/data"}}, "owner": "Suggestion",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the Deployment (-want +got):\n%s", diff)
	}
	s := &corev1.Service{}
	if err := w.Get(t.Context(), key, s); err != nil {
		t.Fatal(err)
	}
	if p := s.Spec.Ports; len(p) != 1 || p[0].Port != 6789 || p[0].Name != "suggestion-api" || len(s.Spec.Selector) != len(labels) {
		t.Errorf("the Service %+v", s.Spec)
	}
	if err := w.Get(t.Context(), key, &corev1.PersistentVolumeClaim{}); err != nil {
		t.Error(err)
	}
}

// A service that hangs holds up its own experiment, and no other.
func TestAServiceThatNeverAnswers(t *testing.T) {
	released := make(chan struct{})
	hangs := &algorithm{suggest: func(r *pb.GetSuggestionsRequest) (*pb.GetSuggestionsReply, error) {
		<-released
		return proposes(r)
	}}
	slow, other := theirs("slow"), theirs("other")
	slow.UID, other.UID = "u1", "u2"
	w := newServiceWorld(t, map[string]*algorithm{"slow": hangs, "other": {suggest: proposes}}, slow, other)
	w.request(t, "slow", 1)
	w.reconcile(t, "slow")
	if s, _ := w.reconcile(t, "slow"); s.Status.SuggestionCount != 0 { // which waits for nothing
		t.Errorf("%d proposals of a service that hangs", s.Status.SuggestionCount)
	}
	s, _ := w.reconcile(t, "other")
	s.UID, s.Spec.Requests = "uid-of-other-s", 2
	if err := w.Update(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	w.reconcile(t, "other")
	if s, _ := w.answered(t, "other"); s.Status.SuggestionCount != 2 {
		t.Errorf("%d proposals beside a service that hangs, want 2", s.Status.SuggestionCount)
	}
	close(released)
	if s, _ := w.answered(t, "slow"); s.Status.SuggestionCount != 1 {
		t.Errorf("%d proposals once the service answers, want 1", s.Status.SuggestionCount)
	}
}

// A Suggestion that is deleted by hand, to start its service anew, is made again.
func TestAServiceProposesTheTrialsAfterThoseThatThereAre(t *testing.T) {
	a := &algorithm{suggest: proposes}
	e := theirs("e")
	w := newServiceWorld(t, map[string]*algorithm{"e": a}, e)
	var trials []*v1beta1.Trial
	for i := range 2 {
		trials = append(trials, &v1beta1.Trial{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: v1beta1.TrialName("e", i), UID: types.UID(fmt.Sprint(i)), Labels: map[string]string{v1beta1.LabelTrialNumber: fmt.Sprint(i)},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(e, v1beta1.GroupVersion.WithKind("Experiment"))},
		}})
	}
	x := index.New()
	for _, tr := range trials {
		x.Put(nil, tr)
	}
	w.Trials = x
	w.request(t, "e", 3)
	w.reconcile(t, "e")
	s, _ := w.answered(t, "e")
	var got []string
	for _, p := range s.Status.Suggestions {
		got = append(got, p.Name)
	}
	if diff := cmp.Diff([]string{"e-0000", "e-0001", "e-0002"}, got); diff != "" || s.Status.SuggestionCount != 3 {
		t.Errorf("%d proposals, the conditions %+v (-want +got):\n%s", s.Status.SuggestionCount, s.Status.Conditions, diff)
	}
	if q := a.questions[0]; q.CurrentRequestNumber != 1 || q.TotalRequestNumber != 3 {
		t.Errorf("the service is asked for %d of %d trials, want 1 of 3", q.CurrentRequestNumber, q.TotalRequestNumber)
	}
}

func lastMessage(s *v1beta1.Suggestion) string {
	if n := len(s.Status.Conditions); n > 0 {
		return s.Status.Conditions[n-1].Message
	}
	return ""
}
