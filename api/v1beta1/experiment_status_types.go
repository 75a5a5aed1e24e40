package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ExperimentStatus is the state that the controller has observed.
type ExperimentStatus struct {
	// StartTime is when the controller first saw the experiment.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// CompletionTime is when the experiment ended; null before.
	// +optional
	// +nullable
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	// LastReconcileTime is when the status was last written.
	// +optional
	LastReconcileTime *metav1.Time `json:"lastReconcileTime,omitempty"`
	// Conditions in order: the last one is the current state.
	// +optional
	// +listType=atomic
	Conditions []ExperimentCondition `json:"conditions,omitempty"`
	// CurrentOptimalTrial is the best trial so far. With several objectives it is
	// the best in the first one.
	// +optional
	CurrentOptimalTrial OptimalTrial `json:"currentOptimalTrial"`
	// RecommendedTrial (Vernier) has the parameters that further trials are expected to
	// be best with, where trials are repeated: CurrentOptimalTrial may owe its value to
	// luck.
	// +optional
	RecommendedTrial *RecommendedTrial `json:"recommendedTrial,omitempty"`
	// ParetoTrialList (Vernier) is the Pareto front of several objectives: the
	// trials that no other trial dominates, in order of their numbers, the newest
	// 500 at most.
	// +optional
	// +listType=atomic
	ParetoTrialList []string `json:"paretoTrialList,omitempty"`
	// RunningTrialList names running trials, the newest 500 at most.
	// +optional
	// +listType=atomic
	RunningTrialList []string `json:"runningTrialList,omitempty"`
	// PendingTrialList names pending trials, the newest 500 at most.
	// +optional
	// +listType=atomic
	PendingTrialList []string `json:"pendingTrialList,omitempty"`
	// FailedTrialList names failed trials, the newest 500 at most.
	// +optional
	// +listType=atomic
	FailedTrialList []string `json:"failedTrialList,omitempty"`
	// SucceededTrialList names succeeded trials, the newest 500 at most.
	// +optional
	// +listType=atomic
	SucceededTrialList []string `json:"succeededTrialList,omitempty"`
	// KilledTrialList names killed trials, the newest 500 at most.
	// +optional
	// +listType=atomic
	KilledTrialList []string `json:"killedTrialList,omitempty"`
	// EarlyStoppedTrialList names early stopped trials, the newest 500 at most.
	// +optional
	// +listType=atomic
	EarlyStoppedTrialList []string `json:"earlyStoppedTrialList,omitempty"`
	// MetricsUnavailableTrialList names trials without a measured objective,
	// the newest 500 at most.
	// +optional
	// +listType=atomic
	MetricsUnavailableTrialList []string `json:"metricsUnavailableTrialList,omitempty"`
	// Trials is the number of trials.
	// +optional
	Trials int32 `json:"trials,omitempty"`
	// TrialsSucceeded is the number of succeeded trials.
	// +optional
	TrialsSucceeded int32 `json:"trialsSucceeded,omitempty"`
	// TrialsFailed is the number of failed trials.
	// +optional
	TrialsFailed int32 `json:"trialsFailed,omitempty"`
	// TrialsKilled is the number of killed trials.
	// +optional
	TrialsKilled int32 `json:"trialsKilled,omitempty"`
	// TrialsPending is the number of pending trials.
	// +optional
	TrialsPending int32 `json:"trialsPending,omitempty"`
	// TrialsRunning is the number of running trials.
	// +optional
	TrialsRunning int32 `json:"trialsRunning,omitempty"`
	// TrialsEarlyStopped is the number of early stopped trials.
	// +optional
	TrialsEarlyStopped int32 `json:"trialsEarlyStopped,omitempty"`
	// TrialMetricsUnavailable is the number of trials without a measured
	// objective.
	// +optional
	TrialMetricsUnavailable int32 `json:"trialMetricsUnavailable,omitempty"`
	// GPUHours (Vernier) is what the trials that have ended used of maxGPUHours, such as
	// "12.50".
	// +optional
	GPUHours string `json:"gpuHours,omitempty"`
}

// OptimalTrial is the best trial so far.
type OptimalTrial struct {
	// BestTrialName names the trial.
	// +optional
	BestTrialName string `json:"bestTrialName,omitempty"`
	// ParameterAssignments are the trial's parameters.
	// +optional
	// +listType=atomic
	ParameterAssignments []ParameterAssignment `json:"parameterAssignments,omitempty"`
	// Observation is the trial's result.
	// +optional
	Observation Observation `json:"observation"`
}

// RecommendedTrial is what a model of all results recommends.
type RecommendedTrial struct {
	// TrialName names the first trial with these parameters.
	TrialName string `json:"trialName"`
	// ParameterAssignments are the parameters.
	// +optional
	// +listType=atomic
	ParameterAssignments []ParameterAssignment `json:"parameterAssignments,omitempty"`
	// Value of the objective that is expected on average.
	Value string `json:"value"`
	// Deviation is the standard deviation of that expectation.
	Deviation string `json:"deviation"`
	// Noise is the standard deviation of one trial around its average.
	Noise string `json:"noise"`
	// Trials is how many trials measured these parameters.
	Trials int32 `json:"trials"`
}
