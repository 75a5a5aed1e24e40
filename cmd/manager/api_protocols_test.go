package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"k8s.io/utils/ptr"

	katibv1 "github.com/vernier-ml/vernier/api/proto/katib/v1beta1"
	vernierv1 "github.com/vernier-ml/vernier/api/proto/vernier/v1"
	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/server/suggestion"
	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/algorithm"
)

const (
	playSeed   = 7
	playTrials = 15
)

func playLoss(lr float64) float64 { return math.Abs(math.Log10(lr) + 3) }

// bearer adds a token to each request.
type bearer struct {
	token string
	next  http.RoundTripper
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return b.next.RoundTrip(r)
}

// post makes a call as curl does.
func post(t *testing.T, c *http.Client, url, method, request string, answer proto.Message) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/vernier.v1.ExperimentService/"+method, bytes.NewBufferString(request))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	got, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err != nil || got.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %s, %v", method, got.Status, text, err)
	}
	if err := protojson.Unmarshal(text, answer); err != nil {
		t.Fatal(err)
	}
}

// caller asks for trials and completes them, over some protocol.
type caller interface {
	SuggestTrials(context.Context, *vernierv1.SuggestTrialsRequest) (*vernierv1.SuggestTrialsResponse, error)
	CompleteTrial(context.Context, *vernierv1.CompleteTrialRequest) (*vernierv1.Trial, error)
}

// grpcCaller is the client of grpc-go.
type grpcCaller struct{ conn *grpc.ClientConn }

func (c grpcCaller) SuggestTrials(ctx context.Context, r *vernierv1.SuggestTrialsRequest) (*vernierv1.SuggestTrialsResponse, error) {
	answer := &vernierv1.SuggestTrialsResponse{}
	return answer, c.conn.Invoke(ctx, vernierv1.ExperimentServiceSuggestTrialsProcedure, r, answer)
}

func (c grpcCaller) CompleteTrial(ctx context.Context, r *vernierv1.CompleteTrialRequest) (*vernierv1.Trial, error) {
	answer := &vernierv1.Trial{}
	return answer, c.conn.Invoke(ctx, vernierv1.ExperimentServiceCompleteTrialProcedure, r, answer)
}

func newGRPCCaller(t *testing.T, url, token string) grpcCaller {
	t.Helper()
	authorize := func(ctx context.Context, method string, q, a any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, o ...grpc.CallOption) error {
		return invoke(metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token), method, q, a, conn, o...)
	}
	conn, err := grpc.NewClient(strings.TrimPrefix(url, "http://"), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithUnaryInterceptor(authorize))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return grpcCaller{conn}
}

// curlCaller posts JSON, as curl does.
type curlCaller struct {
	http *http.Client
	url  string
	t    *testing.T
}

func (c curlCaller) SuggestTrials(_ context.Context, r *vernierv1.SuggestTrialsRequest) (*vernierv1.SuggestTrialsResponse, error) {
	answer := &vernierv1.SuggestTrialsResponse{}
	post(c.t, c.http, c.url, "SuggestTrials", fmt.Sprintf(`{"parent": %q}`, r.GetParent()), answer)
	return answer, nil
}

func (c curlCaller) CompleteTrial(_ context.Context, r *vernierv1.CompleteTrialRequest) (*vernierv1.Trial, error) {
	loss, err := json.Marshal(r.GetSucceeded().GetValues()["loss"])
	if err != nil {
		return nil, err
	}
	answer := &vernierv1.Trial{}
	post(c.t, c.http, c.url, "CompleteTrial", fmt.Sprintf(`{"name": %q, "attempt": %d, "succeeded": {"values": {"loss": %s}}}`, r.GetName(), r.GetAttempt(), loss), answer)
	return answer, nil
}

// play runs an experiment through a caller and returns the points.
func play(t *testing.T, c caller, parent string) (lrs []float64) {
	t.Helper()
	for range playTrials {
		answer, err := c.SuggestTrials(t.Context(), &vernierv1.SuggestTrialsRequest{Parent: parent})
		if err != nil {
			t.Fatal(err)
		}
		trial := answer.GetTrials()[0]
		lr := trial.GetParameters()["lr"].GetNumberValue()
		lrs = append(lrs, lr)
		if _, err := c.CompleteTrial(t.Context(), succeeded(trial, playLoss(lr))); err != nil {
			t.Fatal(err)
		}
	}
	return lrs
}

// The same search asked over each protocol, and in memory, proposes the same points.
func TestEachProtocolGivesTheSameAnswers(t *testing.T) {
	w := withAPI(t)
	file, err := os.ReadFile(w.apiToken)
	if err != nil {
		t.Fatal(err)
	}
	token := strings.TrimSpace(string(file))
	two := &http.Transport{Protocols: new(http.Protocols)}
	two.Protocols.SetUnencryptedHTTP2(true)
	over := func(next http.RoundTripper, options ...connect.ClientOption) caller {
		return vernierv1.NewExperimentServiceClient(&http.Client{Transport: bearer{token, next}}, w.api, options...)
	}
	plain := &http.Transport{}
	experiment := func(name string) string {
		e := w.experiment("play-"+name, outside(1, playTrials), func(e *v1beta1.Experiment) {
			e.Spec.Seed, e.Spec.Algorithm.AlgorithmName = ptr.To[int64](playSeed), "tpe"
			e.Spec.Parameters[0].FeasibleSpace = v1beta1.FeasibleSpace{Min: "1e-05", Max: "0.1", Distribution: v1beta1.DistributionLogUniform}
		})
		w.create(e)
		return w.resource(e)
	}
	want := playInMemory(t)
	same := func(t *testing.T, got []float64) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	for name, c := range map[string]caller{
		"connect":      over(plain),
		"connect-json": over(plain, connect.WithProtoJSON()),
		"grpc":         over(two, connect.WithGRPC()),
		"grpc-web":     over(plain, connect.WithGRPCWeb()),
		"grpc-go":      newGRPCCaller(t, w.api, token),
		"curl":         curlCaller{&http.Client{Transport: bearer{token, plain}}, w.api, t},
	} {
		t.Run(name, func(t *testing.T) { same(t, play(t, c, experiment(name))) })
	}
	t.Run("python", func(t *testing.T) { same(t, playInPython(t, w.api, token, experiment("python"))) })
	t.Run("katib", func(t *testing.T) { same(t, playAsKatib(t)) })
}

