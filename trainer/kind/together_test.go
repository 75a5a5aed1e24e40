package kind_test

import (
	"testing"

	"github.com/vernier-ml/vernier/trainer"
	"github.com/vernier-ml/vernier/trainer/kind"
	"github.com/vernier-ml/vernier/trainer/trainertest"
)

func TestPodsThatWorkTogether(t *testing.T) {
	const template = `template: {spec: {subdomain: all, containers: [{name: main, image: i}]}}`
	tests := map[string]struct {
		job  string
		want int
	}{
		"a Job of one pod":         {`{apiVersion: batch/v1, kind: Job, spec: {` + template + `}}`, 0},
		"an Indexed Job":           {`{apiVersion: batch/v1, kind: Job, spec: {completionMode: Indexed, completions: 3, parallelism: 3, ` + template + `}}`, 3},
		"an Indexed Job in turn":   {`{apiVersion: batch/v1, kind: Job, spec: {completionMode: Indexed, completions: 8, ` + template + `}}`, 0},
		"an Indexed Job in pairs":  {`{apiVersion: batch/v1, kind: Job, spec: {completionMode: Indexed, completions: 8, parallelism: 2, ` + template + `}}`, 2},
		"a JobSet beyond measure":  {`{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, spec: {replicatedJobs: [{name: a, replicas: 2000000000, template: {spec: {parallelism: 2000000000, completions: 2000000000, ` + template + `}}}]}}`, 10_000},
		"a Job of nameless pods":   {`{apiVersion: batch/v1, kind: Job, spec: {completions: 3, parallelism: 3, ` + template + `}}`, 0},
		"a TFJob":                  {`{apiVersion: kubeflow.org/v1, kind: TFJob, spec: {tfReplicaSpecs: {PS: {replicas: 2, ` + template + `}, Worker: {replicas: 3, ` + template + `}}}}`, 5},
		"a PyTorchJob of a master": {`{apiVersion: kubeflow.org/v1, kind: PyTorchJob, spec: {pytorchReplicaSpecs: {Master: {` + template + `}}}}`, 0},
		"a JobSet":                 {`{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, spec: {replicatedJobs: [{name: a, replicas: 2, template: {spec: {parallelism: 2, completions: 2, ` + template + `}}}]}}`, 4},
		"a TrainJob":               {`{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, spec: {trainer: {numNodes: 4}}}`, 0},
		"a kind without templates": {`{apiVersion: argoproj.io/v1alpha1, kind: Workflow, spec: {}}`, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			job := trainertest.Job(t, tc.job)
			if got := trainer.Together(job, kind.For(job.GroupVersionKind())); len(got) != tc.want {
				t.Errorf("%d pods work together, want %d", len(got), tc.want)
			}
		})
	}
}
