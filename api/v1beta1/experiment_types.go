package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ExperimentSpec says what to search for, how, and with what budget.
// +kubebuilder:validation:XValidation:rule="!(has(self.parameters) && size(self.parameters) > 0 && has(self.nasConfig))",message="parameters and nasConfig exclude each other: give one of them"
// +kubebuilder:validation:XValidation:rule="!has(self.maxTrialCount) || !has(self.parallelTrialCount) || self.parallelTrialCount <= self.maxTrialCount",message="parallelTrialCount must not be above maxTrialCount"
type ExperimentSpec struct {
	// Parameters are the search space.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1000
	Parameters []ParameterSpec `json:"parameters,omitempty"`
	// Objective says what is optimized.
	// +optional
	Objective *ObjectiveSpec `json:"objective,omitempty"`
	// Algorithm says how the search space is searched.
	// +optional
	Algorithm *AlgorithmSpec `json:"algorithm,omitempty"`
	// EarlyStopping says when to stop a running trial.
	// +optional
	EarlyStopping *EarlyStoppingSpec `json:"earlyStopping,omitempty"`
	// TrialTemplate is the template of a trial's job.
	// +optional
	TrialTemplate *TrialTemplate `json:"trialTemplate,omitempty"`
	// ParallelTrialCount is how many trials run at once. Default: 3.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	ParallelTrialCount *int32 `json:"parallelTrialCount,omitempty"`
	// MaxTrialCount is the total number of trials. Without it the experiment runs
	// until its goal is reached or the space is exhausted.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxTrialCount *int32 `json:"maxTrialCount,omitempty"`
	// MaxFailedTrialCount is the number of failed trials at which the experiment
	// fails. Without it, it fails after 12 failures in a row, 60 after a success.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MaxFailedTrialCount *int32 `json:"maxFailedTrialCount,omitempty"`
	// MetricsCollectorSpec says how metrics are collected. Default: StdOut.
	// +optional
	MetricsCollectorSpec *MetricsCollectorSpec `json:"metricsCollectorSpec,omitempty"`
	// NasConfig is the search space of neural architecture search.
	// +optional
	NasConfig *NasConfig `json:"nasConfig,omitempty"`
	// ResumePolicy says whether the finished experiment continues if
	// maxTrialCount is raised. Default: Never.
	// +optional
	ResumePolicy ResumePolicy `json:"resumePolicy,omitempty"`
	// Seed (Vernier) makes the proposals reproducible. Default: derived from the
	// experiment's UID.
	// +optional
	Seed *int64 `json:"seed,omitempty"`
	// Repeats (Vernier) says whether points are tried again, each time with another
	// ${trialSeed}, where results are so noisy that the best one may be luck: Auto or
	// Never. Default: Auto if the trialSpec uses ${trialSeed}, else Never.
	// +optional
	Repeats RepeatPolicy `json:"repeats,omitempty"`
	// ParameterConstraints (Vernier) are conditions on the parameters that every
	// proposed point satisfies, such as "batch * accumulate <= 512".
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=10000
	ParameterConstraints []string `json:"parameterConstraints,omitempty"`
	// InitialTrials (Vernier) are points to try first, in this order. Those with an id
	// may be added and removed while the experiment runs.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1000
	InitialTrials []InitialTrial `json:"initialTrials,omitempty"`
	// Objectives (Vernier) are optimized together. The first one is the main one
	// and replaces objective, which may be omitted.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	Objectives []ObjectiveMetric `json:"objectives,omitempty"`
	// Constraints (Vernier) are bounds on metrics. Trials that violate them are
	// never the best, and the algorithm learns to avoid them.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Constraints []MetricConstraint `json:"constraints,omitempty"`
	// WarmStartFrom (Vernier) names experiments of the same namespace whose
	// finished trials the algorithm learns from.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	WarmStartFrom []WarmStart `json:"warmStartFrom,omitempty"`
	// Suspend (Vernier) makes no new trials while it is true. Trials that run go on.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
	// MaxDuration (Vernier) ends the experiment this long after it started, such as
	// "8h30m". Trials that run are stopped. Default: no limit.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]{1,5}(\.[0-9]{1,3})?(ms|s|m|h)){1,4}$`
	MaxDuration *metav1.Duration `json:"maxDuration,omitempty"`
	// MaxGPUHours (Vernier) ends the experiment when its trials have used this much: the
	// GPUs that their pods ask for, times the hours that their programs ran. Trials that
	// run are stopped. Default: no limit.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:ExclusiveMinimum=true
	// +kubebuilder:validation:Maximum=1000000
	MaxGPUHours *float64 `json:"maxGPUHours,omitempty"`
	// MaxTrialDuration (Vernier) is how long a trial may run, from the start of its
	// first pod. Then its job is deleted, and it has failed. Default: no limit.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]{1,5}(\.[0-9]{1,3})?(ms|s|m|h)){1,4}$`
	MaxTrialDuration *metav1.Duration `json:"maxTrialDuration,omitempty"`
	// MaxTrialWaitDuration (Vernier) is how long a trial may be held up, by anything
	// from a missing image to a full cluster, before it fails; "0s" is forever.
	// Default: the manager's.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]{1,5}(\.[0-9]{1,3})?(ms|s|m|h)){1,4}$`
	MaxTrialWaitDuration *metav1.Duration `json:"maxTrialWaitDuration,omitempty"`
}