// playInPython runs an experiment with the Python client, which needs nothing else.
func playInPython(t *testing.T, url, token, parent string) (lrs []float64) {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("NOT TESTED: the Python client, as there is no python3")
	}
	namespace, name, _ := strings.Cut(strings.TrimPrefix(parent, "namespaces/"), "/experiments/")
	program := fmt.Sprintf(`
import json, math
from vernier_hpo import Client
lrs = []
for trial in Client(namespace=%q).study(%q):
    lrs.append(trial.params["lr"])
    trial.succeed(loss=abs(math.log10(trial.params["lr"]) + 3))
print(json.dumps(lrs))`, namespace, name)
	cmd := exec.CommandContext(t.Context(), python, "-B", "-c", program)
	cmd.Env = append(os.Environ(), "PYTHONPATH=../../clients/python/src", "VERNIER_SERVER="+url, "VERNIER_TOKEN="+token)
	var failure bytes.Buffer
	cmd.Stderr = &failure
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, &lrs)
	}
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, failure.Bytes())
	}
	return lrs
}

// playAsKatib asks as Katib's controller does, which sends all trials with each request.
func playAsKatib(t *testing.T) (lrs []float64) {
	t.Helper()
	handler, err := suggestion.NewHandler(suggestion.Config{Suffix: func() string { return "12345678" }})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(handler)
	defer s.Close()
	c := katibv1.NewSuggestionClient(s.Client(), s.URL)
	exp := &katibv1.Experiment{Name: "play", Spec: &katibv1.ExperimentSpec{
		ParameterSpecs: &katibv1.ExperimentSpec_ParameterSpecs{Parameters: []*katibv1.ParameterSpec{{
			Name: "lr", ParameterType: katibv1.ParameterType_DOUBLE,
			FeasibleSpace: &katibv1.FeasibleSpace{Min: "1e-05", Max: "0.1", Distribution: katibv1.Distribution_LOG_UNIFORM},
		}}},
		Objective:          &katibv1.ObjectiveSpec{Type: katibv1.ObjectiveType_MINIMIZE, ObjectiveMetricName: "loss"},
		Algorithm:          &katibv1.AlgorithmSpec{AlgorithmName: "tpe", AlgorithmSettings: []*katibv1.AlgorithmSetting{{Name: "random_state", Value: strconv.Itoa(playSeed)}}},
		ParallelTrialCount: 1, MaxTrialCount: playTrials,
	}}
	var trials []*katibv1.Trial
	for len(lrs) < playTrials {
		answer, err := c.GetSuggestions(t.Context(), &katibv1.GetSuggestionsRequest{Experiment: exp, Trials: trials, CurrentRequestNumber: 1, TotalRequestNumber: int32(len(trials) + 1)})
		if err != nil {
			t.Fatal(err)
		}
		point := answer.GetParameterAssignments()[0]
		lr, err := strconv.ParseFloat(point.GetAssignments()[0].GetValue(), 64)
		if err != nil {
			t.Fatal(err)
		}
		lrs = append(lrs, lr)
		trials = append(trials, &katibv1.Trial{
			Name: fmt.Sprintf("play-%04d", len(trials)),
			Spec: &katibv1.TrialSpec{Objective: exp.GetSpec().GetObjective(), Labels: point.GetLabels(),
				ParameterAssignments: &katibv1.TrialSpec_ParameterAssignments{Assignments: point.GetAssignments()}},
			Status: &katibv1.TrialStatus{Condition: katibv1.TrialStatus_SUCCEEDED, StartTime: fmt.Sprintf("2026-01-02T03:04:%02dZ", len(trials)),
				Observation: &katibv1.Observation{Metrics: []*katibv1.Metric{{Name: "loss", Value: strconv.FormatFloat(playLoss(lr), 'g', -1, 64)}}}},
		})
	}
	return lrs
}

func playInMemory(t *testing.T) (lrs []float64) {
	t.Helper()
	space, err := suggest.NewSpace([]suggest.ParameterSpec{suggest.Float("lr", 1e-5, 0.1, suggest.Log)})
	if err != nil {
		t.Fatal(err)
	}
	tpe, _ := algorithm.Get("tpe")
	a, err := tpe.New(space, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := suggest.Session{Algorithm: a, Study: suggest.Study{
		Space: space, Seed: playSeed, Budget: playTrials, Parallel: 1,
		Objectives: []suggest.Objective{{Name: "loss", Direction: suggest.Minimize}},
	}}
	for range playTrials {
		asked, err := s.Ask(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		lr := asked[0].Value("lr").Float()
		lrs = append(lrs, lr)
		if err := s.Tell(suggest.Result{Number: asked[0].Number, Values: []float64{playLoss(lr)}}); err != nil {
			t.Fatal(err)
		}
	}
	return lrs
}
