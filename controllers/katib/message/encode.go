package message

import (
	"maps"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	pb "github.com/vernier-ml/vernier/api/proto/katib/v1beta1"
	"github.com/vernier-ml/vernier/api/v1beta1"
)

// numberOf is Katib's number for a word of the API; 0, which means unknown in all of
// them, for another.
func numberOf[N, W comparable](words map[N]W, word W) (number N) {
	for n, w := range words {
		if w == word {
			return n
		}
	}
	return number
}

// OfExperiment is the message that speaks of an experiment. Settings, those that the
// service wrote itself, add to those of the experiment and replace them.
func OfExperiment(exp *v1beta1.Experiment, settings []v1beta1.AlgorithmSetting) *pb.Experiment {
	spec := &pb.ExperimentSpec{
		ParameterSpecs:     &pb.ExperimentSpec_ParameterSpecs{Parameters: ofParameters(exp.Spec.Parameters)},
		Objective:          ofObjective(exp.Spec.Objective),
		ParallelTrialCount: ptr.Deref(exp.Spec.ParallelTrialCount, 0),
		MaxTrialCount:      ptr.Deref(exp.Spec.MaxTrialCount, 0),
	}
	if a := exp.Spec.Algorithm; a != nil {
		spec.Algorithm = &pb.AlgorithmSpec{AlgorithmName: a.AlgorithmName}
		for _, s := range MergeSettings(a.AlgorithmSettings, settings) {
			spec.Algorithm.AlgorithmSettings = append(spec.Algorithm.AlgorithmSettings, &pb.AlgorithmSetting{Name: s.Name, Value: s.Value})
		}
	}
	spec.EarlyStopping = OfStopping(exp.Spec.EarlyStopping)
	if nas := exp.Spec.NasConfig; nas != nil {
		spec.NasConfig = &pb.NasConfig{Operations: &pb.NasConfig_Operations{}, GraphConfig: &pb.GraphConfig{
			NumLayers: ptr.Deref(nas.GraphConfig.NumLayers, 0), InputSizes: nas.GraphConfig.InputSizes, OutputSizes: nas.GraphConfig.OutputSizes,
		}}
		for _, o := range nas.Operations {
			spec.NasConfig.Operations.Operation = append(spec.NasConfig.Operations.Operation, &pb.Operation{
				OperationType: o.OperationType, ParameterSpecs: &pb.Operation_ParameterSpecs{Parameters: ofParameters(o.Parameters)},
			})
		}
	}
	return &pb.Experiment{Name: exp.Name, Spec: spec}
}

// OfStopping is the message that names an early stopping rule; nil for none.
func OfStopping(rule *v1beta1.EarlyStoppingSpec) *pb.EarlyStoppingSpec {
	if rule == nil {
		return nil
	}
	m := &pb.EarlyStoppingSpec{AlgorithmName: rule.AlgorithmName}
	for _, s := range rule.AlgorithmSettings {
		m.AlgorithmSettings = append(m.AlgorithmSettings, &pb.EarlyStoppingSetting{Name: s.Name, Value: s.Value})
	}
	return m
}

// MergeSettings adds settings to others and replaces those of the same names.
func MergeSettings(settings, by []v1beta1.AlgorithmSetting) []v1beta1.AlgorithmSetting {
	var out []v1beta1.AlgorithmSetting
	at := map[string]int{}
	for _, list := range [][]v1beta1.AlgorithmSetting{settings, by} {
		for _, s := range list {
			if i, ok := at[s.Name]; ok {
				out[i] = s
				continue
			}
			at[s.Name] = len(out)
			out = append(out, s)
		}
	}
	return out
}

func ofParameters(list []v1beta1.ParameterSpec) []*pb.ParameterSpec {
	var out []*pb.ParameterSpec
	for _, p := range list {
		f := p.FeasibleSpace
		out = append(out, &pb.ParameterSpec{
			Name: p.Name, ParameterType: numberOf(parameterTypes, p.ParameterType),
			FeasibleSpace: &pb.FeasibleSpace{Max: f.Max, Min: f.Min, List: f.List, Step: f.Step, Distribution: numberOf(distributions, f.Distribution)},
		})
	}
	return out
}

func ofObjective(o *v1beta1.ObjectiveSpec) *pb.ObjectiveSpec {
	if o == nil {
		return nil
	}
	return &pb.ObjectiveSpec{
		Type: numberOf(objectiveTypes, o.Type), Goal: ptr.Deref(o.Goal, 0), ObjectiveMetricName: o.ObjectiveMetricName,
		AdditionalMetricNames: o.AdditionalMetricNames,
	}
}

// OfTrials are the messages that speak of trials, as Katib's controller sends them:
// those without a metric (MetricsUnavailable, or stopped before the first one) are left
// out.
func OfTrials(trials []*v1beta1.Trial) []*pb.Trial {
	var out []*pb.Trial
	for _, t := range trials {
		state := t.State()
		observed := t.Status.Observation != nil && len(t.Status.Observation.Metrics) > 0
		if state == v1beta1.TrialMetricsUnavailable || state == v1beta1.TrialEarlyStopped && !observed {
			continue
		}
		m := &pb.Trial{
			Name: t.Name,
			Spec: &pb.TrialSpec{
				Objective: ofObjective(t.Spec.Objective), Labels: maps.Clone(t.Spec.Labels),
				ParameterAssignments: &pb.TrialSpec_ParameterAssignments{Assignments: OfAssignments(t.Spec.ParameterAssignments)},
			},
			Status: &pb.TrialStatus{
				StartTime: stamp(t.Status.StartTime), CompletionTime: stamp(t.Status.CompletionTime),
				Condition: numberOf(trialStates, state), Observation: &pb.Observation{},
			},
		}
		if observed {
			for i := range t.Status.Observation.Metrics {
				metric := &t.Status.Observation.Metrics[i]
				value := metric.By(t.Spec.Objective.Strategy(metric.Name, v1beta1.ExtractByLatest))
				m.Status.Observation.Metrics = append(m.Status.Observation.Metrics, &pb.Metric{Name: metric.Name, Value: value})
			}
		}
		out = append(out, m)
	}
	return out
}

func stamp(t *metav1.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// OfAssignments are the messages of assignments.
func OfAssignments(list []v1beta1.ParameterAssignment) []*pb.ParameterAssignment {
	var out []*pb.ParameterAssignment
	for _, a := range list {
		out = append(out, &pb.ParameterAssignment{Name: a.Name, Value: a.Value})
	}
	return out
}

// Rules are the messages of early stopping rules.
func Rules(list []v1beta1.EarlyStoppingRule) []*pb.EarlyStoppingRule {
	var out []*pb.EarlyStoppingRule
	for _, r := range list {
		out = append(out, &pb.EarlyStoppingRule{
			Name: r.Name, Value: r.Value, Comparison: numberOf(comparisons, r.Comparison), StartStep: int32(min(r.StartStep, 1<<30)),
		})
	}
	return out
}
