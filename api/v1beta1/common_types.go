package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AlgorithmSetting is one setting of an algorithm.
type AlgorithmSetting struct {
	// Name of the setting.
	// +optional
	Name string `json:"name,omitempty"`
	// Value of the setting, as a string.
	// +optional
	Value string `json:"value,omitempty"`
}

// AlgorithmSpec names the search algorithm and its settings.
type AlgorithmSpec struct {
	// AlgorithmName names the search algorithm, for example random.
	// +optional
	AlgorithmName string `json:"algorithmName,omitempty"`
	// AlgorithmSettings are the settings of the algorithm.
	// +optional
	// +listType=atomic
	AlgorithmSettings []AlgorithmSetting `json:"algorithmSettings,omitempty"`
}

// ResourceParameter is the parameter that says how long a trial trains; empty if none is named.
func (a *AlgorithmSpec) ResourceParameter() string {
	if a != nil {
		for _, s := range a.AlgorithmSettings {
			if s.Name == "resource_name" {
				return s.Value
			}
		}
	}
	return ""
}

// EarlyStoppingSetting is one setting of an early stopping rule.
type EarlyStoppingSetting struct {
	// Name of the setting.
	// +optional
	Name string `json:"name,omitempty"`
	// Value of the setting, as a string.
	// +optional
	Value string `json:"value,omitempty"`
}

// EarlyStoppingSpec names the early stopping rule and its settings.
type EarlyStoppingSpec struct {
	// AlgorithmName names the rule, for example medianstop.
	// +optional
	AlgorithmName string `json:"algorithmName,omitempty"`
	// AlgorithmSettings are the settings of the rule.
	// +optional
	// +listType=atomic
	AlgorithmSettings []EarlyStoppingSetting `json:"algorithmSettings,omitempty"`
}

// ComparisonType says how a metric is compared with the value of a rule.
// +kubebuilder:validation:Enum=equal;less;greater
type ComparisonType string

// The comparisons of an early stopping rule.
const (
	ComparisonTypeEqual   ComparisonType = "equal"
	ComparisonTypeLess    ComparisonType = "less"
	ComparisonTypeGreater ComparisonType = "greater"
)

// EarlyStoppingRule stops a trial if a metric compares this way with a value.
type EarlyStoppingRule struct {
	// Name of the metric.
	// +optional
	Name string `json:"name,omitempty"`
	// Value that the metric is compared with.
	// +optional
	Value string `json:"value,omitempty"`
	// Comparison between the metric and the value.
	// +optional
	Comparison ComparisonType `json:"comparison,omitempty"`
	// StartStep is the number of reports before which the rule does not act.
	// +optional
	StartStep int `json:"startStep,omitempty"`
}

// ObjectiveType is the direction of an objective.
// +kubebuilder:validation:Enum=minimize;maximize
type ObjectiveType string

// The directions of an objective.
const (
	ObjectiveTypeMinimize ObjectiveType = "minimize"
	ObjectiveTypeMaximize ObjectiveType = "maximize"
)

// DefaultStrategy is the strategy of a metric that improves this way.
func (t ObjectiveType) DefaultStrategy() MetricStrategyType {
	switch t {
	case ObjectiveTypeMinimize:
		return ExtractByMin
	case ObjectiveTypeMaximize:
		return ExtractByMax
	}
	return ExtractByLatest
}

// ObjectiveSpec says what is optimized.
type ObjectiveSpec struct {
	// Type is the direction: minimize or maximize.
	// +optional
	Type ObjectiveType `json:"type,omitempty"`
	// Goal ends the experiment when the objective reaches it. Without a goal
	// the experiment runs to maxTrialCount.
	// +optional
	Goal *float64 `json:"goal,omitempty"`
	// ObjectiveMetricName is the metric that is optimized.
	// +optional
	ObjectiveMetricName string `json:"objectiveMetricName,omitempty"`
	// AdditionalMetricNames are collected in addition to the objective.
	// +optional
	// +listType=atomic
	AdditionalMetricNames []string `json:"additionalMetricNames,omitempty"`
	// MetricStrategies say which of the reported values becomes a metric's result.
	// Default: min or max, according to the objective's type, for every metric.
	// +optional
	// +listType=atomic
	MetricStrategies []MetricStrategy `json:"metricStrategies,omitempty"`
}

