package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"k8s.io/utils/ptr"

	vernierv1 "github.com/vernier-ml/vernier/api/proto/vernier/v1"
	"github.com/vernier-ml/vernier/api/v1beta1"
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

// The same search asked over each protocol, and in memory, proposes the same points.
func TestEachProtocolGivesTheSameAnswers(t *testing.T) {
	w := withAPI(t)
	token, err := os.ReadFile(w.apiToken)
	if err != nil {
		t.Fatal(err)
	}
	plain := &http.Transport{}
	two := &http.Transport{Protocols: new(http.Protocols)}
	two.Protocols.SetUnencryptedHTTP2(true)
	over := func(next http.RoundTripper) *http.Client {
		return &http.Client{Transport: bearer{strings.TrimSpace(string(token)), next}}
	}
	want := playInMemory(t)
	for name, c := range map[string]struct {
		http    *http.Client
		options []connect.ClientOption
	}{
		"connect":       {over(plain), nil},
		"connect, json": {over(plain), []connect.ClientOption{connect.WithProtoJSON()}},
		"grpc":          {over(two), []connect.ClientOption{connect.WithGRPC()}},
		"grpc-web":      {over(plain), []connect.ClientOption{connect.WithGRPCWeb()}},
		"curl":          {over(plain), nil},
	} {
		t.Run(name, func(t *testing.T) {
			e := w.experiment("play-"+strings.ReplaceAll(name, ", ", "-"), outside(1, playTrials), func(e *v1beta1.Experiment) {
				e.Spec.Seed, e.Spec.Algorithm.AlgorithmName = ptr.To[int64](playSeed), "tpe"
				e.Spec.Parameters[0].FeasibleSpace = v1beta1.FeasibleSpace{Min: "1e-05", Max: "0.1", Distribution: v1beta1.DistributionLogUniform}
			})
			w.create(e)
			rpc := vernierv1.NewExperimentServiceClient(c.http, w.api, c.options...)
			var got []float64
			for range playTrials {
				answer := &vernierv1.SuggestTrialsResponse{}
				if name == "curl" {
					post(t, c.http, w.api, "SuggestTrials", fmt.Sprintf(`{"parent": %q}`, w.resource(e)), answer)
				} else if answer, err = rpc.SuggestTrials(t.Context(), &vernierv1.SuggestTrialsRequest{Parent: w.resource(e)}); err != nil {
					t.Fatal(err)
				}
				trial := answer.GetTrials()[0]
				lr := trial.GetParameters()["lr"].GetNumberValue()
				got = append(got, lr)
				if name == "curl" {
					loss, err := json.Marshal(playLoss(lr))
					if err != nil {
						t.Fatal(err)
					}
					post(t, c.http, w.api, "CompleteTrial", fmt.Sprintf(`{"name": %q, "attempt": %d, "succeeded": {"values": {"loss": %s}}}`,
						trial.GetName(), trial.GetAttempt(), loss), &vernierv1.Trial{})
				} else if _, err := rpc.CompleteTrial(t.Context(), succeeded(trial, playLoss(lr))); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
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
