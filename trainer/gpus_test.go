package trainer_test

import (
	"strings"
	"testing"

	"github.com/vernier-ml/vernier/trainer"
	"github.com/vernier-ml/vernier/trainer/kind"
	"github.com/vernier-ml/vernier/trainer/trainertest"
)

func TestGPUs(t *testing.T) {
	const (
		job  = `{apiVersion: batch/v1, kind: Job, spec: `
		one  = `{name: a, image: i, resources: {limits: {nvidia.com/gpu: 1}}}`
		two  = `{name: b, image: i, resources: {limits: {cpu: 4, nvidia.com/gpu: "2"}, requests: {cpu: 1}}}`
		none = `{name: c, image: i}`
	)
	of := func(containers ...string) string {
		return `{spec: {containers: [` + strings.Join(containers, ", ") + `]}}`
	}
	tests := map[string]struct {
		job  string
		want int
	}{
		"none":                              {job + `{template: ` + of(none) + `}}`, 0},
		"those of all containers":           {job + `{template: ` + of(one, two, none) + `}}`, 3},
		"AMD's, by requests":                {job + `{template: ` + of(`{name: a, resources: {requests: {amd.com/gpu: 4}}}`) + `}}`, 4},
		"a part of one counts as one":       {job + `{template: ` + of(`{name: a, resources: {limits: {nvidia.com/mig-1g.10gb: 2}}}`) + `}}`, 2},
		"other devices are none":            {job + `{template: ` + of(`{name: a, resources: {limits: {vendor.example/nic: 2, memory: 1Gi}}}`) + `}}`, 0},
		"a container before the others":     {job + `{template: {spec: {initContainers: [` + two + `], containers: [` + one + `]}}}}`, 2},
		"a sidecar":                         {job + `{template: {spec: {initContainers: [{name: s, restartPolicy: Always, resources: {limits: {nvidia.com/gpu: 1}}}], containers: [` + one + `]}}}}`, 2},
		"a Job of several pods":             {job + `{parallelism: 3, completions: 3, template: ` + of(two) + `}}`, 6},
		"a Job of pods one after the other": {job + `{completions: 8, template: ` + of(two) + `}}`, 2},
		"a Job with more room than pods":    {job + `{parallelism: 8, completions: 2, template: ` + of(one) + `}}`, 2},
		"roles and replicas":                {`{apiVersion: kubeflow.org/v1, kind: PyTorchJob, spec: {pytorchReplicaSpecs: {Master: {template: ` + of(one) + `}, Worker: {replicas: 3, template: ` + of(two) + `}}}}`, 7},
		"an MPIJob whose launcher has none": {`{apiVersion: kubeflow.org/v1, kind: MPIJob, spec: {mpiReplicaSpecs: {Launcher: {replicas: 1, template: ` + of(none) + `}, Worker: {replicas: 2, template: ` + of(two) + `}}}}`, 4},
		"a JobSet":                          {`{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, spec: {replicatedJobs: [{name: a, replicas: 2, template: {spec: {parallelism: 2, completions: 2, template: ` + of(one) + `}}}]}}`, 4},
		"a RayJob":                          {`{apiVersion: ray.io/v1, kind: RayJob, spec: {rayClusterSpec: {headGroupSpec: {template: ` + of(none) + `}, workerGroupSpecs: [{groupName: w, replicas: 3, template: ` + of(one) + `}]}}}`, 3},
		"a RayJob of several hosts":         {`{apiVersion: ray.io/v1, kind: RayJob, spec: {rayClusterSpec: {headGroupSpec: {template: ` + of(none) + `}, workerGroupSpecs: [{groupName: w, minReplicas: 2, numOfHosts: 4, template: ` + of(one) + `}]}}}`, 8},
		"less than no pods":                 {job + `{parallelism: -3, template: ` + of(two) + `}}`, 0},
		"a TrainJob":                        {`{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, spec: {trainer: {numNodes: 4, resourcesPerNode: {limits: {nvidia.com/gpu: 2}}}}}`, 8},
		"a TrainJob of its runtime's size":  {`{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, spec: {trainer: {resourcesPerNode: {limits: {nvidia.com/gpu: 2}}}}}`, 2},
		"a TrainJob that leaves GPUs to it": {`{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, spec: {trainer: {numNodes: 4}}}`, 0},
		"a Workflow, which shows no pods":   {`{apiVersion: argoproj.io/v1alpha1, kind: Workflow, spec: {templates: [{name: t, container: ` + one + `}]}}`, 0},
		"a template that is none for a pod": {job + `{template: {spec: {containers: [{name: a, resources: many}]}}}}`, 0},
		"a role that is switched off":       {`{apiVersion: kubeflow.org/v1, kind: TFJob, spec: {tfReplicaSpecs: {PS: {replicas: 0, template: ` + of(one) + `}, Worker: {template: ` + of(two) + `}}}}`, 2},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			job := trainertest.Job(t, tc.job)
			if got := trainer.GPUs(job, kind.For(job.GroupVersionKind())); got != tc.want {
				t.Errorf("%d GPUs, want %d", got, tc.want)
			}
		})
	}
}