// MetricStrategyType says which of the reported values becomes a metric's result:
// min, max, latest, best-at-step, or mean-last-K with K from 1 to 1000.
// +kubebuilder:validation:Pattern=`^(min|max|latest|best-at-step|mean-last-([1-9][0-9]{0,2}|1000))$`
type MetricStrategyType string

// The strategies of a metric, except mean-last-K. The first three are Katib's.
const (
	ExtractByMin        MetricStrategyType = "min"
	ExtractByMax        MetricStrategyType = "max"
	ExtractByLatest     MetricStrategyType = "latest"
	ExtractByBestAtStep MetricStrategyType = "best-at-step"
)

// MetricStrategy is the strategy of one metric.
type MetricStrategy struct {
	// Name of the metric.
	// +optional
	Name string `json:"name,omitempty"`
	// Value is the strategy: min, max, latest, mean-last-K (the mean of the last
	// K values) or best-at-step (the value where the objective was best).
	// +optional
	Value MetricStrategyType `json:"value,omitempty"`
}

// Metric is the result of one metric.
type Metric struct {
	// Name of the metric.
	// +optional
	Name string `json:"name,omitempty"`
	// Min is the smallest reported value, as reported.
	// +optional
	Min string `json:"min,omitempty"`
	// Max is the largest reported value, as reported.
	// +optional
	Max string `json:"max,omitempty"`
	// Latest is the last reported value, as reported.
	// +optional
	Latest string `json:"latest,omitempty"`
	// Value is the result of a strategy other than min, max and latest.
	// +optional
	Value string `json:"value,omitempty"`
}

// unavailable is Katib's placeholder for a value that was never reported.
const unavailable = "unavailable"

// By returns the value that a strategy selects, as reported, or the latest value if
// that one is unavailable.
func (m *Metric) By(strategy MetricStrategyType) string {
	value := m.Value
	switch strategy {
	case ExtractByMin:
		value = m.Min
	case ExtractByMax:
		value = m.Max
	case ExtractByLatest:
		value = m.Latest
	}
	if value == "" || value == unavailable {
		return m.Latest
	}
	return value
}

// Strategy returns the strategy of a metric, or fallback if it has none. o may be nil.
func (o *ObjectiveSpec) Strategy(metric string, fallback MetricStrategyType) MetricStrategyType {
	if o != nil {
		for _, s := range o.MetricStrategies {
			if s.Name == metric && s.Value != "" {
				return s.Value
			}
		}
	}
	return fallback
}

// Observation is the result of a trial.
type Observation struct {
	// Metrics are the results of the metrics, the objective first.
	// +optional
	// +listType=atomic
	Metrics []Metric `json:"metrics,omitempty"`
}

// ParameterAssignment is the value of one parameter in one trial.
type ParameterAssignment struct {
	// Name of the parameter.
	// +optional
	Name string `json:"name,omitempty"`
	// Value of the parameter, as a string.
	// +optional
	Value string `json:"value,omitempty"`
}

// CollectorKind says how metrics are collected. The schema accepts Katib's kind None,
// so that admission can reject it with advice.
// +kubebuilder:validation:MaxLength=32
// +kubebuilder:validation:XValidation:rule="self in ['StdOut', 'File', 'TensorFlowEvent', 'PrometheusMetric', 'Push', 'Custom', 'None']",message="use one of StdOut, File, TensorFlowEvent, PrometheusMetric, Push, Custom"
type CollectorKind string

// The kinds of collector.
const (
	StdOutCollector           CollectorKind = "StdOut"
	FileCollector             CollectorKind = "File"
	TensorFlowEventCollector  CollectorKind = "TensorFlowEvent"
	PrometheusMetricCollector CollectorKind = "PrometheusMetric"
	CustomCollector           CollectorKind = "Custom"
	PushCollector             CollectorKind = "Push"
	NoneCollector             CollectorKind = "None"
)

