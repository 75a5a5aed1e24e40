package suggestion

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"connectrpc.com/connect"

	pb "github.com/vernier-ml/vernier/api/proto/katib/v1beta1"
	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/controllers/katib/message"
	"github.com/vernier-ml/vernier/controllers/study"
)

const (
	// readPatience is how long the curves of one request may take to be read: Katib's
	// controller waits a minute for the answer.
	readPatience = 45 * time.Second
	// maxLog bounds what the DBManager sends of one trial, in bytes.
	maxLog = 32 << 20
)

// GetEarlyStoppingRules implements pb.EarlyStoppingHandler. It reads the metrics of the
// trials that succeeded from the DBManager that the request names.
func (s *service) GetEarlyStoppingRules(ctx context.Context, r *pb.GetEarlyStoppingRulesRequest) (*pb.GetEarlyStoppingRulesReply, error) {
	exp, err := message.ToExperiment(r.GetExperiment())
	if err != nil {
		return nil, invalid(err)
	}
	exp.Spec.EarlyStopping = ruleOf(r.GetExperiment().GetSpec().GetEarlyStopping())
	if exp.Spec.EarlyStopping == nil {
		return &pb.GetEarlyStoppingRulesReply{}, nil
	}
	if err := study.CheckLimits(&exp.Spec); err != nil {
		return nil, invalid(err)
	}
	objectiveOf(exp, r.GetTrials())
	// The rule is what is asked for: another service may know the algorithm.
	exp.Spec.Algorithm = &v1beta1.AlgorithmSpec{AlgorithmName: "random"}
	if exp.Spec.NasConfig != nil || len(exp.Spec.Parameters) == 0 {
		exp.Spec.NasConfig, exp.Spec.Parameters = nil, standIns()
	}
	judged, err := study.New(exp)
	if err != nil {
		return nil, invalid(err)
	}
	judged.Update(trialsOf(&pb.GetSuggestionsRequest{Experiment: r.GetExperiment(), Trials: r.GetTrials()}, nil))
	ctx, cancel := context.WithTimeout(ctx, readPatience)
	defer cancel()
	scan, done := scanOf(r.GetDbManagerAddress())
	defer done()
	rules, err := judged.Limits(ctx, scan)
	if err != nil {
		return nil, connect.NewError(connect.CodeUnavailable, err)
	}
	return &pb.GetEarlyStoppingRulesReply{EarlyStoppingRules: message.Rules(rules)}, nil
}

// scanOf reads the metrics of trials, whose UIDs are their names here, from Katib's
// DBManager. done closes its connections.
func scanOf(address string) (scan study.Scan, done func()) {
	transport := &http.Transport{Protocols: new(http.Protocols), DialContext: (&net.Dialer{Timeout: 10 * time.Second}).DialContext}
	transport.Protocols.SetUnencryptedHTTP2(true)
	db := pb.NewDBManagerClient(&http.Client{Transport: transport}, "http://"+address, connect.WithGRPC(), connect.WithReadMaxBytes(maxLog))
	return func(ctx context.Context, trial string, metrics []string, yield func(collector.Attempt, collector.Point) error) error {
		for _, metric := range metrics {
			reply, err := db.GetObservationLog(ctx, &pb.GetObservationLogRequest{TrialName: trial, MetricName: metric})
			if err != nil {
				return fmt.Errorf("ask the DBManager at %s for %s: %w", address, metric, err)
			}
			for i, l := range reply.GetObservationLog().GetMetricLogs() {
				p := collector.Point{Metric: metric, Step: collector.NoStep, Seq: int64(i)}
				p.Value, p.Text = collector.ParseValue(l.GetMetric().GetValue(), maxText)
				if err := yield(collector.Attempt{ID: trial}, p); err != nil {
					return err
				}
			}
		}
		return nil
	}, transport.CloseIdleConnections
}

const maxText = 256 // bytes of a value that is no number

// ValidateEarlyStoppingSettings implements pb.EarlyStoppingHandler.
func (s *service) ValidateEarlyStoppingSettings(_ context.Context, r *pb.ValidateEarlyStoppingSettingsRequest) (*pb.ValidateEarlyStoppingSettingsReply, error) {
	rule := ruleOf(r.GetEarlyStopping())
	if rule == nil {
		return nil, invalid(errors.New("no early stopping rule is named; use medianstop or percentile"))
	}
	if err := study.CheckLimits(&v1beta1.ExperimentSpec{EarlyStopping: rule}); err != nil {
		return nil, invalid(err)
	}
	return &pb.ValidateEarlyStoppingSettingsReply{}, nil
}

// ruleOf is the rule that a message names; nil when it names none.
func ruleOf(m *pb.EarlyStoppingSpec) *v1beta1.EarlyStoppingSpec {
	if m.GetAlgorithmName() == "" {
		return nil
	}
	rule := &v1beta1.EarlyStoppingSpec{AlgorithmName: m.GetAlgorithmName()}
	for _, s := range m.GetAlgorithmSettings() {
		rule.AlgorithmSettings = append(rule.AlgorithmSettings, v1beta1.EarlyStoppingSetting{Name: s.GetName(), Value: s.GetValue()})
	}
	return rule
}

// SetTrialStatus implements pb.EarlyStoppingHandler.
func (s *service) SetTrialStatus(ctx context.Context, r *pb.SetTrialStatusRequest) (*pb.SetTrialStatusReply, error) {
	switch {
	case s.cfg.StopTrial == nil:
		return nil, connect.NewError(connect.CodeUnimplemented, errors.New("this service does not run in a pod, so it cannot write to Trials"))
	case r.GetTrialName() == "":
		return nil, invalid(errors.New("no trial is named"))
	}
	if err := s.cfg.StopTrial(ctx, r.GetTrialName()); err != nil {
		return nil, connect.NewError(connect.CodeUnavailable, err)
	}
	return &pb.SetTrialStatusReply{}, nil
}
