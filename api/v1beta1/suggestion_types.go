package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SuggestionSpec says how many points are requested from which algorithm.
type SuggestionSpec struct {
	// Algorithm that proposes points.
	// +optional
	Algorithm *AlgorithmSpec `json:"algorithm,omitempty"`
	// EarlyStopping rule of the experiment.
	// +optional
	EarlyStopping *EarlyStoppingSpec `json:"earlyStopping,omitempty"`
	// Requests is the number of points requested so far.
	// +optional
	Requests int32 `json:"requests,omitempty"`
	// ResumePolicy of the experiment.
	// +optional
	ResumePolicy ResumePolicy `json:"resumePolicy,omitempty"`
}

// SuggestionStatus is the record of the proposed points.
type SuggestionStatus struct {
	// AlgorithmSettings that an external algorithm wrote back.
	// +optional
	// +listType=atomic
	AlgorithmSettings []AlgorithmSetting `json:"algorithmSettings,omitempty"`
	// SuggestionCount is the number of points proposed so far.
	// +optional
	SuggestionCount int32 `json:"suggestionCount,omitempty"`
	// Suggestions are the points, the newest 256 at most.
	// +optional
	// +listType=atomic
	Suggestions []TrialAssignment `json:"suggestions,omitempty"`
	// StartTime is when the first point was requested.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// CompletionTime is when the experiment ended.
	// +optional
	// +nullable
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	// LastReconcileTime is when the status was last written.
	// +optional
	LastReconcileTime *metav1.Time `json:"lastReconcileTime,omitempty"`
	// Conditions in order: the last one is the current state.
	// +optional
	// +listType=atomic
	Conditions []SuggestionCondition `json:"conditions,omitempty"`
}

// TrialAssignment is one proposed point.
type TrialAssignment struct {
	// ParameterAssignments are the values of the point.
	// +optional
	// +listType=atomic
	ParameterAssignments []ParameterAssignment `json:"parameterAssignments,omitempty"`
	// Name of the trial.
	// +optional
	Name string `json:"name,omitempty"`
	// EarlyStoppingRules of the trial.
	// +optional
	// +listType=atomic
	EarlyStoppingRules []EarlyStoppingRule `json:"earlyStoppingRules,omitempty"`
	// Labels of the trial.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
}

// SuggestionConditionType names a state of a suggestion.
type SuggestionConditionType string

// The states of a suggestion.
const (
	SuggestionCreated         SuggestionConditionType = "Created"
	SuggestionDeploymentReady SuggestionConditionType = "DeploymentReady"
	SuggestionRunning         SuggestionConditionType = "Running"
	SuggestionSucceeded       SuggestionConditionType = "Succeeded"
	SuggestionFailed          SuggestionConditionType = "Failed"
)

// SuggestionCondition is a state of a suggestion.
type SuggestionCondition struct {
	// Type of the condition.
	Type SuggestionConditionType `json:"type"`

	Condition `json:",inline"`
}

// Suggestion is the record of the points that an algorithm proposed for the
// experiment of the same name.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=suggestions,singular=suggestion,categories={all,kubeflow,katib}
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.status.conditions[-1:].type`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[-1:].status`
// +kubebuilder:printcolumn:name="Requested",type=string,JSONPath=`.spec.requests`
// +kubebuilder:printcolumn:name="Assigned",type=string,JSONPath=`.status.suggestionCount`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Suggestion struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec SuggestionSpec `json:"spec,omitempty"`
	// +optional
	Status SuggestionStatus `json:"status,omitempty"`
}

// SuggestionList is a list of suggestions.
// +kubebuilder:object:root=true
type SuggestionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Suggestion `json:"items"`
}
