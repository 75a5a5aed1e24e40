// Package api serves vernier.v1: experiments, and their trials for programs that run
// them wherever they like. docs/api.md describes it.
//
// All state is in the objects and in the store of points, so that any manager answers
// any call, and one that is killed at any line loses nothing.
package api

import (
	"context"
	_ "embed"
	"fmt"
	"hash/maphash"
	"net/http"
	"slices"
	"sync"
	"time"

	"connectrpc.com/connect"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	vernierv1 "github.com/vernier-ml/vernier/api/proto/vernier/v1"
	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/controllers/experiment"
	"github.com/vernier-ml/vernier/controllers/study"
	"github.com/vernier-ml/vernier/controllers/webhook"
)

const (
	maxBody = 4 << 20
	// compressFrom is the size of an answer in bytes from which compressing it is worth
	// the time, as a trial is not.
	compressFrom = 4 << 10
)

// Config of the service. All of it is needed, but for EndedLogs, Volumes and As.
type Config struct {
	// Client reads from a cache that holds experiments and trials; Reader reads what
	// is there now.
	Client client.Client
	Reader client.Reader
	// Experiments hands trials out.
	Experiments *experiment.Controller
	// Store takes the points.
	Store collector.Store
	// OnPoints is told that a trial has new points. It must not block.
	OnPoints func(collector.TrialID)
	// OnEnd is told of a trial that a caller has ended, and of its status before.
	OnEnd func(ctx context.Context, t *v1beta1.Trial, before *v1beta1.TrialStatus)
	// Changes tells what streams wait for.
	Changes *Changes
	// Logs reads logs of pods.
	Logs Logs
	// EndedLogs reads those of trials whose pods are gone. Nil: none are kept.
	EndedLogs EndedLogs
	// Volumes is where the files of trials are, if this machine has them.
	Volumes Volumes
	// Access says who may do what.
	Access Access
	// As writes experiments in the name of a user, so that audit and admission see who
	// it is. Nil: the manager's name is on them.
	As func(authenticationv1.UserInfo) (client.Writer, error)
	// Version of the program, for people.
	Version string
	Now     func() time.Time
}

// Mount adds the services to mux, and returns the paths below which they are.
func Mount(mux *http.ServeMux, c Config) (paths []string) { return newService(c).mount(mux) }

func (s *service) mount(mux *http.ServeMux) (paths []string) {
	options := connect.WithHandlerOptions(connect.WithReadMaxBytes(maxBody), connect.WithCompressMinBytes(compressFrom), strict())
	for _, add := range []func() (string, http.Handler){
		func() (string, http.Handler) { return vernierv1.NewExperimentServiceHandler(s, options) },
		func() (string, http.Handler) { return vernierv1.NewDashboardServiceHandler(s, options) },
	} {
		path, handler := add()
		mux.Handle(path, s.guard(endless(handler)))
		paths = append(paths, path)
	}
	mux.HandleFunc("GET "+openapiPath, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/yaml")
		_, _ = w.Write(openapi) // the caller has gone
	})
	return append(paths, openapiPath)
}

// openapi describes the services as HTTP with JSON. It says nothing of what runs here,
// so that it needs no token.
//
//go:embed openapi.yaml
var openapi []byte

const openapiPath = "/openapi.yaml"

type service struct {
	Config

	mu   sync.Mutex
	seed maphash.Seed
	// freed are closed, and made anew, when there may be a trial for who waits. Few
	// experiments share one.
	freed [waitingRooms]chan struct{}

	tables  tables
	kept    keptCurves
	studies *cache.LRUExpireCache // of *analyzed by analyzedKey
	alerted *cache.LRUExpireCache // of []*vernierv1.Alert by alertedKey
	// nodesRead has the nodes of the cluster, a []corev1.Node, at nodesKey.
	nodesRead *cache.LRUExpireCache
	// analyzing and sharing hold those that are at work on an analysis or a shared file.
	analyzing, sharing chan struct{}
	patience           time.Duration // with those who read streams
	seriesPatience     time.Duration // with the store, as the constant is
}

