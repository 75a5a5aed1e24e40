// Package message turns Katib's messages (api.v1.beta1) into objects of the API, and
// objects into messages.
package message

import (
	"cmp"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	pb "github.com/vernier-ml/vernier/api/proto/katib/v1beta1"
	"github.com/vernier-ml/vernier/api/v1beta1"
)

// The words of the API for Katib's numbers. What is not here is not known.
var (
	parameterTypes = map[pb.ParameterType]v1beta1.ParameterType{
		pb.ParameterType_DOUBLE: v1beta1.ParameterTypeDouble, pb.ParameterType_INT: v1beta1.ParameterTypeInt,
		pb.ParameterType_DISCRETE: v1beta1.ParameterTypeDiscrete, pb.ParameterType_CATEGORICAL: v1beta1.ParameterTypeCategorical,
	}
	distributions = map[pb.Distribution]v1beta1.Distribution{
		pb.Distribution_UNIFORM: v1beta1.DistributionUniform, pb.Distribution_LOG_UNIFORM: v1beta1.DistributionLogUniform,
		pb.Distribution_NORMAL: v1beta1.DistributionNormal, pb.Distribution_LOG_NORMAL: v1beta1.DistributionLogNormal,
	}
	objectiveTypes = map[pb.ObjectiveType]v1beta1.ObjectiveType{
		pb.ObjectiveType_MINIMIZE: v1beta1.ObjectiveTypeMinimize, pb.ObjectiveType_MAXIMIZE: v1beta1.ObjectiveTypeMaximize,
	}
	comparisons = map[pb.ComparisonType]v1beta1.ComparisonType{
		pb.ComparisonType_EQUAL: v1beta1.ComparisonTypeEqual, pb.ComparisonType_LESS: v1beta1.ComparisonTypeLess,
		pb.ComparisonType_GREATER: v1beta1.ComparisonTypeGreater,
	}
	trialStates = map[pb.TrialStatus_TrialConditionType]v1beta1.TrialConditionType{
		pb.TrialStatus_CREATED: v1beta1.TrialCreated, pb.TrialStatus_RUNNING: v1beta1.TrialRunning,
		pb.TrialStatus_SUCCEEDED: v1beta1.TrialSucceeded, pb.TrialStatus_KILLED: v1beta1.TrialKilled,
		pb.TrialStatus_FAILED: v1beta1.TrialFailed, pb.TrialStatus_METRICSUNAVAILABLE: v1beta1.TrialMetricsUnavailable,
		pb.TrialStatus_EARLYSTOPPED: v1beta1.TrialEarlyStopped,
	}
)

// ToExperiment is the experiment that a message speaks of, with its defaults. A goal is
// left out, since Katib writes 0 for none; so is the early stopping rule, which another
// service is asked about. An error says which value is not known.
func ToExperiment(m *pb.Experiment) (*v1beta1.Experiment, error) {
	from := m.GetSpec()
	// The name stands for the UID, which the message lacks: it decides the seed.
	exp := &v1beta1.Experiment{ObjectMeta: metav1.ObjectMeta{Name: m.GetName(), UID: types.UID(m.GetName())}}
	spec := &exp.Spec
	var err error
	if spec.Parameters, err = toParameters(from.GetParameterSpecs().GetParameters()); err != nil {
		return nil, err
	}
	spec.Objective = toObjective(from.GetObjective())
	spec.Algorithm = &v1beta1.AlgorithmSpec{AlgorithmName: from.GetAlgorithm().GetAlgorithmName()}
	for _, s := range from.GetAlgorithm().GetAlgorithmSettings() {
		spec.Algorithm.AlgorithmSettings = append(spec.Algorithm.AlgorithmSettings, v1beta1.AlgorithmSetting{Name: s.GetName(), Value: s.GetValue()})
	}
	if n := from.GetParallelTrialCount(); n > 0 {
		spec.ParallelTrialCount = &n
	}
	if n := from.GetMaxTrialCount(); n > 0 {
		spec.MaxTrialCount = &n
	}
	if nas := from.GetNasConfig(); nas != nil && len(spec.Parameters) == 0 {
		graph := nas.GetGraphConfig()
		spec.NasConfig = &v1beta1.NasConfig{GraphConfig: v1beta1.GraphConfig{
			NumLayers: ptr.To(graph.GetNumLayers()), InputSizes: graph.GetInputSizes(), OutputSizes: graph.GetOutputSizes(),
		}}
		for _, o := range nas.GetOperations().GetOperation() {
			parameters, err := toParameters(o.GetParameterSpecs().GetParameters())
			if err != nil {
				return nil, fmt.Errorf("operation %q: %w", o.GetOperationType(), err)
			}
			spec.NasConfig.Operations = append(spec.NasConfig.Operations, v1beta1.Operation{OperationType: o.GetOperationType(), Parameters: parameters})
		}
	}
	v1beta1.SetDefaults(exp)
	return exp, nil
}

func toObjective(m *pb.ObjectiveSpec) *v1beta1.ObjectiveSpec {
	return &v1beta1.ObjectiveSpec{
		Type: cmp.Or(objectiveTypes[m.GetType()], v1beta1.ObjectiveTypeMinimize), ObjectiveMetricName: m.GetObjectiveMetricName(),
		AdditionalMetricNames: m.GetAdditionalMetricNames(),
	}
}

func toParameters(list []*pb.ParameterSpec) ([]v1beta1.ParameterSpec, error) {
	var out []v1beta1.ParameterSpec
	for _, p := range list {
		kind, known := parameterTypes[p.GetParameterType()]
		if !known {
			return nil, fmt.Errorf("parameter %q: the type %v is not known; use DOUBLE, INT, DISCRETE or CATEGORICAL", p.GetName(), p.GetParameterType())
		}
		f := p.GetFeasibleSpace()
		out = append(out, v1beta1.ParameterSpec{Name: p.GetName(), ParameterType: kind, FeasibleSpace: v1beta1.FeasibleSpace{
			Max: f.GetMax(), Min: f.GetMin(), List: f.GetList(), Step: f.GetStep(), Distribution: distributions[f.GetDistribution()],
		}})
	}
	return out, nil
}

// ToTrial is the trial that a message speaks of. Its metrics have one value each, which
// is that of every strategy. One whose state is not known is pending.
func ToTrial(m *pb.Trial) *v1beta1.Trial {
	t := &v1beta1.Trial{ObjectMeta: metav1.ObjectMeta{Name: m.GetName(), UID: types.UID(m.GetName()), Labels: maps.Clone(m.GetSpec().GetLabels())}}
	for _, a := range m.GetSpec().GetParameterAssignments().GetAssignments() {
		t.Spec.ParameterAssignments = append(t.Spec.ParameterAssignments, v1beta1.ParameterAssignment{Name: a.GetName(), Value: a.GetValue()})
	}
	state := cmp.Or(trialStates[m.GetStatus().GetCondition()], v1beta1.TrialCreated)
	t.Status.Conditions = []v1beta1.TrialCondition{{Type: state, Condition: v1beta1.Condition{Status: corev1.ConditionTrue}}}
	if metrics := m.GetStatus().GetObservation().GetMetrics(); len(metrics) > 0 {
		t.Status.Observation = &v1beta1.Observation{}
		for _, v := range metrics {
			t.Status.Observation.Metrics = append(t.Status.Observation.Metrics,
				v1beta1.Metric{Name: v.GetName(), Min: v.GetValue(), Max: v.GetValue(), Latest: v.GetValue()})
		}
	}
	return t
}
