package suggestion_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"connectrpc.com/grpchealth"
	"github.com/google/go-cmp/cmp"

	pb "github.com/vernier-ml/vernier/api/proto/katib/v1beta1"
	"github.com/vernier-ml/vernier/server/suggestion"
	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/algorithm"
)

// serve runs a handler as the image does: HTTP/2 without TLS.
func serve(t *testing.T, handler http.Handler) (*http.Client, string) {
	t.Helper()
	s := httptest.NewUnstartedServer(handler)
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	t.Cleanup(s.Close)
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	return &http.Client{Transport: transport}, s.URL
}

type services struct {
	pb.SuggestionClient
	stopping pb.EarlyStoppingClient
	http     *http.Client
	url      string
	stopped  []string
}

func newServices(t *testing.T) *services {
	t.Helper()
	s, n := &services{}, 0
	handler, err := suggestion.NewHandler(suggestion.Config{
		StopTrial: func(_ context.Context, name string) error {
			s.stopped = append(s.stopped, name)
			if name == "gone" {
				return errors.New("there is no such trial")
			}
			return nil
		},
		Suffix: func() string { n++; return fmt.Sprintf("%08d", n) },
	})
	if err != nil {
		t.Fatal(err)
	}
	s.http, s.url = serve(t, handler)
	s.SuggestionClient = pb.NewSuggestionClient(s.http, s.url, connect.WithGRPC())
	s.stopping = pb.NewEarlyStoppingClient(s.http, s.url, connect.WithGRPC())
	return s
}

func double(name, low, high, step string, d pb.Distribution) *pb.ParameterSpec {
	return &pb.ParameterSpec{Name: name, ParameterType: pb.ParameterType_DOUBLE, FeasibleSpace: &pb.FeasibleSpace{Min: low, Max: high, Step: step, Distribution: d}}
}

func integer(name, low, high, step string) *pb.ParameterSpec {
	return &pb.ParameterSpec{Name: name, ParameterType: pb.ParameterType_INT, FeasibleSpace: &pb.FeasibleSpace{Min: low, Max: high, Step: step}}
}

func listed(name string, kind pb.ParameterType, list ...string) *pb.ParameterSpec {
	return &pb.ParameterSpec{Name: name, ParameterType: kind, FeasibleSpace: &pb.FeasibleSpace{List: list}}
}

func settings(pairs ...string) []*pb.AlgorithmSetting {
	var out []*pb.AlgorithmSetting
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, &pb.AlgorithmSetting{Name: pairs[i], Value: pairs[i+1]})
	}
	return out
}

// experiment has one parameter of each kind.
func experiment(algorithm string, pairs ...string) *pb.Experiment {
	return &pb.Experiment{Name: "tune", Spec: &pb.ExperimentSpec{
		ParameterSpecs: &pb.ExperimentSpec_ParameterSpecs{Parameters: []*pb.ParameterSpec{
			integer("layers", "1", "5", ""), listed("optimizer", pb.ParameterType_CATEGORICAL, "sgd", "adam", "ftrl"),
			listed("batch", pb.ParameterType_DISCRETE, "16", "32", "64"), double("lr", "0.001", "1", "", pb.Distribution_LOG_UNIFORM),
			double("momentum", "0", "0.9", "0.3", pb.Distribution_UNIFORM),
		}},
		Objective:          &pb.ObjectiveSpec{Type: pb.ObjectiveType_MAXIMIZE, Goal: 0.9, ObjectiveMetricName: "accuracy"},
		Algorithm:          &pb.AlgorithmSpec{AlgorithmName: algorithm, AlgorithmSettings: settings(pairs...)},
		ParallelTrialCount: 2, MaxTrialCount: 12,
	}}
}

// plain has numbers only.
func plain(algorithm string, pairs ...string) *pb.Experiment {
	e := experiment(algorithm, pairs...)
	e.Spec.ParameterSpecs.Parameters = []*pb.ParameterSpec{double("lr", "0.001", "1", "", pb.Distribution_UNIFORM), integer("layers", "1", "9", "")}
	return e
}