const waitingRooms = 64

func newService(c Config) *service {
	s := &service{Config: c, seed: maphash.MakeSeed(), patience: sendPatience, seriesPatience: seriesPatience,
		studies: cache.NewLRUExpireCache(mostAnalyzed), alerted: cache.NewLRUExpireCache(mostAlerted), nodesRead: cache.NewLRUExpireCache(1),
		analyzing: make(chan struct{}, 2), sharing: make(chan struct{}, 2)}
	for i := range s.freed {
		s.freed[i] = make(chan struct{})
	}
	return s
}

var _ vernierv1.ExperimentServiceHandler = (*service)(nil)

// CreateExperiment implements vernierv1.ExperimentServiceHandler.
func (s *service) CreateExperiment(ctx context.Context, r *vernierv1.CreateExperimentRequest) (*vernierv1.Experiment, error) {
	p, err := target(r)
	if err != nil {
		return nil, err
	}
	if err := s.allow(ctx, "create", "experiments", place{namespace: p.namespace}); err != nil {
		return nil, err
	}
	exp, p, err := wanted(r)
	if err != nil {
		return nil, err
	}
	v1beta1.SetDefaults(exp)
	want := exp.DeepCopy()
	var options []client.CreateOption
	if r.GetValidateOnly() {
		options = append(options, client.DryRunAll)
	}
	writer, err := s.as(ctx)
	if err != nil {
		return nil, explain(ctx, err)
	}
	err = writer.Create(ctx, exp, options...)
	if apierrors.IsAlreadyExists(err) {
		same := false
		if err := s.allow(ctx, "get", "experiments", p); err != nil {
			if connect.CodeOf(err) != connect.CodePermissionDenied {
				return nil, err
			}
			return nil, fault(connect.CodeAlreadyExists, ReasonAlreadyExists, "use another name",
				"there is an experiment %s, and %s may not get it", p.key(), caller(ctx).Username)
		}
		if err = s.Reader.Get(ctx, p.key(), exp); err == nil {
			same, err = webhook.SameSpec(want, exp)
		}
		if err == nil && !same {
			return nil, fault(connect.CodeAlreadyExists, ReasonAlreadyExists, "use another name, or delete that one first",
				"there is an experiment %s with another spec", p.key())
		}
	}
	if err != nil {
		return nil, explain(ctx, err)
	}
	v1beta1.SetDefaults(exp)
	out, err := experimentOut(exp)
	if err == nil {
		out.Warnings, _ = s.Experiments.Rules.Validate(exp, nil)
	}
	return out, err
}

// GetExperiment implements vernierv1.ExperimentServiceHandler.
func (s *service) GetExperiment(ctx context.Context, r *vernierv1.GetExperimentRequest) (*vernierv1.Experiment, error) {
	p, err := parsePlace("name", r.GetName(), experimentForm)
	if err != nil {
		return nil, err
	}
	if err := s.allow(ctx, "get", "experiments", p); err != nil {
		return nil, err
	}
	exp, err := s.experiment(ctx, p)
	if err != nil {
		return nil, err
	}
	out, err := experimentOut(exp)
	if err != nil {
		return nil, explain(ctx, err)
	}
	return out, s.addQueued(ctx, exp, out)
}

func (s *service) experiment(ctx context.Context, p place) (*v1beta1.Experiment, error) {
	exp := &v1beta1.Experiment{}
	err := s.Client.Get(ctx, p.key(), exp)
	if apierrors.IsNotFound(err) { // it may have been created a moment ago
		err = s.Reader.Get(ctx, p.key(), exp)
	}
	v1beta1.SetDefaults(exp)
	return exp, explain(ctx, err)
}