// MetricsCollectorSpec says how the metrics of a trial are collected.
type MetricsCollectorSpec struct {
	// Source says where the metrics are.
	// +optional
	Source *SourceSpec `json:"source,omitempty"`
	// Collector says how they are read. Default: StdOut.
	// +optional
	Collector *CollectorSpec `json:"collector,omitempty"`
}

// SourceSpec says where metrics are.
type SourceSpec struct {
	// HTTPGet is the endpoint of a PrometheusMetric collector. The default host is
	// localhost. With port auto, each trial gets its own port, in the variable
	// VERNIER_METRICS_PORT.
	// +optional
	HTTPGet *corev1.HTTPGetAction `json:"httpGet,omitempty"`
	// FileSystemPath is the file or directory that metrics are written to.
	// +optional
	FileSystemPath *FileSystemPath `json:"fileSystemPath,omitempty"`
	// Filter finds metrics in text.
	// +optional
	Filter *FilterSpec `json:"filter,omitempty"`
}

// FilterSpec finds metrics in text.
type FilterSpec struct {
	// MetricsFormat are Go regular expressions, each with at least two groups:
	// the name and the value. Default: name=value.
	// +optional
	// +listType=atomic
	MetricsFormat []string `json:"metricsFormat,omitempty"`
}

// FileSystemKind says whether a path is a file or a directory.
// +kubebuilder:validation:Enum=File;Directory;InvalidKind
type FileSystemKind string

// The kinds of paths.
const (
	FileKind      FileSystemKind = "File"
	DirectoryKind FileSystemKind = "Directory"
)

// FileFormat is the format of metrics in files. Katib has TEXT and JSON.
// +kubebuilder:validation:Enum=TEXT;JSON;LOGFMT;CSV;WANDB
type FileFormat string

// The formats of metrics in files.
const (
	// TextFormat is lines with name=value, or what the filters match.
	TextFormat FileFormat = "TEXT"
	// JSONFormat is one JSON object per line.
	JSONFormat FileFormat = "JSON"
	// LogfmtFormat is lines of key=value pairs, where values may be quoted.
	LogfmtFormat FileFormat = "LOGFMT"
	// CSVFormat is a table whose first line names the metrics.
	CSVFormat FileFormat = "CSV"
	// WandbFormat is the files that Weights & Biases writes offline.
	WandbFormat FileFormat = "WANDB"
)

// FileSystemPath is a file or directory that metrics are written to.
type FileSystemPath struct {
	// Path is absolute.
	// +optional
	Path string `json:"path,omitempty"`
	// Kind is File or Directory. A Directory is for event files (collector
	// TensorFlowEvent), and for the formats CSV and WANDB.
	// +optional
	Kind FileSystemKind `json:"kind,omitempty"`
	// Format of the collectors File and StdOut. Default: TEXT. A File collector
	// of Kind File reads TEXT, JSON, LOGFMT and CSV, one of Kind Directory CSV
	// and WANDB, and StdOut TEXT, JSON and LOGFMT.
	// +optional
	Format FileFormat `json:"format,omitempty"`
}

// CollectorSpec says how metrics are read.
type CollectorSpec struct {
	// Kind of the collector.
	// +optional
	Kind CollectorKind `json:"kind,omitempty"`
	// CustomCollector is the container of a Custom collector.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	CustomCollector *corev1.Container `json:"customCollector,omitempty"`
}

// ResumePolicy says whether a finished experiment can be resumed.
// +kubebuilder:validation:Enum="";Never;LongRunning;FromVolume
type ResumePolicy string

// The resume policies.
const (
	NeverResume ResumePolicy = "Never"
	LongRunning ResumePolicy = "LongRunning"
	FromVolume  ResumePolicy = "FromVolume"
)

// Condition is the common shape of the conditions in this package. The order of
// a condition list is part of the API: the last element is the current state.
type Condition struct {
	// Status of the condition: True, False or Unknown.
	Status corev1.ConditionStatus `json:"status"`
	// Reason of the last transition.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Message for people.
	// +optional
	Message string `json:"message,omitempty"`
	// LastUpdateTime is when the condition was last written.
	// +optional
	LastUpdateTime metav1.Time `json:"lastUpdateTime,omitempty"`
	// LastTransitionTime is when the status last changed.
	// +optional
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty"`
}