func tried(name string, assignments []*pb.ParameterAssignment, state pb.TrialStatus_TrialConditionType, accuracy string) *pb.Trial {
	return &pb.Trial{
		Name: name,
		Spec: &pb.TrialSpec{Objective: &pb.ObjectiveSpec{Type: pb.ObjectiveType_MAXIMIZE, ObjectiveMetricName: "accuracy"},
			ParameterAssignments: &pb.TrialSpec_ParameterAssignments{Assignments: assignments}},
		Status: &pb.TrialStatus{StartTime: "2026-01-02T03:04:05Z", Condition: state,
			Observation: &pb.Observation{Metrics: []*pb.Metric{{Name: "accuracy", Value: accuracy}}}},
	}
}

func names(reply *pb.GetSuggestionsReply) (out []string) {
	for _, p := range reply.GetParameterAssignments() {
		out = append(out, p.GetTrialName())
	}
	return out
}

func points(reply *pb.GetSuggestionsReply) (out []string) {
	for _, p := range reply.GetParameterAssignments() {
		var pairs []string
		for _, a := range p.GetAssignments() {
			pairs = append(pairs, a.GetName()+"="+a.GetValue())
		}
		out = append(out, strings.Join(pairs, " "))
	}
	return out
}

// TestAnswersWhatKatibAsks plays Katib's controller: it asks two trials at a time, keeps
// the settings of the replies, and sends all trials with each request.
func TestAnswersWhatKatibAsks(t *testing.T) {
	hyperband := plain("hyperband", "r_l", "9", "resource_name", "epochs", "eta", "3")
	hyperband.Spec.ParameterSpecs.Parameters = append(hyperband.Spec.ParameterSpecs.Parameters, integer("epochs", "1", "9", ""))
	stepped := experiment("grid")
	stepped.Spec.ParameterSpecs.Parameters[3] = double("lr", "0.1", "0.5", "0.1", pb.Distribution_UNIFORM)
	unnamed := experiment("tpe") // Katib's own tests name no metric, and distributions neither
	unnamed.Spec.Objective.ObjectiveMetricName = ""
	nas := &pb.Experiment{Name: "tune", Spec: &pb.ExperimentSpec{
		Objective: experiment("").Spec.Objective, Algorithm: &pb.AlgorithmSpec{AlgorithmName: "enas"}, MaxTrialCount: 12,
		NasConfig: &pb.NasConfig{
			GraphConfig: &pb.GraphConfig{NumLayers: 3, InputSizes: []int32{32, 32, 3}, OutputSizes: []int32{10}},
			Operations: &pb.NasConfig_Operations{Operation: []*pb.Operation{{OperationType: "convolution", ParameterSpecs: &pb.Operation_ParameterSpecs{
				Parameters: []*pb.ParameterSpec{listed("filter_size", pb.ParameterType_CATEGORICAL, "3", "5"), listed("num_filter", pb.ParameterType_CATEGORICAL, "32", "64")}}}}},
		},
	}}
	cases := map[string]*pb.Experiment{
		"random":               experiment("random", "random_state", "10"),
		"tpe":                  experiment("tpe", "random_state", "10", "gamma", "0.25", "prior_weight", "1.0", "n_EI_candidates", "24"),
		"tpe of Optuna":        experiment("tpe", "n_startup_trials", "5", "n_ei_candidates", "10", "random_state", "71"),
		"multivariate-tpe":     experiment("multivariate-tpe", "n_startup_trials", "5", "random_state", "71"),
		"bayesianoptimization": experiment("bayesianoptimization", "base_estimator", "GP", "n_initial_points", "4", "acq_func", "gp_hedge", "acq_optimizer", "auto", "random_state", "10"),
		"cmaes":                plain("cmaes", "restart_strategy", "ipop", "random_state", "71"),
		"sobol":                plain("sobol"),
		"grid":                 stepped,
		"hyperband":            hyperband,
		"enas":                 nas,
		"without a metric":     unnamed,
	}
	for name, exp := range cases {
		t.Run(name, func(t *testing.T) {
			s := newServices(t)
			if _, err := s.ValidateAlgorithmSettings(t.Context(), &pb.ValidateAlgorithmSettingsRequest{Experiment: exp}); err != nil {
				t.Fatal(err)
			}
			var trials []*pb.Trial
			seen := map[string]bool{}
			own := exp.Spec.Algorithm.AlgorithmSettings
			for round := range 6 {
				reply, err := s.GetSuggestions(t.Context(), &pb.GetSuggestionsRequest{
					Experiment: exp, Trials: trials, CurrentRequestNumber: 2, TotalRequestNumber: int32(2*round + 2)})
				if err != nil {
					t.Fatal(err)
				}
				if got := len(reply.ParameterAssignments); got != 2 {
					t.Fatalf("round %d: %d trials, want 2", round, got)
				}
				for i, p := range reply.ParameterAssignments {
					if want := fmt.Sprintf("tune-%04d-", 2*round+i); !strings.HasPrefix(p.TrialName, want) {
						t.Errorf("round %d: the name is %s, want %s...", round, p.TrialName, want)
					}
					if seen[points(reply)[i]] && name != "enas" { // which may repeat an architecture
						t.Errorf("round %d: %s again", round, points(reply)[i])
					}
					seen[points(reply)[i]] = true
					trials = append(trials, tried(p.TrialName, p.Assignments, pb.TrialStatus_SUCCEEDED, strconv.Itoa(len(trials)*37%11)))
				}
				if reply.Algorithm != nil {
					exp.Spec.Algorithm.AlgorithmSettings = append(own[:len(own):len(own)], reply.Algorithm.AlgorithmSettings...)
				}
			}
		})
	}
}

