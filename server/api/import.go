package api

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	vernierv1 "github.com/vernier-ml/vernier/api/proto/vernier/v1"
	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/controllers/experiment"
)

const maxImported = 100 // trials of one request

type importedTrial = vernierv1.ImportTrialsRequest_ImportedTrial

// ImportTrials implements vernierv1.ExperimentServiceHandler.
func (s *service) ImportTrials(ctx context.Context, r *vernierv1.ImportTrialsRequest) (*vernierv1.ImportTrialsResponse, error) {
	p, err := parsePlace("parent", r.GetParent(), experimentForm)
	if err != nil {
		return nil, err
	}
	if err := s.allow(ctx, "update", "trials/lease", p); err != nil {
		return nil, err
	}
	exp, err := s.experiment(ctx, p)
	if err != nil {
		return nil, err
	}
	if !exp.RunsOutside() {
		return nil, explain(ctx, fmt.Errorf("experiment %s: %w", p.key(), experiment.ErrHasTemplate))
	}
	all, ends, err := s.readImported(exp, r.GetTrials())
	if err != nil {
		return nil, err
	}
	exp, added, err := s.Experiments.Add(ctx, p.key(), all)
	if errors.Is(err, experiment.ErrNoRoom) {
		return nil, fault(connect.CodeFailedPrecondition, ReasonCannotStart, "raise max_trial_count first", "experiment %s: %w", p.key(), err)
	}
	if err != nil {
		return nil, explain(ctx, err)
	}
	out := &vernierv1.ImportTrialsResponse{}
	for i, t := range added {
		of := p
		of.trial = t.Name
		if !t.IsCompleted() { // else it was sent before
			if t, err = s.endImported(ctx, of, t, r.GetTrials()[i], ends[i]); err != nil {
				return nil, err
			}
		}
		out.Trials = append(out.Trials, trialOut(exp, t, s.Now()))
	}
	s.free(p)
	return out, nil
}

// endImported stores the curves of a trial and completes it.
func (s *service) endImported(ctx context.Context, p place, t *v1beta1.Trial, from *importedTrial, end *vernierv1.CompleteTrialRequest) (*v1beta1.Trial, error) {
	points, err := readPoints(from.GetMeasurements(), s.Now())
	if err != nil {
		return nil, err
	}
	l, _ := t.Lease()
	id := collector.TrialID{Namespace: t.Namespace, Name: t.Name, Experiment: p.experiment, UID: string(t.UID)}
	for points := range slices.Chunk(points, maxValues) {
		if err := s.Store.Append(ctx, id, collector.Attempt{ID: strconv.Itoa(int(l.Attempt)), Started: l.Started}, points); err != nil {
			return nil, explain(ctx, err)
		}
	}
	return s.change(ctx, p, 1, func(t *v1beta1.Trial, l v1beta1.Lease, stale error) (*v1beta1.Trial, error) {
		if stale != nil || t.IsCompleted() {
			return nil, stale
		}
		after := t.DeepCopy()
		started, ended := timesOf(from, l.Started)
		after.Status.StartTime, after.Status.CompletionTime = ptr.To(metav1.NewTime(started)), ptr.To(metav1.NewTime(ended))
		if err := s.end(ctx, after, l, end); err != nil {
			return nil, err
		}
		return s.update(ctx, after)
	})
}

// timesOf are when a trial ran; now stands for what is not given.
func timesOf(t *importedTrial, now time.Time) (started, ended time.Time) {
	started = now
	if t.GetStartTime() != nil {
		started = t.GetStartTime().AsTime()
	}
	ended = started
	if t.GetEndTime() != nil {
		ended = t.GetEndTime().AsTime()
	}
	return started, ended
}

