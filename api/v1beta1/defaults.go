package v1beta1

import (
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Defaults of an experiment.
const (
	DefaultParallelTrialCount = 3
	DefaultResumePolicy       = NeverResume
	// DefaultAlgorithmName is used if the experiment names no algorithm. It
	// chooses one by the search space. (Katib requires a name.)
	DefaultAlgorithmName        = "auto"
	DefaultFilePath             = "/var/log/katib/metrics.log"
	DefaultTensorFlowEventPath  = "/var/log/katib/tfevent/"
	DefaultDirectoryPath        = "/var/log/katib/metrics/"
	DefaultPrometheusMetricPath = "/metrics"
	DefaultPrometheusMetricPort = 8080
)

// SetDefaults fills in what the experiment does not set. It is idempotent.
//
// The defaults are Katib's, with these additions: algorithmName is auto; there are
// defaults for every kind of job that DefaultsForKind knows; parallelTrialCount is
// never defaulted above maxTrialCount.
func SetDefaults(e *Experiment) {
	s := &e.Spec
	if s.ParallelTrialCount == nil {
		n := int32(DefaultParallelTrialCount)
		if s.MaxTrialCount != nil && *s.MaxTrialCount > 0 {
			n = min(n, *s.MaxTrialCount)
		}
		s.ParallelTrialCount = &n
	}
	if s.ResumePolicy == "" {
		s.ResumePolicy = DefaultResumePolicy
	}
	for i := range s.Parameters {
		if p := &s.Parameters[i]; p.FeasibleSpace.Distribution == "" {
			p.FeasibleSpace.Distribution = DistributionUniform
		}
	}
	setAlgorithmDefaults(s)
	setObjectivesDefaults(s)
	setObjectiveDefaults(s.Objective)
	if t := s.TrialTemplate; t != nil && t.TrialSpec != nil {
		SetKindDefaults(t, t.GroupKind())
	}
	setCollectorDefaults(s)
}

// GroupKind returns the kind of the inline template, or an empty one.
func (t *TrialTemplate) GroupKind() schema.GroupKind {
	var head metav1.TypeMeta
	if raw, err := json.Marshal(t.TrialSpec); err != nil || json.Unmarshal(raw, &head) != nil {
		return schema.GroupKind{}
	}
	return head.GroupVersionKind().GroupKind()
}

func setAlgorithmDefaults(s *ExperimentSpec) {
	if s.NasConfig != nil {
		return // there is no obvious choice of algorithm for layers and operations
	}
	if s.Algorithm == nil {
		s.Algorithm = &AlgorithmSpec{}
	}
	if s.Algorithm.AlgorithmName == "" {
		s.Algorithm.AlgorithmName = DefaultAlgorithmName
	}
}

// setObjectiveDefaults gives every metric without a strategy the one for the
// objective's direction.
func setObjectiveDefaults(o *ObjectiveSpec) {
	if o == nil || o.ObjectiveMetricName == "" {
		return
	}
	strategy := o.Type.DefaultStrategy()
	for _, name := range append([]string{o.ObjectiveMetricName}, o.AdditionalMetricNames...) {
		known := slices.ContainsFunc(o.MetricStrategies, func(s MetricStrategy) bool { return s.Name == name })
		if !known {
			o.MetricStrategies = append(o.MetricStrategies, MetricStrategy{Name: name, Value: strategy})
		}
	}
}

func setCollectorDefaults(s *ExperimentSpec) {
	if s.MetricsCollectorSpec == nil {
		s.MetricsCollectorSpec = &MetricsCollectorSpec{}
	}
	m := s.MetricsCollectorSpec
	if m.Collector == nil {
		m.Collector = &CollectorSpec{}
	}
	if m.Collector.Kind == "" {
		m.Collector.Kind = StdOutCollector
	}
	switch m.Collector.Kind {
	case FileCollector:
		setFileDefaults(m)
	case TensorFlowEventCollector:
		setPathDefaults(m, DirectoryKind, DefaultTensorFlowEventPath)
	case PrometheusMetricCollector:
		setHTTPDefaults(m)
	}
}

// setFileDefaults sets the defaults of a File collector. A directory has no default
// format.
func setFileDefaults(m *MetricsCollectorSpec) {
	kind, path := FileKind, DefaultFilePath
	if m.Source != nil && m.Source.FileSystemPath != nil {
		p := m.Source.FileSystemPath
		if p.Kind == DirectoryKind || p.Kind == "" && p.Format == WandbFormat {
			kind, path = DirectoryKind, DefaultDirectoryPath
		}
	}
	setPathDefaults(m, kind, path)
	if p := m.Source.FileSystemPath; p.Format == "" && p.Kind != DirectoryKind {
		p.Format = TextFormat
	}
}

func setPathDefaults(m *MetricsCollectorSpec, kind FileSystemKind, path string) {
	if m.Source == nil {
		m.Source = &SourceSpec{}
	}
	if m.Source.FileSystemPath == nil {
		m.Source.FileSystemPath = &FileSystemPath{}
	}
	p := m.Source.FileSystemPath
	if p.Kind == "" {
		p.Kind = kind
	}
	if p.Path == "" {
		p.Path = path
	}
}

func setHTTPDefaults(m *MetricsCollectorSpec) {
	if m.Source == nil {
		m.Source = &SourceSpec{}
	}
	if m.Source.HTTPGet == nil {
		m.Source.HTTPGet = &corev1.HTTPGetAction{}
	}
	h := m.Source.HTTPGet
	if h.Path == "" {
		h.Path = DefaultPrometheusMetricPath
	}
	if h.Port == (intstr.IntOrString{}) {
		h.Port = intstr.FromInt32(DefaultPrometheusMetricPort)
	}
}