// RepeatPolicy says whether points are tried again.
// +kubebuilder:validation:Enum=Auto;Never
type RepeatPolicy string

// The policies of repeats.
const (
	RepeatAuto  RepeatPolicy = "Auto"
	RepeatNever RepeatPolicy = "Never"
)

// InitialTrial is a point to try before the algorithm proposes any.
type InitialTrial struct {
	// ID makes the point a queued one: it is tried once, also where a trial has the
	// same point already, and may be added while the experiment runs. IDs are unique in
	// the experiment.
	// +optional
	// +kubebuilder:validation:MaxLength=100
	ID string `json:"id,omitempty"`
	// ParameterAssignments have a value for every active parameter.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	ParameterAssignments []ParameterAssignment `json:"parameterAssignments"`
}

// TrialTemplate is the template of a trial's job.
// +kubebuilder:validation:XValidation:rule="!(has(self.trialSpec) && has(self.configMap))",message="trialSpec and configMap exclude each other: give one of them"
type TrialTemplate struct {
	// Retain keeps the job after the trial has ended.
	// +optional
	Retain bool `json:"retain,omitempty"`

	TrialSource `json:",inline"`

	// TrialParameters maps the placeholders ${trialParameters.name} of the template
	// to parameters.
	// +optional
	// +listType=atomic
	TrialParameters []TrialParameterSpec `json:"trialParameters,omitempty"`
	// PrimaryPodLabels select the pods whose metrics are collected.
	// +optional
	PrimaryPodLabels map[string]string `json:"primaryPodLabels,omitempty"`
	// PrimaryContainerName is the container whose metrics are collected.
	// +optional
	PrimaryContainerName string `json:"primaryContainerName,omitempty"`
	// SuccessCondition is a GJSON expression over the job that is true if the job
	// has succeeded.
	// +optional
	SuccessCondition string `json:"successCondition,omitempty"`
	// FailureCondition is a GJSON expression over the job that is true if the job
	// has failed.
	// +optional
	FailureCondition string `json:"failureCondition,omitempty"`
	// Checkpoints (Vernier) gives each trial a directory for its checkpoints. A
	// trial that continues another one starts with a copy of that one's.
	// +optional
	Checkpoints *CheckpointSpec `json:"checkpoints,omitempty"`
	// Retry (Vernier) is how many times a trial's job is made again after it has
	// failed, before the trial fails. Pods that were evicted, drained or preempted
	// are replaced in any case. Default: 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Retry int32 `json:"retry,omitempty"`
}

