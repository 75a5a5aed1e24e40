package api

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/structpb"

	vernierv1 "github.com/vernier-ml/vernier/api/proto/vernier/v1"
	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/controllers/study"
)

const (
	// maxID bounds a request_id, and maxInitial the points of an experiment, as its
	// definition does.
	maxID, maxInitial = 100, 1000
	// queueTries is how often a point is queued again in an experiment that changes
	// meanwhile.
	queueTries = 5
)

// CreateTrial implements vernierv1.ExperimentServiceHandler.
func (s *service) CreateTrial(ctx context.Context, r *vernierv1.CreateTrialRequest) (*vernierv1.QueuedTrial, error) {
	p, err := parsePlace("parent", r.GetParent(), experimentForm)
	if err != nil {
		return nil, err
	}
	if err := s.allow(ctx, "patch", "experiments", p); err != nil {
		return nil, err
	}
	point, err := assignments(r.GetParameters())
	if err != nil {
		return nil, err
	}
	return s.queue(ctx, p, r.GetRequestId(), point)
}

// RerunTrial implements vernierv1.ExperimentServiceHandler.
func (s *service) RerunTrial(ctx context.Context, r *vernierv1.RerunTrialRequest) (*vernierv1.QueuedTrial, error) {
	p, err := parsePlace("name", r.GetName(), trialForm)
	if err != nil {
		return nil, err
	}
	of := place{namespace: p.namespace, experiment: p.experiment}
	if err := s.allow(ctx, "patch", "experiments", of); err != nil {
		return nil, err
	}
	if err := s.allow(ctx, "get", "trials", p); err != nil {
		return nil, err
	}
	t, err := s.trial(ctx, p)
	if err != nil {
		return nil, err
	}
	queued, err := s.queue(ctx, of, r.GetRequestId(), t.Spec.ParameterAssignments)
	if number, ok := t.Number(); ok && err == nil {
		n := int32(number)
		queued.RerunOf = &n
	}
	return queued, err
}

// assignments are the parameters of a request, by name.
func assignments(values map[string]*structpb.Value) (out []v1beta1.ParameterAssignment, err error) {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		a := v1beta1.ParameterAssignment{Name: name}
		switch v := values[name].GetKind().(type) {
		case *structpb.Value_NumberValue:
			a.Value = numberText(v.NumberValue)
		case *structpb.Value_StringValue:
			a.Value = v.StringValue
		default:
			return nil, invalid("give a number or a string", "parameters.%s is %v", name, values[name].AsInterface())
		}
		out = append(out, a)
	}
	return out, nil
}

// numberText is a number as programs read it: a whole one has no exponent.
func numberText(x float64) string {
	if x == math.Trunc(x) && math.Abs(x) <= 1<<53 {
		return strconv.FormatInt(int64(x), 10)
	}
	return strconv.FormatFloat(x, 'g', -1, 64)
}

// queue adds a point to the experiment, once for each id.
func (s *service) queue(ctx context.Context, p place, id string, point []v1beta1.ParameterAssignment) (*vernierv1.QueuedTrial, error) {
	if id == "" {
		id = rand.Text()
	}
	if len(id) > maxID {
		return nil, invalid(fmt.Sprintf("give at most %d", maxID), "request_id has %d characters", len(id))
	}
	for try := 0; ; try++ {
		exp := &v1beta1.Experiment{}
		if err := s.Reader.Get(ctx, p.key(), exp); err != nil {
			return nil, explain(ctx, err)
		}
		all := exp.Spec.InitialTrials
		if i := slices.IndexFunc(all, func(t v1beta1.InitialTrial) bool { return t.ID == id }); i >= 0 {
			return queuedOut(exp, all[i]), nil
		}
		if err := mayQueue(exp); err != nil {
			return nil, err
		}
		if err := s.mayTry(ctx, exp); err != nil {
			return nil, err
		}
		added := v1beta1.InitialTrial{ID: id, ParameterAssignments: point}
		if err := s.fits(exp, added); err != nil {
			return nil, err
		}
		_, err := s.patch(ctx, p, map[string]any{
			"metadata": map[string]any{"resourceVersion": exp.ResourceVersion},
			"spec":     map[string]any{"initialTrials": append(slices.Clone(all), added)},
		}, false)
		if connect.CodeOf(err) == connect.CodeAborted && try < queueTries {
			continue
		}
		if err != nil {
			return nil, err
		}
		return queuedOut(exp, added), nil
	}
}

// fits says what is wrong with a point. Where no webhook is asked, it would end the
// experiment.
func (s *service) fits(exp *v1beta1.Experiment, added v1beta1.InitialTrial) error {
	before := exp.DeepCopy()
	v1beta1.SetDefaults(before)
	after := before.DeepCopy()
	after.Spec.InitialTrials = append(after.Spec.InitialTrials, added)
	if _, errs := s.Experiments.Rules.Validate(after, before); len(errs) > 0 {
		return invalid("correct what is named", "%w", errs.ToAggregate())
	}
	return nil
}

// mayQueue says why no point can be queued.
func mayQueue(exp *v1beta1.Experiment) error {
	key := place{namespace: exp.Namespace, experiment: exp.Name}.key()
	switch {
	case exp.IsCompleted():
		return fault(connect.CodeFailedPrecondition, ReasonCannotStart, "raise max_trial_count first, so that it goes on", "experiment %s has ended", key)
	case study.ProposedByService(&exp.Spec):
		return fault(connect.CodeFailedPrecondition, ReasonCannotStart, "queue points where the algorithm is one of Vernier's", "the algorithm %s of experiment %s is a service that proposes all trials", exp.Spec.Algorithm.AlgorithmName, key)
	case len(exp.Spec.InitialTrials) >= maxInitial:
		return fault(connect.CodeResourceExhausted, ReasonQuota, "remove some of spec.initialTrials that were tried", "experiment %s has %d points", key, len(exp.Spec.InitialTrials))
	}
	return nil
}

// mayTry says why no trial would take one point more.
func (s *service) mayTry(ctx context.Context, exp *v1beta1.Experiment) error {
	limit := exp.Spec.MaxTrialCount
	if limit == nil {
		return nil
	}
	trials, err := s.Experiments.Trials.Of(ctx, exp)
	if err != nil {
		return explain(ctx, err)
	}
	if n := len(trials) + len(study.Queued(exp, trials)); n >= int(*limit) {
		return fault(connect.CodeFailedPrecondition, ReasonCannotStart, "raise max_trial_count first",
			"experiment %s/%s has %d trials and queued points, and its maxTrialCount is %d", exp.Namespace, exp.Name, n, *limit)
	}
	return nil
}

func queuedOut(exp *v1beta1.Experiment, t v1beta1.InitialTrial) *vernierv1.QueuedTrial {
	as := &v1beta1.Trial{Spec: v1beta1.TrialSpec{ParameterAssignments: t.ParameterAssignments}}
	return &vernierv1.QueuedTrial{Id: t.ID, Parameters: parametersOut(exp, as)}
}

// addQueued adds the points that wait to be tried.
func (s *service) addQueued(ctx context.Context, exp *v1beta1.Experiment, out *vernierv1.Experiment) error {
	if !slices.ContainsFunc(exp.Spec.InitialTrials, func(t v1beta1.InitialTrial) bool { return t.ID != "" }) || exp.IsCompleted() {
		return nil
	}
	trials, err := s.Experiments.Trials.Of(ctx, exp)
	if err != nil {
		return explain(ctx, err)
	}
	for _, t := range study.Queued(exp, trials) {
		out.Queued = append(out.Queued, queuedOut(exp, t))
	}
	return nil
}
