package suggestion_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	pb "github.com/vernier-ml/vernier/api/proto/katib/v1beta1"
)

// dbManager holds curves by trial.
type dbManager struct {
	pb.UnimplementedDBManagerHandler
	curves map[string][]string
}

func (d dbManager) GetObservationLog(_ context.Context, r *pb.GetObservationLogRequest) (*pb.GetObservationLogReply, error) {
	log := &pb.ObservationLog{}
	for _, v := range d.curves[r.TrialName] {
		if r.MetricName == "accuracy" {
			log.MetricLogs = append(log.MetricLogs, &pb.MetricLog{TimeStamp: "0001-01-01T00:00:00Z", Metric: &pb.Metric{Name: "accuracy", Value: v}})
		}
	}
	return &pb.GetObservationLogReply{ObservationLog: log}, nil
}

func TestRulesForTrialsThatStart(t *testing.T) {
	mux := http.NewServeMux()
	mux.Handle(pb.NewDBManagerHandler(dbManager{curves: map[string][]string{
		"a": {"0.1", "0.3", "0.9"}, "b": {"0.4", "0.6", "0.9"}, "c": {"0.8", "1.0", "0.9"}, "d": {"7", "7", "7"},
	}}))
	_, url := serve(t, mux)
	rule := func(pairs ...string) *pb.EarlyStoppingSpec {
		e := &pb.EarlyStoppingSpec{AlgorithmName: "medianstop"}
		for _, s := range settings(pairs...) {
			e.AlgorithmSettings = append(e.AlgorithmSettings, &pb.EarlyStoppingSetting{Name: s.Name, Value: s.Value})
		}
		return e
	}
	three := []*pb.Trial{
		tried("a", nil, pb.TrialStatus_SUCCEEDED, "0.9"), tried("b", nil, pb.TrialStatus_SUCCEEDED, "0.9"), tried("c", nil, pb.TrialStatus_SUCCEEDED, "0.9"),
	}
	cases := map[string]struct {
		rule    *pb.EarlyStoppingSpec
		minimum bool
		trials  []*pb.Trial
		want    []*pb.EarlyStoppingRule
	}{
		// The averages of the first two reports are 0.2, 0.5 and 0.9.
		"the median of the averages": {rule("min_trials_required", "3", "start_step", "2"), false, three,
			[]*pb.EarlyStoppingRule{{Name: "accuracy", Value: "0.5", Comparison: pb.ComparisonType_LESS, StartStep: 2}}},
		"minimized": {rule("min_trials_required", "3", "start_step", "2"), true, three,
			[]*pb.EarlyStoppingRule{{Name: "accuracy", Value: "0.5", Comparison: pb.ComparisonType_GREATER, StartStep: 2}}},
		"too few trials": {rule("min_trials_required", "4", "start_step", "2"), false, three, nil},
		"a running trial does not count": {rule("min_trials_required", "4", "start_step", "2"), false,
			append(three[:3:3], tried("d", nil, pb.TrialStatus_RUNNING, "")), nil},
		"no rule": {nil, false, three, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			exp := plain("someone-elses")
			exp.Spec.EarlyStopping = c.rule
			if c.minimum {
				exp.Spec.Objective.Type = pb.ObjectiveType_MINIMIZE
			}
			reply, err := newServices(t).stopping.GetEarlyStoppingRules(t.Context(), &pb.GetEarlyStoppingRulesRequest{
				Experiment: exp, Trials: c.trials, DbManagerAddress: strings.TrimPrefix(url, "http://")})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, reply.EarlyStoppingRules, protocmp.Transform()); diff != "" {
				t.Errorf("the rules (-want +got):\n%s", diff)
			}
		})
	}
}

func TestStoppingSettings(t *testing.T) {
	setting := func(name, value string) []*pb.EarlyStoppingSetting {
		return []*pb.EarlyStoppingSetting{{Name: name, Value: value}}
	}
	cases := map[string]struct {
		rule *pb.EarlyStoppingSpec
		want string // of the message; empty: it is valid
	}{
		"medianstop":              {&pb.EarlyStoppingSpec{AlgorithmName: "medianstop", AlgorithmSettings: setting("start_step", "5")}, ""},
		"percentile":              {&pb.EarlyStoppingSpec{AlgorithmName: "percentile"}, ""},
		"unknown":                 {&pb.EarlyStoppingSpec{AlgorithmName: "unknown"}, "there is no rule"},
		"unknown setting":         {&pb.EarlyStoppingSpec{AlgorithmName: "medianstop", AlgorithmSettings: setting("unknown_conf", "100")}, "unknown_conf"},
		"no trial":                {&pb.EarlyStoppingSpec{AlgorithmName: "medianstop", AlgorithmSettings: setting("min_trials_required", "0")}, "min_trials_required"},
		"no report":               {&pb.EarlyStoppingSpec{AlgorithmName: "medianstop", AlgorithmSettings: setting("start_step", "0")}, "start_step"},
		"cannot be told in ahead": {&pb.EarlyStoppingSpec{AlgorithmName: "asha"}, "medianstop or percentile"},
		"none":                    {nil, "no early stopping rule"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := newServices(t).stopping.ValidateEarlyStoppingSettings(t.Context(), &pb.ValidateEarlyStoppingSettingsRequest{EarlyStopping: c.rule})
			if c.want == "" && err != nil {
				t.Fatal(err)
			}
			if c.want != "" && (connect.CodeOf(err) != connect.CodeInvalidArgument || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("the error is %v, want InvalidArgument with %q", err, c.want)
			}
		})
	}
}

func TestStopsATrial(t *testing.T) {
	s := newServices(t)
	if _, err := s.stopping.SetTrialStatus(t.Context(), &pb.SetTrialStatusRequest{TrialName: "tune-0001"}); err != nil {
		t.Error(err)
	}
	if _, err := s.stopping.SetTrialStatus(t.Context(), &pb.SetTrialStatusRequest{TrialName: "gone"}); connect.CodeOf(err) != connect.CodeUnavailable {
		t.Errorf("a trial that is gone: %v, want Unavailable", err)
	}
	if _, err := s.stopping.SetTrialStatus(t.Context(), &pb.SetTrialStatusRequest{}); connect.CodeOf(err) != connect.CodeInvalidArgument {
		t.Errorf("no name: %v, want InvalidArgument", err)
	}
	if diff := cmp.Diff([]string{"tune-0001", "gone"}, s.stopped); diff != "" {
		t.Errorf("trials that were stopped (-want +got):\n%s", diff)
	}
}
