package v1beta1

import "k8s.io/apimachinery/pkg/runtime/schema"

// KindDefaults are the defaults of a trial template for one kind of job.
type KindDefaults struct {
	// SuccessCondition and FailureCondition are GJSON expressions over the job.
	SuccessCondition, FailureCondition string
	// PrimaryPodLabels select the pods whose metrics are collected; nil means
	// all pods.
	PrimaryPodLabels map[string]string
}

// holdsTrue is the expression that is satisfied while the condition is True.
func holdsTrue(conditionType string) string {
	return `status.conditions.#(type=="` + conditionType + `")#|#(status=="True")#`
}

func master() map[string]string {
	return map[string]string{"training.kubeflow.org/job-role": "master"}
}

func firstWorker() map[string]string {
	return map[string]string{"training.kubeflow.org/replica-type": "worker", "training.kubeflow.org/replica-index": "0"}
}

// kindDefaults is the table of kinds. Katib has defaults for Job, TFJob,
// PyTorchJob, XGBoostJob, MPIJob and TrainJob; the rest are Vernier's. As in
// Katib, the group is ignored, but where two groups have kinds of one name.
func kindDefaults() map[string]KindDefaults {
	succeeded, failed := holdsTrue("Succeeded"), holdsTrue("Failed")
	operator := KindDefaults{succeeded, failed, master()}
	return map[string]KindDefaults{
		"Job":        {holdsTrue("Complete"), failed, nil},
		"TFJob":      operator,
		"PyTorchJob": operator,
		"XGBoostJob": operator,
		"MPIJob":     operator,
		"JAXJob":     operator,
		// The operator labels no master in a collective PaddleJob, and the servers in an
		// MXJob.
		"MXJob":     {succeeded, failed, firstWorker()},
		"PaddleJob": {succeeded, failed, firstWorker()},
		"TrainJob": {holdsTrue("Complete"), failed, map[string]string{
			"jobset.sigs.k8s.io/replicatedjob-name":    "node",
			"batch.kubernetes.io/job-completion-index": "0",
		}},
		"JobSet": {holdsTrue("Completed"), failed, nil},
		// A RayJob that may be retried passes through jobStatus FAILED; only
		// jobDeploymentStatus Failed is final. A job stopped by hand is STOPPED.
		"RayJob": {
			`status.[@this].#(jobStatus=="SUCCEEDED")#`,
			`[status.[@this].#(jobDeploymentStatus=="Failed")#,status.[@this].#(jobStatus=="STOPPED")#]|@flatten`,
			nil,
		},
		// An Argo Workflow ends as Succeeded, Failed or Error.
		"Workflow": {
			`status.[@this].#(phase=="Succeeded")#`,
			`[status.[@this].#(phase=="Failed")#,status.[@this].#(phase=="Error")#]|@flatten`,
			nil,
		},
		// A Tekton PipelineRun has one condition, which is False on failure.
		"PipelineRun": {succeeded, `status.conditions.#(type=="Succeeded")#|#(status=="False")#`, nil},
		// A Volcano Job that was aborted can be resumed.
		"Job.batch.volcano.sh": {
			`status.state.[@this].#(phase=="Completed")#`,
			`[status.state.[@this].#(phase=="Failed")#,status.state.[@this].#(phase=="Terminated")#]|@flatten`,
			nil,
		},
		"SparkApplication": {
			`status.applicationState.[@this].#(state=="COMPLETED")#`,
			`status.applicationState.[@this].#(state=="FAILED")#`,
			map[string]string{"spark-role": "driver"},
		},
		"Pod": {
			`status.[@this].#(phase=="Succeeded")#`,
			`status.[@this].#(phase=="Failed")#`,
			nil,
		},
	}
}

// DefaultsForKind returns the defaults for jobs of the kind, and whether there
// are any. The caller owns the map.
func DefaultsForKind(kind schema.GroupKind) (KindDefaults, bool) {
	all := kindDefaults()
	d, ok := all[kind.String()]
	if !ok {
		d, ok = all[kind.Kind]
	}
	return d, ok
}

// SetKindDefaults sets what t does not: the success and failure condition and the
// primary pod labels. SetDefaults calls it for an inline template. The kind of a
// template in a ConfigMap is known only after reading it, so its reader calls
// this.
func SetKindDefaults(t *TrialTemplate, kind schema.GroupKind) {
	d, ok := DefaultsForKind(kind)
	if !ok {
		return
	}
	if t.SuccessCondition == "" {
		t.SuccessCondition = d.SuccessCondition
	}
	if t.FailureCondition == "" {
		t.FailureCondition = d.FailureCondition
	}
	if t.PrimaryPodLabels == nil {
		t.PrimaryPodLabels = d.PrimaryPodLabels
	}
}