// CheckpointSpec says where trials keep their checkpoints.
type CheckpointSpec struct {
	// Path is the absolute path of the directory in the primary container.
	// +kubebuilder:validation:MaxLength=4096
	Path string `json:"path"`
	// ClaimName is the PersistentVolumeClaim of the volume, which all nodes of the
	// trials can write to. Default: a claim that is made with the experiment, and
	// deleted with it.
	// +optional
	ClaimName string `json:"claimName,omitempty"`
}

// TrialSource is where the template comes from. Exactly one field is set.
type TrialSource struct {
	// TrialSpec is the template itself: any object.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	TrialSpec *runtime.RawExtension `json:"trialSpec,omitempty"`
	// ConfigMap names a ConfigMap that holds the template.
	// +optional
	ConfigMap *ConfigMapSource `json:"configMap,omitempty"`
}

// ConfigMapSource names an entry of a ConfigMap.
type ConfigMapSource struct {
	// ConfigMapName is the name of the ConfigMap.
	// +optional
	ConfigMapName string `json:"configMapName,omitempty"`
	// ConfigMapNamespace is the namespace of the ConfigMap.
	// +optional
	ConfigMapNamespace string `json:"configMapNamespace,omitempty"`
	// TemplatePath is the key of the entry that holds the template.
	// +optional
	TemplatePath string `json:"templatePath,omitempty"`
}

// TrialParameterSpec is one placeholder of the template.
type TrialParameterSpec struct {
	// Name of the placeholder: ${trialParameters.name}.
	// +optional
	Name string `json:"name,omitempty"`
	// Description for people.
	// +optional
	Description string `json:"description,omitempty"`
	// Reference is the name of a search parameter, or metadata of the trial:
	// ${trialSpec.Name}, ${trialSpec.Namespace}, ${trialSpec.Kind},
	// ${trialSpec.APIVersion}, ${trialSpec.Labels[key]},
	// ${trialSpec.Annotations[key]}.
	// +optional
	Reference string `json:"reference,omitempty"`
}

// NasConfig is the search space of neural architecture search.
type NasConfig struct {
	// GraphConfig is the shape of the network.
	// +optional
	GraphConfig GraphConfig `json:"graphConfig,omitempty"`
	// Operations are the operations to choose from.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	Operations []Operation `json:"operations,omitempty"`
}

// GraphConfig is the shape of a network.
type GraphConfig struct {
	// NumLayers is the number of layers.
	// +optional
	NumLayers *int32 `json:"numLayers,omitempty"`
	// InputSizes are the dimensions of the input.
	// +optional
	// +listType=atomic
	InputSizes []int32 `json:"inputSizes,omitempty"`
	// OutputSizes are the dimensions of the output.
	// +optional
	// +listType=atomic
	OutputSizes []int32 `json:"outputSizes,omitempty"`
}

// Operation is one operation of an architecture.
type Operation struct {
	// OperationType names the operation.
	// +optional
	OperationType string `json:"operationType,omitempty"`
	// Parameters of the operation.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	Parameters []ParameterSpec `json:"parameters,omitempty"`
}

// ExperimentConditionType names a state of an experiment.
type ExperimentConditionType string

// The states of an experiment.
const (
	ExperimentCreated    ExperimentConditionType = "Created"
	ExperimentRunning    ExperimentConditionType = "Running"
	ExperimentRestarting ExperimentConditionType = "Restarting"
	ExperimentSucceeded  ExperimentConditionType = "Succeeded"
	ExperimentFailed     ExperimentConditionType = "Failed"
)

// ExperimentCondition is a state of an experiment.
type ExperimentCondition struct {
	// Type of the condition.
	Type ExperimentConditionType `json:"type"`

	Condition `json:",inline"`
}

// Experiment is a search space, an objective, an algorithm, budgets and a job
// template.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=experiments,singular=experiment,categories={all,kubeflow,katib}
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.status.conditions[-1:].type`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[-1:].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Experiment struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec ExperimentSpec `json:"spec,omitempty"`
	// +optional
	Status ExperimentStatus `json:"status,omitempty"`
}

// ExperimentList is a list of experiments.
// +kubebuilder:object:root=true
type ExperimentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Experiment `json:"items"`
}
