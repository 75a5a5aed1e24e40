package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// TrialSpec is one evaluation of a point of the search space.
type TrialSpec struct {
	// Objective is the experiment's objective.
	// +optional
	Objective *ObjectiveSpec `json:"objective,omitempty"`
	// Objectives (Vernier) are those of the experiment, if there are several.
	// +optional
	// +listType=atomic
	Objectives []ObjectiveMetric `json:"objectives,omitempty"`
	// ParameterAssignments are the values of the point.
	// +optional
	// +listType=atomic
	ParameterAssignments []ParameterAssignment `json:"parameterAssignments"`
	// EarlyStoppingRules stop the trial. External algorithms write them.
	// +optional
	// +listType=atomic
	EarlyStoppingRules []EarlyStoppingRule `json:"earlyStoppingRules,omitempty"`
	// RunSpec is the rendered job.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	RunSpec *runtime.RawExtension `json:"runSpec,omitempty"`
	// RetainRun keeps the job after the trial has ended.
	// +optional
	RetainRun bool `json:"retainRun,omitempty"`
	// MetricsCollector says how metrics are collected.
	// +optional
	MetricsCollector MetricsCollectorSpec `json:"metricsCollector,omitempty"`
	// PrimaryPodLabels select the pods whose metrics are collected.
	// +optional
	PrimaryPodLabels map[string]string `json:"primaryPodLabels,omitempty"`
	// PrimaryContainerName is the container whose metrics are collected.
	// +optional
	PrimaryContainerName string `json:"primaryContainerName,omitempty"`
	// SuccessCondition is a GJSON expression that is true if the job has
	// succeeded.
	// +optional
	SuccessCondition string `json:"successCondition,omitempty"`
	// FailureCondition is a GJSON expression that is true if the job has failed.
	// +optional
	FailureCondition string `json:"failureCondition,omitempty"`
	// Labels that an algorithm gave the trial.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// Checkpoints (Vernier) is the trial's directory for checkpoints.
	// +optional
	Checkpoints *TrialCheckpoints `json:"checkpoints,omitempty"`
	// Retry (Vernier) is the template's.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Retry int32 `json:"retry,omitempty"`
	// MaxDuration (Vernier) is the experiment's maxTrialDuration.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]{1,5}(\.[0-9]{1,3})?(ms|s|m|h)){1,4}$`
	MaxDuration *metav1.Duration `json:"maxDuration,omitempty"`
	// MaxWaitDuration (Vernier) is the experiment's maxTrialWaitDuration.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]{1,5}(\.[0-9]{1,3})?(ms|s|m|h)){1,4}$`
	MaxWaitDuration *metav1.Duration `json:"maxWaitDuration,omitempty"`
}

// TrialCheckpoints is a trial's directory for checkpoints, and where its content
// comes from.
type TrialCheckpoints struct {
	CheckpointSpec `json:",inline"`
	// Folder holds the directories of the experiment's trials on the volume. They
	// have the trials' names.
	Folder string `json:"folder"`
	// Parent is the trial whose checkpoints this trial starts with.
	// +optional
	Parent string `json:"parent,omitempty"`
}

// TrialStatus is the state that the controller has observed.
type TrialStatus struct {
	// StartTime is when the trial started.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// ProgramStartTime (Vernier) is when the primary container started first, if its pods
	// still told when the trial ended: before that the trial waited for a node or a queue.
	// It is written when it is seen if the experiment has maxGPUHours.
	// +optional
	ProgramStartTime *metav1.Time `json:"programStartTime,omitempty"`
	// CompletionTime is when the trial ended.
	// +optional
	// +nullable
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	// LastReconcileTime is when the status was last written.
	// +optional
	LastReconcileTime *metav1.Time `json:"lastReconcileTime,omitempty"`
	// Conditions in order: the last one is the current state.
	// +optional
	// +listType=atomic
	Conditions []TrialCondition `json:"conditions,omitempty"`
	// Observation is the result.
	// +optional
	Observation *Observation `json:"observation,omitempty"`
	// Usage (Vernier) is what the trial used of its machine, where that is sampled:
	// system/gpu0.utilization_percent and others. The value is the mean over time.
	// Written when the trial ends; never a result.
	// +optional
	// +listType=atomic
	Usage []Metric `json:"usage,omitempty"`
	// Retries (Vernier) is how many failed jobs of the trial were made again.
	// +optional
	Retries int32 `json:"retries,omitempty"`
	// RetriedJob (Vernier) is the UID of the last of them.
	// +optional
	RetriedJob types.UID `json:"retriedJob,omitempty"`
}

// TrialConditionType names a state of a trial.
type TrialConditionType string

// The states of a trial.
const (
	TrialCreated            TrialConditionType = "Created"
	TrialRunning            TrialConditionType = "Running"
	TrialSucceeded          TrialConditionType = "Succeeded"
	TrialKilled             TrialConditionType = "Killed"
	TrialFailed             TrialConditionType = "Failed"
	TrialMetricsUnavailable TrialConditionType = "MetricsUnavailable"
	TrialEarlyStopped       TrialConditionType = "EarlyStopped"
)

// TrialCondition is a state of a trial.
type TrialCondition struct {
	// Type of the condition.
	Type TrialConditionType `json:"type"`

	Condition `json:",inline"`
}

// Trial is one evaluation of a point of the search space.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=trials,singular=trial,categories={all,kubeflow,katib}
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.status.conditions[-1:].type`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[-1:].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Trial struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec TrialSpec `json:"spec,omitempty"`
	// +optional
	Status TrialStatus `json:"status,omitempty"`
}

// TrialList is a list of trials.
// +kubebuilder:object:root=true
type TrialList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Trial `json:"items"`
}