// TestKeepsNothing asks a new service each time: what it needs to know of its own
// proposals is in the request, so it answers as a session in memory does.
func TestKeepsNothing(t *testing.T) {
	exp := plain("cmaes", "random_state", "7")
	var trials []*pb.Trial
	var served []string
	for round := range 8 {
		reply, err := newServices(t).GetSuggestions(t.Context(), &pb.GetSuggestionsRequest{
			Experiment: exp, Trials: trials, CurrentRequestNumber: 3, TotalRequestNumber: int32(3*round + 3)})
		if err != nil {
			t.Fatal(err)
		}
		served = append(served, points(reply)...)
		for _, p := range reply.ParameterAssignments {
			trials = append(trials, tried(p.TrialName, p.Assignments, pb.TrialStatus_SUCCEEDED, p.Assignments[0].Value))
		}
		if reply.Algorithm != nil {
			exp.Spec.Algorithm.AlgorithmSettings = append(settings("random_state", "7"), reply.Algorithm.AlgorithmSettings...)
		}
	}

	space, err := suggest.NewSpace([]suggest.ParameterSpec{
		{Name: "lr", Kind: "double", Min: "0.001", Max: "1", Distribution: "uniform"}, {Name: "layers", Kind: "int", Min: "1", Max: "9"}})
	if err != nil {
		t.Fatal(err)
	}
	known, _ := algorithm.Get("cmaes")
	cmaes, err := known.New(space, suggest.Settings{{Name: "random_state", Value: "7"}})
	if err != nil {
		t.Fatal(err)
	}
	session := suggest.Session{Algorithm: cmaes, Study: suggest.Study{
		Space: space, Objectives: []suggest.Objective{{Name: "accuracy", Direction: suggest.Maximize}}, Budget: 12, Parallel: 2}}
	var kept []string
	for range 8 {
		asked, err := session.Ask(t.Context(), 3)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range asked {
			values := space.Assignments(a.Point)
			kept = append(kept, fmt.Sprintf("lr=%s layers=%s", values[0].Value, values[1].Value))
			lr, _ := strconv.ParseFloat(values[0].Value, 64)
			if err := session.Tell(suggest.Result{Number: a.Number, Values: []float64{lr}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if diff := cmp.Diff(kept, served); diff != "" {
		t.Errorf("the service answers something else than a session (-session +service):\n%s", diff)
	}
}

func TestNumbersOfTrials(t *testing.T) {
	at := func(lr string) []*pb.ParameterAssignment {
		return []*pb.ParameterAssignment{{Name: "lr", Value: lr}, {Name: "layers", Value: "2"}}
	}
	cases := map[string]struct {
		trials []*pb.Trial
		total  int32
		want   string
	}{
		"none":                             {nil, 1, "tune-0000-00000001"},
		"no total":                         {nil, 0, "tune-0000-00000001"},
		"names of Katib's":                 {[]*pb.Trial{tried("tune-bcdfghjk", at("0.1"), pb.TrialStatus_RUNNING, "")}, 2, "tune-0001-00000001"},
		"the last one was left out":        {[]*pb.Trial{tried("tune-0000-aaaaaaaa", at("0.1"), pb.TrialStatus_SUCCEEDED, "1")}, 4, "tune-0003-00000001"},
		"more trials than were asked for":  {[]*pb.Trial{tried("tune-0008-aaaaaaaa", at("0.1"), pb.TrialStatus_SUCCEEDED, "1")}, 2, "tune-0009-00000001"},
		"one number twice":                 {[]*pb.Trial{tried("tune-0000-aaaaaaaa", at("0.1"), 2, "1"), tried("tune-0000-bbbbbbbb", at("0.2"), 2, "1")}, 1, "tune-0002-00000001"},
		"of an experiment named after one": {[]*pb.Trial{tried("tune-0007-aaaaaaaa-0001-bbbbbbbb", at("0.1"), 2, "1")}, 1, "tune-0001-00000001"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := newServices(t)
			reply, err := s.GetSuggestions(t.Context(), &pb.GetSuggestionsRequest{
				Experiment: plain("random"), Trials: c.trials, CurrentRequestNumber: 1, TotalRequestNumber: c.total})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{c.want}, names(reply)); diff != "" {
				t.Errorf("the name of the trial (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRefuses(t *testing.T) {
	without := func(algorithm string, pairs ...string) *pb.Experiment {
		e := experiment(algorithm, pairs...)
		e.Spec.ParameterSpecs = nil
		return e
	}
	kind := plain("random")
	kind.Spec.ParameterSpecs.Parameters[0].ParameterType = pb.ParameterType_UNKNOWN_TYPE
	upside := plain("random")
	upside.Spec.ParameterSpecs.Parameters[0] = double("lr", "1", "0.001", "", pb.Distribution_UNIFORM)
	cases := map[string]struct {
		exp  *pb.Experiment
		want string // of the message; empty: it is valid
	}{
		"settings alone":                {without("tpe", "n_startup_trials", "5", "n_ei_candidates", "24", "random_state", "1"), ""},
		"unknown algorithm":             {without("invalid"), "there is no algorithm"},
		"unknown setting":               {without("tpe", "invalid", "5"), "invalid"},
		"negative count":                {without("tpe", "n_startup_trials", "-1"), "n_startup_trials"},
		"misspelled setting":            {without("tpe", "n_ei_candidate", "-1"), "n_ei_candidate"},
		"negative seed":                 {without("random", "random_state", "-1"), "random_state"},
		"gamma out of range":            {without("tpe", "gamma", "1.5"), "gamma"},
		"hyperband without a resource":  {plain("hyperband", "r_l", "9"), "resource_name"},
		"grid without steps":            {experiment("grid"), "step"},
		"a parameter of no type":        {kind, "DOUBLE, INT, DISCRETE or CATEGORICAL"},
		"max below min":                 {upside, "feasibleSpace"},
		"checkpoints":                   {plain("pbt", "suggestion_trial_dir", "/opt"), "Vernier's own controller"},
		"state that is not this one's":  {plain("random", "vernier-state", "{"), "vernier-state"},
		"no name":                       {&pb.Experiment{Spec: plain("random").Spec}, "name"},
		"nothing at all":                {nil, "name"},
		"an experiment without a spec":  {&pb.Experiment{Name: "tune"}, ""},
		"a name that leaves the folder": {&pb.Experiment{Name: "../x", Spec: plain("random").Spec}, "name"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := newServices(t)
			_, err := s.ValidateAlgorithmSettings(t.Context(), &pb.ValidateAlgorithmSettingsRequest{Experiment: c.exp})
			switch {
			case c.want == "" && err != nil:
				t.Fatal(err)
			case c.want != "" && (connect.CodeOf(err) != connect.CodeInvalidArgument || !strings.Contains(err.Error(), c.want)):
				t.Fatalf("the error is %v, want InvalidArgument with %q", err, c.want)
			case c.want != "":
				_, err = s.GetSuggestions(t.Context(), &pb.GetSuggestionsRequest{Experiment: c.exp, CurrentRequestNumber: 1})
				if connect.CodeOf(err) != connect.CodeInvalidArgument {
					t.Errorf("GetSuggestions answers %v, want InvalidArgument", err)
				}
			}
		})
	}
}

func TestSaysThatNothingIsLeft(t *testing.T) {
	s := newServices(t)
	exp := plain("grid")
	exp.Spec.ParameterSpecs.Parameters = []*pb.ParameterSpec{integer("layers", "1", "2", "")}
	one := tried("tune-0000-aaaaaaaa", []*pb.ParameterAssignment{{Name: "layers", Value: "1"}}, pb.TrialStatus_SUCCEEDED, "1")
	two := tried("tune-0001-aaaaaaaa", []*pb.ParameterAssignment{{Name: "layers", Value: "2"}}, pb.TrialStatus_FAILED, "")
	reply, err := s.GetSuggestions(t.Context(), &pb.GetSuggestionsRequest{Experiment: exp, Trials: []*pb.Trial{one}, CurrentRequestNumber: 5})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"layers=2"}, points(reply)); diff != "" {
		t.Errorf("the last point (-want +got):\n%s", diff)
	}
	_, err = s.GetSuggestions(t.Context(), &pb.GetSuggestionsRequest{Experiment: exp, Trials: []*pb.Trial{one, two}, CurrentRequestNumber: 1})
	if connect.CodeOf(err) != connect.CodeOutOfRange {
		t.Errorf("the error is %v, want OutOfRange", err)
	}
	if _, err := s.GetSuggestions(t.Context(), &pb.GetSuggestionsRequest{Experiment: exp, CurrentRequestNumber: 1_000_000}); connect.CodeOf(err) != connect.CodeInvalidArgument {
		t.Errorf("a million at once: %v, want InvalidArgument", err)
	}
}

func TestProbesOfKatib(t *testing.T) {
	s := newServices(t)
	health := connect.NewClient[healthRequest, healthReply](s.http, s.url+"/grpc.health.v1.Health/Check", connect.WithCodec(rawCodec{}), connect.WithGRPC())
	for _, name := range []string{"", "manager.v1beta1.Suggestion", pb.SuggestionName, pb.EarlyStoppingName} {
		reply, err := health.CallUnary(t.Context(), connect.NewRequest(&healthRequest{name}))
		if err != nil || reply.Msg.status != int(grpchealth.StatusServing) {
			t.Errorf("%q: %v, %v", name, reply, err)
		}
	}
	if _, err := health.CallUnary(t.Context(), connect.NewRequest(&healthRequest{"another"})); connect.CodeOf(err) != connect.CodeNotFound {
		t.Errorf("a service that is not served: %v", err)
	}
}

// The messages of grpc.health.v1, whose generated code is in modules that we do not
// need: a string and a number, each field 1.
type (
	healthRequest struct{ service string }
	healthReply   struct{ status int }
	rawCodec      struct{}
)

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(m any) ([]byte, error) {
	name := m.(*healthRequest).service
	return append([]byte{0x0a, byte(len(name))}, name...), nil
}

func (rawCodec) Unmarshal(b []byte, m any) error {
	if len(b) == 2 && b[0] == 0x08 {
		m.(*healthReply).status = int(b[1])
	}
	return nil
}
