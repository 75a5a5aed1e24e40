package v1beta1

import (
	"math"
	"slices"
)

// ObjectiveMetric (Vernier) is one of several objectives.
type ObjectiveMetric struct {
	// ObjectiveMetricName is the metric that is optimized.
	// +kubebuilder:validation:MinLength=1
	ObjectiveMetricName string `json:"objectiveMetricName"`
	// Type is the direction: minimize or maximize.
	Type ObjectiveType `json:"type"`
	// Goal is the value that a trial must reach. The experiment ends when one trial
	// reaches the goals of all objectives that have one.
	// +optional
	Goal *float64 `json:"goal,omitempty"`
}

// MetricConstraint (Vernier) bounds a metric: a trial that is out of bounds, or has
// no value of the metric, is never the best.
// +kubebuilder:validation:XValidation:rule="has(self.min) || has(self.max)",message="give min, max or both"
// +kubebuilder:validation:XValidation:rule="!has(self.min) || !has(self.max) || self.min <= self.max",message="min must not be above max"
type MetricConstraint struct {
	// MetricName is the metric that is bounded.
	// +kubebuilder:validation:MinLength=1
	MetricName string `json:"metricName"`
	// Min is the least value that is allowed.
	// +optional
	Min *float64 `json:"min,omitempty"`
	// Max is the greatest value that is allowed.
	// +optional
	Max *float64 `json:"max,omitempty"`
}

// WarmStart (Vernier) names an experiment to learn from.
type WarmStart struct {
	// Experiment is its name, in the same namespace.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Experiment string `json:"experiment"`
	// ParameterAssignments are the values that its trials had for parameters that it
	// did not tune.
	// +optional
	// +listType=atomic
	ParameterAssignments []ParameterAssignment `json:"parameterAssignments,omitempty"`
}

// Outside is by how much value is out of bounds; at most 0 within them.
func (c *MetricConstraint) Outside(value float64) float64 {
	far := math.Inf(-1)
	if c.Min != nil {
		far = *c.Min - value
	}
	if c.Max != nil {
		far = max(far, value-*c.Max)
	}
	return far
}

// AllObjectives returns the objectives, the main one first: objectives, or else the
// single objective, if any.
func (s *ExperimentSpec) AllObjectives() []ObjectiveMetric {
	switch {
	case len(s.Objectives) > 0:
		return s.Objectives
	case s.Objective != nil:
		return []ObjectiveMetric{{ObjectiveMetricName: s.Objective.ObjectiveMetricName, Type: s.Objective.Type, Goal: s.Objective.Goal}}
	}
	return nil
}

// setObjectivesDefaults lets code that knows a single objective handle several: the
// first becomes the objective, and the metrics of the others and of constraints
// become additional ones. Their default strategy is the value at the step where the
// first objective is best, so that the values of a trial belong to one checkpoint.
func setObjectivesDefaults(s *ExperimentSpec) {
	if len(s.Objectives) > 0 {
		first := s.Objectives[0]
		if s.Objective == nil {
			s.Objective = &ObjectiveSpec{}
		}
		if s.Objective.ObjectiveMetricName == "" {
			s.Objective.ObjectiveMetricName = first.ObjectiveMetricName
		}
		if s.Objective.Type == "" {
			s.Objective.Type = first.Type
		}
	}
	if s.Objective == nil || s.Objective.ObjectiveMetricName == "" {
		return
	}
	for _, o := range s.Objectives {
		s.Objective.collect(o.ObjectiveMetricName, ExtractByBestAtStep)
	}
	for _, c := range s.Constraints {
		s.Objective.collect(c.MetricName, ExtractByBestAtStep)
	}
}

// collect adds a metric, and its strategy if it has none.
func (o *ObjectiveSpec) collect(name string, strategy MetricStrategyType) {
	if name == "" || name == o.ObjectiveMetricName {
		return
	}
	if !slices.Contains(o.AdditionalMetricNames, name) {
		o.AdditionalMetricNames = append(o.AdditionalMetricNames, name)
	}
	if !slices.ContainsFunc(o.MetricStrategies, func(s MetricStrategy) bool { return s.Name == name }) {
		o.MetricStrategies = append(o.MetricStrategies, MetricStrategy{Name: name, Value: strategy})
	}
}
