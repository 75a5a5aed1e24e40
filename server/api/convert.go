package api

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	vernierv1 "github.com/vernier-ml/vernier/api/proto/vernier/v1"
	"github.com/vernier-ml/vernier/api/v1beta1"
)

func experimentOut(e *v1beta1.Experiment) (*vernierv1.Experiment, error) {
	text, err := json.Marshal(e.Spec)
	if err != nil {
		return nil, fmt.Errorf("encode the spec of experiment %s/%s: %w", e.Namespace, e.Name, err)
	}
	spec := &structpb.Struct{}
	if err := spec.UnmarshalJSON(text); err != nil {
		return nil, fmt.Errorf("encode the spec of experiment %s/%s: %w", e.Namespace, e.Name, err)
	}
	out := &vernierv1.Experiment{
		Name: place{namespace: e.Namespace, experiment: e.Name}.String(), Uid: string(e.UID), Spec: spec, State: experimentState(e),
		Trials: e.Status.Trials, TrialsRunning: e.Status.TrialsRunning, TrialsSucceeded: e.Status.TrialsSucceeded, TrialsFailed: e.Status.TrialsFailed,
		CreateTime: timestamppb.New(e.CreationTimestamp.Time), StartTime: timeOut(e.Status.StartTime), EndTime: timeOut(e.Status.CompletionTime),
		TrialsPending: e.Status.TrialsPending, TrialsPruned: e.Status.TrialsEarlyStopped, TrialsKilled: e.Status.TrialsKilled,
		TrialsUnmeasured: e.Status.TrialMetricsUnavailable, Suspended: e.Spec.Suspend, Etag: e.ResourceVersion, Best: bestOut(e), Recommended: recommendedOut(e),
		Notes: e.Annotations[v1beta1.AnnotationNotes], Tags: tagsOf(e.Annotations),
	}
	if c := e.LastCondition(); c != nil {
		out.Message = c.Message
	}
	if trials, yes := e.Interrupted(); yes {
		out.Interrupted, out.Message = trials, trials+" trials ran"
	}
	return out, nil
}

// bestOut is the best trial as the status of its experiment has it.
func bestOut(e *v1beta1.Experiment) *vernierv1.Trial {
	best := &e.Status.CurrentOptimalTrial
	if best.BestTrialName == "" {
		return nil
	}
	t := &v1beta1.Trial{Spec: v1beta1.TrialSpec{Objective: e.Spec.Objective, ParameterAssignments: best.ParameterAssignments}}
	t.Status.Observation = &best.Observation
	number, _ := numberIn(e, best.BestTrialName)
	return &vernierv1.Trial{Name: place{e.Namespace, e.Name, best.BestTrialName}.String(), Number: number, State: vernierv1.Trial_SUCCEEDED,
		Parameters: parametersOut(e, t), Values: valuesOut(t)}
}

// recommendedOut is what the status of an experiment recommends; nil when that is nothing.
func recommendedOut(e *v1beta1.Experiment) *vernierv1.Recommendation {
	r := e.Status.RecommendedTrial
	if r == nil {
		return nil
	}
	t := &v1beta1.Trial{Spec: v1beta1.TrialSpec{ParameterAssignments: r.ParameterAssignments}}
	number, _ := numberIn(e, r.TrialName)
	out := &vernierv1.Recommendation{Trials: r.Trials, Trial: &vernierv1.Trial{
		Name: place{e.Namespace, e.Name, r.TrialName}.String(), Number: number, Parameters: parametersOut(e, t),
	}}
	// The controller wrote these.
	out.Value, _ = strconv.ParseFloat(r.Value, 64)
	out.Deviation, _ = strconv.ParseFloat(r.Deviation, 64)
	out.Noise, _ = strconv.ParseFloat(r.Noise, 64)
	return out
}

// numberIn is the number of the trial of e with a name.
func numberIn(e *v1beta1.Experiment, name string) (number int32, ok bool) {
	digits, ok := strings.CutPrefix(name, e.Name+"-")
	n, err := strconv.ParseInt(digits, 10, 32)
	return int32(n), ok && err == nil
}

func timeOut(t *metav1.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t.Time)
}