// readImported checks trials before any is added.
func (s *service) readImported(exp *v1beta1.Experiment, trials []*importedTrial) (all []experiment.Elsewhere, ends []*vernierv1.CompleteTrialRequest, err error) {
	if len(trials) == 0 || len(trials) > maxImported {
		return nil, nil, invalid(fmt.Sprintf("send 1 to %d", maxImported), "there are %d trials", len(trials))
	}
	for i, t := range trials {
		if t.GetId() == "" || len(t.GetId()) > maxID {
			return nil, nil, invalid(fmt.Sprintf("give 1 to %d characters", maxID), "trials[%d].id has %d", i, len(t.GetId()))
		}
		point, err := assignments(t.GetParameters())
		if err == nil && !exp.IsCompleted() { // that it has ended is said later
			err = s.fits(exp, v1beta1.InitialTrial{ID: t.GetId(), ParameterAssignments: point})
		}
		if err == nil {
			err = checkValues(exp, t)
		}
		if err == nil {
			_, err = readPoints(t.GetMeasurements(), s.Now())
		}
		if err != nil {
			return nil, nil, fmt.Errorf("trials[%d] (%s): %w", i, t.GetId(), err)
		}
		end, err := outcome(t)
		if err != nil {
			return nil, nil, err
		}
		if started, ended := timesOf(t, s.Now()); ended.Before(started) || !valid(t.GetStartTime()) || !valid(t.GetEndTime()) {
			return nil, nil, invalid("give times in their order", "trials[%d] ends at %s and starts at %s", i, ended, started)
		}
		all = append(all, experiment.Elsewhere{ID: t.GetId(), Assignments: point})
		ends = append(ends, end)
	}
	return all, ends, nil
}

// checkValues says what is wrong with the values of a trial.
func checkValues(exp *v1beta1.Experiment, t *importedTrial) error {
	as := &v1beta1.Trial{Spec: v1beta1.TrialSpec{Objective: exp.Spec.Objective, Objectives: exp.Spec.Objectives}}
	o, err := withValues(as, nil, t.GetValues())
	if err != nil || t.GetState() != vernierv1.Trial_SUCCEEDED {
		return err
	}
	given := &v1beta1.Observation{}
	if o != nil {
		given.Metrics = o.Metrics
	}
	for _, m := range t.GetMeasurements() {
		for name := range m.GetValues() {
			given.Metrics = append(given.Metrics, v1beta1.Metric{Name: name})
		}
	}
	if lacking := unmeasured(as, given); len(lacking) > 0 {
		return invalid("give its value, or import the trial as failed", "the objective %s has no value", strings.Join(lacking, ", "))
	}
	return nil
}

func valid(t *timestamppb.Timestamp) bool { return t == nil || t.IsValid() }

// outcome is how a trial ended, as its worker would say.
func outcome(t *importedTrial) (*vernierv1.CompleteTrialRequest, error) {
	out := &vernierv1.CompleteTrialRequest{}
	switch t.GetState() {
	case vernierv1.Trial_SUCCEEDED:
		out.Outcome = &vernierv1.CompleteTrialRequest_Succeeded_{Succeeded: &vernierv1.CompleteTrialRequest_Succeeded{Values: t.GetValues()}}
	case vernierv1.Trial_PRUNED:
		out.Outcome = &vernierv1.CompleteTrialRequest_Pruned_{Pruned: &vernierv1.CompleteTrialRequest_Pruned{}}
	case vernierv1.Trial_FAILED:
		out.Outcome = &vernierv1.CompleteTrialRequest_Failed_{Failed: &vernierv1.CompleteTrialRequest_Failed{Reason: "it failed where it ran"}}
	case vernierv1.Trial_INFEASIBLE:
		out.Outcome = &vernierv1.CompleteTrialRequest_Infeasible_{Infeasible: &vernierv1.CompleteTrialRequest_Infeasible{}}
	default:
		return nil, invalid("give SUCCEEDED, PRUNED, FAILED or INFEASIBLE", "the state of trial %s is %s", t.GetId(), t.GetState())
	}
	return out, nil
}
