package api

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/reflect/protoreflect"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	vernierv1 "github.com/vernier-ml/vernier/api/proto/vernier/v1"
	"github.com/vernier-ml/vernier/server/authn"
)

// elsewhere lets its caller do everything in one namespace, and nothing in others.
type elsewhere string

func (elsewhere) Authenticate(_ context.Context, r *http.Request) (authenticationv1.UserInfo, bool, error) {
	return authenticationv1.UserInfo{Username: "stranger"}, authn.Bearer(r) == "any", nil
}

func (e elsewhere) Allowed(_ context.Context, _ authenticationv1.UserInfo, what authorizationv1.ResourceAttributes) (bool, error) {
	return what.Namespace == string(e), nil
}

// only lets its caller do one thing.
type only string

func (only) Authenticate(context.Context, *http.Request) (authenticationv1.UserInfo, bool, error) {
	return authenticationv1.UserInfo{Username: "eve"}, true, nil
}

func (o only) Allowed(_ context.Context, _ authenticationv1.UserInfo, what authorizationv1.ResourceAttributes) (bool, error) {
	return what.Verb == string(o), nil
}

// To create is not to read what is there.
func TestWhoMayOnlyCreateIsNotShownWhatIsThere(t *testing.T) {
	exp := searched()
	text, err := json.Marshal(map[string]any{"apiVersion": "kubeflow.org/v1beta1", "kind": "Experiment", "metadata": map[string]string{"name": "exp"}, "spec": exp.Spec})
	if err != nil {
		t.Fatal(err)
	}
	exp.Status.Trials = 7
	s := serve(t, interceptor.Funcs{}, exp)
	ask := &vernierv1.CreateExperimentRequest{Yaml: string(text), Parent: "namespaces/ml"}
	if got, err := s.CreateExperiment(t.Context(), ask); err != nil || got.GetTrials() != 7 {
		t.Fatalf("who may get it: %v, %v", got, err)
	}
	s.Access = only("create")
	if got, err := s.CreateExperiment(t.Context(), ask); connect.CodeOf(err) != connect.CodeAlreadyExists {
		t.Errorf("%v, %v", got, err)
	}
	ask.Yaml = ": no YAML"
	s.Access = only("get")
	if _, err := s.CreateExperiment(t.Context(), ask); connect.CodeOf(err) != connect.CodePermissionDenied {
		t.Errorf("what a caller without rights sends is read: %v", err)
	}
}

// requests has a valid request for each method that concerns a namespace.
var requests = map[string]string{
	"CreateExperiment":  `{"experiment": {"name": "namespaces/ml/experiments/new", "spec": {}}}`,
	"GetExperiment":     `{"name": "namespaces/ml/experiments/exp"}`,
	"ListExperiments":   `{"parent": "namespaces/ml"}`,
	"SuggestTrials":     `{"parent": "namespaces/ml/experiments/exp"}`,
	"ReportTrial":       `{"name": "namespaces/ml/experiments/exp/trials/exp-0000", "attempt": 1}`,
	"CompleteTrial":     `{"name": "namespaces/ml/experiments/exp/trials/exp-0000", "attempt": 1, "pruned": {}}`,
	"ReleaseTrial":      `{"name": "namespaces/ml/experiments/exp/trials/exp-0000", "attempt": 1}`,
	"ListTrials":        `{"parent": "namespaces/ml/experiments/exp"}`,
	"ListOptimalTrials": `{"parent": "namespaces/ml/experiments/exp"}`,
	"UpdateExperiment":  `{"experiment": {"name": "namespaces/ml/experiments/exp", "spec": {"suspend": true}}, "updateMask": "spec.suspend"}`,
	"StopExperiment":    `{"name": "namespaces/ml/experiments/exp"}`,
	"DeleteExperiment":  `{"name": "namespaces/ml/experiments/exp"}`,
	"GetTrial":          `{"name": "namespaces/ml/experiments/exp/trials/exp-0000"}`,
	"CreateTrial":       `{"parent": "namespaces/ml/experiments/exp", "parameters": {"lr": 0.5}}`,
	"RerunTrial":        `{"name": "namespaces/ml/experiments/exp/trials/exp-0000"}`,
	"ImportTrials":      `{"parent": "namespaces/ml/experiments/exp", "trials": [{"id": "a", "parameters": {"lr": 0.5}, "values": {"loss": 1}, "state": "SUCCEEDED"}]}`,
	"StopTrial":         `{"name": "namespaces/ml/experiments/exp/trials/exp-0000"}`,
	"UpdateTrial":       `{"trial": {"name": "namespaces/ml/experiments/exp/trials/exp-0000", "notes": "x"}, "updateMask": "notes"}`,
	"ListTrialColumns":  `{"parent": "namespaces/ml/experiments/exp"}`,
	"Describe":          `{"name": "namespaces/ml/experiments/exp"}`,
	"ReadLogs":          `{"name": "namespaces/ml/experiments/exp/trials/exp-0000"}`,
	"ListArtifacts":     `{"name": "namespaces/ml/experiments/exp/trials/exp-0000"}`,
	"ReadArtifact":      `{"name": "namespaces/ml/experiments/exp/trials/exp-0000", "path": "model.pt"}`,
	"ShareExperiment":   `{"parent": "namespaces/ml/experiments/exp"}`,
	"Analyze":           `{"parent": "namespaces/ml/experiments/exp", "history": {}}`,
	"PreviewExperiment": `{"experiment": {"name": "namespaces/ml/experiments/exp", "spec": {}}}`,
	"GetSeries":         `{"parent": "namespaces/ml/experiments/exp", "trials": [0]}`,
	"Watch":             `{"subscriptions": [{"id": 1, "trials": "namespaces/ml/experiments/exp"}]}`,
}