func experimentState(e *v1beta1.Experiment) vernierv1.Experiment_State {
	switch {
	case e.IsFailed():
		return vernierv1.Experiment_FAILED
	case e.IsSucceeded():
		return vernierv1.Experiment_SUCCEEDED
	}
	return vernierv1.Experiment_ACTIVE
}

// trialOut is a trial of e.
func trialOut(e *v1beta1.Experiment, t *v1beta1.Trial, now time.Time) *vernierv1.Trial {
	number, _ := t.Number()
	out := &vernierv1.Trial{
		Name: place{t.Namespace, e.Name, t.Name}.String(), Uid: string(t.UID), Number: int32(number),
		State: stateOf(t, now), Parameters: parametersOut(e, t), Values: valuesOut(t),
		Why: t.Annotations[v1beta1.AnnotationWhy], CreateTime: timestamppb.New(t.CreationTimestamp.Time),
	}
	out.Resource, _ = strconv.ParseFloat(t.Annotations[v1beta1.AnnotationResource], 64) // absent: 0
	if c := t.LastCondition(); c != nil {
		out.Message = c.Message
	}
	if lease, outside := t.Lease(); outside {
		out.Attempt, out.Worker, out.LeaseExpireTime = lease.Attempt, lease.Worker, timestamppb.New(lease.Expires)
	}
	out.StartTime, out.EndTime = timeOut(t.Status.StartTime), timeOut(t.Status.CompletionTime)
	out.Notes, out.Tags = t.Annotations[v1beta1.AnnotationNotes], tagsOf(t.Annotations)
	if n, ok := parentOf(t); ok {
		out.Parent = &n
	}
	if n, err := strconv.ParseInt(t.Annotations[v1beta1.AnnotationSeed], 10, 32); err == nil {
		out.Seed = ptr.To(int32(n))
	}
	return out
}

// stateOf is the state of a trial, as far as its worker's lease has run out or not.
func stateOf(t *v1beta1.Trial, now time.Time) vernierv1.Trial_State {
	lease, outside := t.Lease()
	return trialState(t, outside && !lease.Held(now))
}

func trialState(t *v1beta1.Trial, free bool) vernierv1.Trial_State {
	switch state := t.State(); state {
	case v1beta1.TrialSucceeded:
		return vernierv1.Trial_SUCCEEDED
	case v1beta1.TrialEarlyStopped:
		return vernierv1.Trial_PRUNED
	case v1beta1.TrialKilled:
		return vernierv1.Trial_CANCELLED
	case v1beta1.TrialMetricsUnavailable:
		return vernierv1.Trial_UNMEASURED
	case v1beta1.TrialFailed:
		if t.Condition(state).Reason == v1beta1.ReasonTrialInfeasible {
			return vernierv1.Trial_INFEASIBLE
		}
		return vernierv1.Trial_FAILED
	}
	switch _, outside := t.Lease(); {
	case t.AskedToStop():
		return vernierv1.Trial_STOPPING
	case outside && !free || !outside && t.IsRunning():
		return vernierv1.Trial_RUNNING
	}
	return vernierv1.Trial_PENDING
}

// parametersOut gives numbers as numbers and words as strings.
func parametersOut(e *v1beta1.Experiment, t *v1beta1.Trial) map[string]*structpb.Value {
	words := map[string]bool{}
	for _, p := range e.Spec.Parameters {
		words[p.Name] = p.ParameterType == v1beta1.ParameterTypeCategorical
	}
	out := make(map[string]*structpb.Value, len(t.Spec.ParameterAssignments))
	for _, a := range t.Spec.ParameterAssignments {
		out[a.Name] = structpb.NewStringValue(a.Value)
		word, known := words[a.Name]
		if x, err := strconv.ParseFloat(a.Value, 64); err == nil && known && !word {
			out[a.Name] = structpb.NewNumberValue(x)
		}
	}
	return out
}

func valuesOut(t *v1beta1.Trial) map[string]float64 {
	if t.Status.Observation == nil {
		return nil
	}
	out := map[string]float64{}
	for _, m := range t.Status.Observation.Metrics {
		fallback := v1beta1.ExtractByLatest
		if x, err := strconv.ParseFloat(m.By(t.Spec.Objective.Strategy(m.Name, fallback)), 64); err == nil || math.IsInf(x, 0) {
			out[m.Name] = x
		}
	}
	return out
}
