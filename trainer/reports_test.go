package trainer_test

import (
	"testing"

	"github.com/vernier-ml/vernier/trainer"
)

func TestOnePodReports(t *testing.T) {
	const index, role, replica = "batch.kubernetes.io/job-completion-index", "training.kubeflow.org/job-role", "training.kubeflow.org/replica-index"
	master := map[string]string{role: "master"}
	type labels = map[string]string
	tests := map[string]struct {
		primary, pod labels
		want         bool
	}{
		"a pod without a rank":                     {nil, labels{"app": "x"}, true},
		"index 0 of an Indexed Job":                {nil, labels{index: "0"}, true},
		"another index":                            {nil, labels{index: "1"}, false},
		"the index that is asked for":              {labels{index: "1"}, labels{index: "1"}, true},
		"index 0 where another is asked for":       {labels{index: "1"}, labels{index: "0"}, false},
		"a label that all pods have, rank 0":       {labels{"app": "x"}, labels{"app": "x", index: "0"}, true},
		"a label that all pods have, another rank": {labels{"app": "x"}, labels{"app": "x", index: "3"}, false},
		"another value of the label":               {labels{"app": "x"}, labels{"app": "y"}, false},
		"the master":                               {master, labels{role: "master", replica: "0"}, true},
		"a worker, which has no role":              {master, labels{replica: "1"}, false},
		"the first worker beside a master":         {master, labels{replica: "0", "training.kubeflow.org/replica-type": "worker"}, false},
		"the first worker of another operator":     {master, labels{replica: "0"}, true},
		"the second pod of a Volcano task":         {nil, labels{"volcano.sh/task-index": "1"}, false},
		"the launcher of the MPI operator":         {master, labels{role: "launcher"}, true},
		"a step of a pipeline without the label":   {labels{"app": "x"}, labels{trainer.LabelInject: trainer.InjectAtPod}, false},
		"a step of a pipeline with it":             {labels{"app": "x"}, labels{trainer.LabelInject: trainer.InjectAtPod, "app": "x"}, true},
		"the second job of a JobSet":               {nil, labels{"jobset.sigs.k8s.io/job-index": "1", index: "0"}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := trainer.Reports(tc.primary, tc.pod); got != tc.want {
				t.Errorf("Reports = %v, want %v", got, tc.want)
			}
		})
	}
}