// ListExperiments implements vernierv1.ExperimentServiceHandler.
func (s *service) ListExperiments(ctx context.Context, r *vernierv1.ListExperimentsRequest) (*vernierv1.ListExperimentsResponse, error) {
	p, err := parsePlace("parent", r.GetParent(), namespaceForm)
	if err != nil {
		return nil, err
	}
	if err := s.allow(ctx, "list", "experiments", p); err != nil {
		return nil, err
	}
	var list v1beta1.ExperimentList
	if err := s.Client.List(ctx, &list, client.InNamespace(p.namespace)); err != nil {
		return nil, explain(ctx, err)
	}
	out := &vernierv1.ListExperimentsResponse{}
	for i := range list.Items {
		e, err := experimentOut(&list.Items[i])
		if err == nil {
			err = s.addQueued(ctx, &list.Items[i], e)
		}
		if err != nil {
			return nil, explain(ctx, err)
		}
		out.Experiments = append(out.Experiments, e)
	}
	return out, nil
}

// trials are those of an experiment, in order of number. They are the cache's own.
func (s *service) trials(ctx context.Context, p place) (*v1beta1.Experiment, []*v1beta1.Trial, error) {
	if err := s.allow(ctx, "list", "trials", p); err != nil {
		return nil, nil, err
	}
	exp, err := s.experiment(ctx, p)
	if err != nil {
		return nil, nil, err
	}
	trials, err := s.Experiments.Trials.Of(ctx, exp)
	return exp, trials, explain(ctx, err)
}

// ListTrials implements vernierv1.ExperimentServiceHandler.
func (s *service) ListTrials(ctx context.Context, r *vernierv1.ListTrialsRequest) (*vernierv1.ListTrialsResponse, error) {
	const usual, most = 1_000, 10_000
	size, from := int(r.GetPageSize()), -1
	if size == 0 {
		size = usual
	}
	if size < 0 || size > most {
		return nil, invalid(fmt.Sprintf("give 1 to %d", most), "page_size is %d", size)
	}
	if token := r.GetPageToken(); token != "" {
		if _, err := fmt.Sscanf(token, "after-%d", &from); err != nil {
			return nil, invalid("give the next_page_token of a page", "page_token is %q", token)
		}
	}
	p, err := parsePlace("parent", r.GetParent(), experimentForm)
	if err != nil {
		return nil, err
	}
	exp, trials, err := s.trials(ctx, p)
	if err != nil {
		return nil, err
	}
	out, now := &vernierv1.ListTrialsResponse{}, s.Now()
	onLaterPage := func(n int) bool { return n > from }
	if r.GetNewestFirst() {
		trials = slices.Clone(trials) // they are shared
		slices.Reverse(trials)
		onLaterPage = func(n int) bool { return from < 0 || n < from }
	}
	for _, t := range trials {
		n, _ := t.Number()
		switch {
		case !onLaterPage(n), len(r.GetStates()) > 0 && !slices.Contains(r.GetStates(), stateOf(t, now)):
		case len(out.Trials) == size:
			out.NextPageToken = fmt.Sprintf("after-%d", out.Trials[size-1].GetNumber())
			return out, nil
		default:
			out.Trials = append(out.Trials, trialOut(exp, t, now))
		}
	}
	return out, nil
}

// ListOptimalTrials implements vernierv1.ExperimentServiceHandler.
func (s *service) ListOptimalTrials(ctx context.Context, r *vernierv1.ListOptimalTrialsRequest) (*vernierv1.ListTrialsResponse, error) {
	p, err := parsePlace("parent", r.GetParent(), experimentForm)
	if err != nil {
		return nil, err
	}
	exp, trials, err := s.trials(ctx, p)
	if err != nil {
		return nil, err
	}
	ranking := study.Rank(&exp.Spec, trials)
	names := map[string]bool{}
	for _, name := range ranking.Front(len(trials)) {
		names[name] = true
	}
	if best := ranking.Best(); best != nil {
		names[best.Name] = true
	}
	out, now := &vernierv1.ListTrialsResponse{}, s.Now()
	for _, t := range trials {
		if names[t.Name] {
			out.Trials = append(out.Trials, trialOut(exp, t, now))
		}
	}
	return out, nil
}
