// Package suggestion serves our algorithms to callers that speak Katib's protocol: the
// services Suggestion and EarlyStopping of api.v1.beta1, with gRPC's health service and
// reflection. It keeps nothing: each request holds the experiment and its trials.
package suggestion

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"connectrpc.com/connect"
	"connectrpc.com/grpchealth"
	"connectrpc.com/grpcreflect"

	pb "github.com/vernier-ml/vernier/api/proto/katib/v1beta1"
	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/controllers/katib/message"
	"github.com/vernier-ml/vernier/controllers/study"
)

const (
	// maxRequest bounds a request, in bytes. A trial takes some 300.
	maxRequest = 32 << 20
	// maxNew bounds how many trials are proposed at once.
	maxNew = 1000
	// maxAtOnce bounds the requests that are worked on at once. More wait.
	maxAtOnce = 4
)

// Config is what the services need.
type Config struct {
	// StopTrial marks a trial of Katib's as stopped early. Nil: SetTrialStatus is not
	// implemented.
	StopTrial func(ctx context.Context, name string) error
	// Suffix is the end of a trial's name: 8 random characters of a to z and 0 to 9.
	Suffix func() string
}

// NewHandler serves Suggestion and EarlyStopping, health and reflection.
func NewHandler(cfg Config) (http.Handler, error) {
	if cfg.Suffix == nil {
		return nil, errors.New("the suggestion service needs a source of names")
	}
	s := &service{cfg: cfg, working: make(chan struct{}, maxAtOnce)}
	options := []connect.HandlerOption{connect.WithReadMaxBytes(maxRequest), connect.WithInterceptors(connect.UnaryInterceptorFunc(s.inTurn))}
	mux := http.NewServeMux()
	mux.Handle(pb.NewSuggestionHandler(s, options...))
	mux.Handle(pb.NewEarlyStoppingHandler(s, options...))
	// The second is the name that the probes of Katib's deployments ask for.
	AddHealthAndReflection(mux, []string{pb.SuggestionName, pb.EarlyStoppingName}, "manager.v1beta1.Suggestion")
	return mux, nil
}

// AddHealthAndReflection adds gRPC's health service, which says that the services are
// well, by their names and some others, and reflection.
func AddHealthAndReflection(mux *http.ServeMux, services []string, others ...string) {
	mux.Handle(grpchealth.NewHandler(grpchealth.NewStaticChecker(append(others, services...)...)))
	reflector := grpcreflect.NewStaticReflector(append([]string{grpchealth.HealthV1ServiceName}, services...)...)
	mux.Handle(grpcreflect.NewHandlerV1(reflector))
	mux.Handle(grpcreflect.NewHandlerV1Alpha(reflector))
}

type service struct {
	cfg     Config
	working chan struct{} // has an element for each request that is worked on
}

var (
	_ pb.SuggestionHandler    = (*service)(nil)
	_ pb.EarlyStoppingHandler = (*service)(nil)
)

func (s *service) inTurn(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, r connect.AnyRequest) (connect.AnyResponse, error) {
		select {
		case s.working <- struct{}{}:
			defer func() { <-s.working }()
			return next(ctx, r)
		case <-ctx.Done():
			return nil, connect.NewError(connect.CodeCanceled, ctx.Err())
		}
	}
}

// GetSuggestions implements pb.SuggestionHandler. Fewer trials than asked for means that
// results must come first.
func (s *service) GetSuggestions(ctx context.Context, r *pb.GetSuggestionsRequest) (*pb.GetSuggestionsReply, error) {
	n := int(r.GetCurrentRequestNumber())
	if n < 0 || n > maxNew {
		return nil, invalid(fmt.Errorf("current_request_number is %d; ask for 0 to %d trials at once", n, maxNew))
	}
	exp, err := message.ToExperiment(r.GetExperiment())
	if err != nil {
		return nil, invalid(err)
	}
	notes, err := takeState(exp)
	if err != nil {
		return nil, invalid(err)
	}
	if err := served(exp); err != nil {
		return nil, invalid(err)
	}
	objectiveOf(exp, r.GetTrials())
	asked, err := study.New(exp)
	if err != nil {
		return nil, invalid(err)
	}
	trials := trialsOf(r, notes)
	asked.Update(trials)
	proposals, err := asked.Propose(ctx, n)
	switch {
	case errors.Is(err, study.ErrExhausted):
		return nil, connect.NewError(connect.CodeOutOfRange, err)
	case ctx.Err() != nil:
		return nil, connect.NewError(connect.CodeCanceled, ctx.Err())
	case err != nil:
		return nil, connect.NewError(connect.CodeInternal, err)
	}
	reply, err := replyOf(r, proposals, next(trials), notes, s.cfg.Suffix)
	if err != nil {
		return nil, connect.NewError(connect.CodeInternal, err)
	}
	return reply, nil
}

// ValidateAlgorithmSettings implements pb.SuggestionHandler. Without parameters the
// settings are looked at alone.
func (s *service) ValidateAlgorithmSettings(_ context.Context, r *pb.ValidateAlgorithmSettingsRequest) (*pb.ValidateAlgorithmSettingsReply, error) {
	exp, err := message.ToExperiment(r.GetExperiment())
	if err != nil {
		return nil, invalid(err)
	}
	if _, err := takeState(exp); err != nil {
		return nil, invalid(err)
	}
	if err := served(exp); err != nil {
		return nil, invalid(err)
	}
	if len(exp.Spec.Parameters) == 0 && exp.Spec.NasConfig == nil {
		exp.Spec.Parameters = standIns()
	}
	if errs := study.Check(&exp.Spec); len(errs) > 0 {
		return nil, invalid(errs.ToAggregate())
	}
	return &pb.ValidateAlgorithmSettingsReply{}, nil
}

// standIns are parameters that every algorithm takes.
func standIns() []v1beta1.ParameterSpec {
	space := v1beta1.FeasibleSpace{Min: "0", Max: "1", Step: "0.5", Distribution: v1beta1.DistributionUniform}
	return []v1beta1.ParameterSpec{
		{Name: "a", ParameterType: v1beta1.ParameterTypeDouble, FeasibleSpace: space},
		{Name: "b", ParameterType: v1beta1.ParameterTypeDouble, FeasibleSpace: space},
	}
}

// served says which of our algorithms cannot be served by this protocol.
func served(exp *v1beta1.Experiment) error {
	switch name := exp.Spec.Algorithm.AlgorithmName; {
	case !slices.Contains(study.Algorithms(), name):
		return fmt.Errorf("there is no algorithm %q; use one of %s", name, strings.Join(study.Algorithms(), ", "))
	case name == "pbt" || name == "pb2":
		return fmt.Errorf("%s copies checkpoints between trials, for which this service has no volume: use it with Vernier's own controller", name)
	case exp.Name == "" || strings.ContainsAny(exp.Name, "/ "):
		return fmt.Errorf("the experiment's name is %q; give the name of the object", exp.Name)
	}
	return nil
}

func invalid(err error) error { return connect.NewError(connect.CodeInvalidArgument, err) }
