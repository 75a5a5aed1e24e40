package api

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"connectrpc.com/connect"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	vernierv1 "github.com/vernier-ml/vernier/api/proto/vernier/v1"
	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/contract"
	"github.com/vernier-ml/vernier/controllers/trial"
)

// CompleteTrial implements vernierv1.ExperimentServiceHandler.
func (s *service) CompleteTrial(ctx context.Context, r *vernierv1.CompleteTrialRequest) (*vernierv1.Trial, error) {
	p, err := parsePlace("name", r.GetName(), trialForm)
	if err != nil {
		return nil, err
	}
	if err := s.allow(ctx, "update", "trials/lease", p); err != nil {
		return nil, err
	}
	if r.GetOutcome() == nil {
		return nil, invalid("give succeeded, pruned, failed or infeasible", "the outcome is missing")
	}
	t, err := s.change(ctx, p, r.GetAttempt(), func(t *v1beta1.Trial, l v1beta1.Lease, stale error) (*v1beta1.Trial, error) {
		if stale != nil {
			return nil, stale
		}
		after := t.DeepCopy()
		if err := s.end(ctx, after, l, r); err != nil {
			return nil, err
		}
		switch {
		case !t.IsCompleted():
			written, err := s.update(ctx, after)
			if err == nil {
				s.OnEnd(ctx, written, &t.Status)
			}
			return written, err
		case sameEnd(t, after):
			return nil, nil
		}
		return nil, completed(t)
	})
	if err != nil {
		return nil, err
	}
	s.free(p)
	return s.out(ctx, p, t)
}

// end writes the outcome of r into a trial, whether it has ended or not.
func (s *service) end(ctx context.Context, t *v1beta1.Trial, l v1beta1.Lease, r *vernierv1.CompleteTrialRequest) error {
	observed, err := trial.Condense(ctx, s.Store, t)
	if err != nil {
		return err
	}
	if observed, err = withValues(t, observed, r.GetSucceeded().GetValues()); err != nil {
		return err
	}
	if r.GetSucceeded() != nil {
		if lacking := unmeasured(t, observed); len(lacking) > 0 {
			return fault(connect.CodeFailedPrecondition, ReasonNotMeasured, "give its value, or complete the trial as failed",
				"the objective %s was neither given nor reported", strings.Join(lacking, ", "))
		}
	}
	now := metav1.NewTime(s.Now())
	started := metav1.NewTime(l.Started)
	t.Status.Conditions = slices.DeleteFunc(t.Status.Conditions, func(c v1beta1.TrialCondition) bool { return c.Type.Ended() })
	t.MarkCreated("Trial is created", now)
	switch {
	case r.GetSucceeded() != nil:
		t.MarkSucceeded("Trial has succeeded", now)
	case r.GetPruned() != nil && t.Annotations[v1beta1.AnnotationStop] != "":
		t.MarkKilled("Trial was stopped: "+t.Annotations[v1beta1.AnnotationStop], now)
	case r.GetPruned() != nil:
		why := cmp.Or(t.Annotations[v1beta1.AnnotationStopEarly], "its worker says so")
		t.MarkEarlyStopped("Trial was stopped early: "+why, now)
	case r.GetInfeasible() != nil:
		t.MarkInfeasible("Trial has failed: its point cannot be evaluated. "+contract.Shorten(r.GetInfeasible().GetReason(), maxReason), now)
	default:
		t.MarkFailed("Trial has failed. "+contract.Shorten(r.GetFailed().GetReason(), maxReason), now)
	}
	if t.Status.StartTime == nil {
		t.Status.StartTime = &started
	}
	if t.Status.CompletionTime == nil {
		t.Status.CompletionTime = &now
	}
	if observed != nil {
		t.Status.Observation = observed
	}
	return nil
}

// sameEnd says whether both trials have ended in the same way, with the same values.
func sameEnd(a, b *v1beta1.Trial) bool {
	metrics := func(t *v1beta1.Trial) []v1beta1.Metric {
		if t.Status.Observation == nil {
			return nil
		}
		return t.Status.Observation.Metrics
	}
	x, y := a.Condition(a.State()), b.Condition(b.State())
	return x != nil && y != nil && x.Type == y.Type && x.Reason == y.Reason && slices.Equal(metrics(a), metrics(b))
}

// withValues is an observation in which the final values stand for whatever was
// reported of their metrics.
func withValues(t *v1beta1.Trial, o *v1beta1.Observation, values map[string]float64) (*v1beta1.Observation, error) {
	if len(values) == 0 {
		return o, nil
	}
	names := metricsOf(t)
	out := &v1beta1.Observation{}
	for _, name := range names {
		m := v1beta1.Metric{Name: name, Min: collector.Unavailable, Max: collector.Unavailable, Latest: collector.Unavailable}
		if v, given := values[name]; given {
			text := collector.FormatValue(v)
			m.Min, m.Max, m.Latest, m.Value = text, text, text, text
		} else if o != nil {
			if i := slices.IndexFunc(o.Metrics, func(m v1beta1.Metric) bool { return m.Name == name }); i >= 0 {
				m = o.Metrics[i]
			}
		}
		out.Metrics = append(out.Metrics, m)
	}
	for name := range values {
		if !slices.Contains(names, name) {
			return nil, invalid("give values of "+strings.Join(names, ", ")+" only, and report others", "the experiment has no metric %q", name)
		}
	}
	return out, nil
}

// metricsOf are the metrics of a trial, the objective first.
func metricsOf(t *v1beta1.Trial) []string {
	if t.Spec.Objective == nil {
		return nil
	}
	return append([]string{t.Spec.Objective.ObjectiveMetricName}, t.Spec.Objective.AdditionalMetricNames...)
}

// unmeasured are the objectives without any value.
func unmeasured(t *v1beta1.Trial, o *v1beta1.Observation) (lacking []string) {
	wanted := []string{}
	if t.Spec.Objective != nil {
		wanted = append(wanted, t.Spec.Objective.ObjectiveMetricName)
	}
	for _, objective := range t.Spec.Objectives {
		if !slices.Contains(wanted, objective.ObjectiveMetricName) {
			wanted = append(wanted, objective.ObjectiveMetricName)
		}
	}
	for _, name := range wanted {
		if o == nil || !slices.ContainsFunc(o.Metrics, func(m v1beta1.Metric) bool { return m.Name == name && m.Latest != collector.Unavailable }) {
			lacking = append(lacking, strconv.Quote(name))
		}
	}
	return lacking
}
