package trainer

import (
	"slices"
	"strings"
)

var ranks = []string{
	"batch.kubernetes.io/job-completion-index",
	"jobset.sigs.k8s.io/job-index",
	"training.kubeflow.org/replica-index",
	"leaderworkerset.sigs.k8s.io/worker-index",
	"volcano.sh/task-index",
}

// Labels of the training operator's pods.
const (
	jobRole     = "training.kubeflow.org/job-role"
	replicaType = "training.kubeflow.org/replica-type"
)

// Reports says whether a pod's metrics are its trial's: of several pods with a
// collector one reports, the one that primaryPodLabels select, else rank 0. A label
// that the pod does not have selects nothing: the defaults of a kind name labels that
// not every operator writes. But of the pods of a pipeline, which get the collector when
// they are created, only those with all labels are meant. The training operator writes
// which pod is the master.
func Reports(primary, labels map[string]string) bool {
	ranked := false
	for key, want := range primary {
		have, ok := labels[key]
		// The MPI operator's word for what the training operator calls a master.
		launcher := want == "master" && have == "launcher"
		if ok && !strings.EqualFold(have, want) && !launcher || !ok && labels[LabelInject] == InjectAtPod {
			return false
		}
		if _, typed := labels[replicaType]; key == jobRole && typed && !ok {
			return false
		}
		ranked = ranked || ok && slices.Contains(ranks, key)
	}
	if ranked {
		return true
	}
	for _, key := range ranks {
		if rank, ok := labels[key]; ok && rank != "0" {
			return false
		}
	}
	return true
}