// harmless are the methods that concern no namespace, and what they must not say.
var harmless = map[string]string{"GetServer": "ml", "ListNamespaces": "namespaces/", "ListAlgorithms": "namespaces/", "ListAlerts": "exp", "ListDevices": "exp"}

func TestNoMethodAnswersACallerWithoutRights(t *testing.T) {
	exp, trial := runs(t)
	s := serve(t, interceptor.Funcs{}, exp, trial, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ml"}}, asks("ml", trial.Name, "exp-0000-x", "expensive", corev1.PodRunning, "1"),
		nodeWith("expensive", corev1.ConditionTrue, corev1.ResourceList{gpu: resource.MustParse("1")}))
	s.Access = elsewhere("other")
	server := listen(t, s)
	for _, file := range []protoreflect.FileDescriptor{vernierv1.File_vernier_v1_experiment_proto, vernierv1.File_vernier_v1_dashboard_proto} {
		methods := file.Services().Get(0).Methods()
		for i := range methods.Len() {
			m := methods.Get(i)
			t.Run(string(m.Name()), func(t *testing.T) {
				body, known := requests[string(m.Name())]
				if !known {
					body = "{}"
				}
				if secret, ok := harmless[string(m.Name())]; ok {
					if says := call(t, server.URL, "any", m, "{}"); strings.Contains(says, secret) {
						t.Errorf("it says %s", says)
					}
				} else if !known {
					t.Fatal("add a request of it to this test")
				} else {
					forbidden := call(t, server.URL, "any", m, body)
					missing := call(t, server.URL, "any", m, strings.ReplaceAll(body, "experiments/exp", "experiments/nothing"))
					if !strings.Contains(forbidden, "permission_denied") || !strings.Contains(missing, "permission_denied") {
						t.Errorf("of an experiment that is there it says %s, of another one %s", forbidden, missing)
					}
				}
				if says := call(t, server.URL, "wrong", m, body); !strings.Contains(says, "unauthenticated") {
					t.Errorf("without a token it says %s", says)
				}
			})
		}
	}
}

// call makes a call as a browser does and returns all that is answered.
func call(t *testing.T, url, token string, m protoreflect.MethodDescriptor, body string) string {
	t.Helper()
	kind, text := "application/json", []byte(body)
	if m.IsStreamingServer() {
		kind = "application/connect+json"
		text = append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(body))), body...)
	}
	if !json.Valid([]byte(body)) {
		t.Fatalf("%s is no JSON", body)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/"+string(m.Parent().FullName())+"/"+string(m.Name()), bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", kind)
	r.Header.Set("Authorization", "Bearer "+token)
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	says, err := io.ReadAll(got.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(says)
}

// The description of the API has each of its methods, and is served to programs that
// have no token yet.
func TestTheDescriptionHasEachMethod(t *testing.T) {
	server := listen(t, serve(t, interceptor.Funcs{}))
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/openapi.yaml", nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	var description struct {
		Paths map[string]any `json:"paths"`
	}
	text, err := io.ReadAll(got.Body)
	if err == nil {
		err = yaml.Unmarshal(text, &description)
	}
	if err != nil || got.StatusCode != http.StatusOK {
		t.Fatal(got.Status, err)
	}
	for _, file := range []protoreflect.FileDescriptor{vernierv1.File_vernier_v1_experiment_proto, vernierv1.File_vernier_v1_dashboard_proto} {
		service := file.Services().Get(0)
		for i := range service.Methods().Len() {
			if path := "/" + string(service.FullName()) + "/" + string(service.Methods().Get(i).Name()); description.Paths[path] == nil && !service.Methods().Get(i).IsStreamingServer() {
				t.Errorf("openapi.yaml lacks %s: run make generate", path)
			}
		}
	}
}
