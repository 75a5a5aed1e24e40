//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector"
)

// Kueue's objects for one trial at a time.
const oneAtATime = `
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: any}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: team}
spec:
  namespaceSelector: {}
  preemption: {withinClusterQueue: LowerPriority}
  resourceGroups:
  - coveredResources: [cpu, memory]
    flavors: [{name: any, resources: [{name: cpu, nominalQuota: 500m}, {name: memory, nominalQuota: 4Gi}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: team, namespace: default}
spec: {clusterQueue: team}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: WorkloadPriorityClass
metadata: {name: low}
value: 1
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: WorkloadPriorityClass
metadata: {name: high}
value: 100
`

var clusterQueues = schema.GroupVersionKind{Group: "kueue.x-k8s.io", Version: "v1beta2", Kind: "ClusterQueue"}

// queuedJobs are jobs of one pod that takes more than half of the quota.
var queuedJobs = map[string]operatedJob{
	"job": {container: "main", job: `{apiVersion: batch/v1, kind: Job, spec: {backoffLimit: 0, template: {spec: {restartPolicy: Never, containers: [{name: main,
      resources: {requests: {cpu: 300m}}, %[1]s}]}}}}`},
	"pytorchjob": {container: "pytorch", job: `{apiVersion: kubeflow.org/v1, kind: PyTorchJob, spec: {pytorchReplicaSpecs: {
      Master: {replicas: 1, restartPolicy: Never, template: {spec: {containers: [{name: pytorch, resources: {requests: {cpu: 300m}}, %[1]s}]}}}}}}`},
	"jobset": {container: "node", job: `{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, spec: {replicatedJobs: [{name: node, template: {spec: {
      parallelism: 1, completions: 1, backoffLimit: 0, template: {spec: {restartPolicy: Never, containers: [{name: node, resources: {requests: {cpu: 300m}}, %[1]s}]}}}}}]}}`},
	"trainjob": {container: "node", job: `{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, spec: {
      runtimeRef: {name: torch-distributed}, trainer: {numNodes: 1, resourcesPerNode: {requests: {cpu: 300m}}, %[1]s}}}`},
}

// withQueue is a cluster with a queue that lets one trial run at a time.
func withQueue(t *testing.T) *instance {
	t.Helper()
	i := withOperators(t)
	for _, o := range objectsOf(t, oneAtATime) {
		if err := i.client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { i.kubectl(t, "delete", "--wait=false", o.GetKind(), o.GetName()) })
	}
	return i
}

// objectsOf reads the objects of a manifest.
func objectsOf(t *testing.T, manifest string) (objects []*unstructured.Unstructured) {
	t.Helper()
	for _, text := range strings.Split(manifest, "\n---\n") {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
			t.Fatal(err)
		}
		if len(o.Object) > 0 {
			objects = append(objects, o)
		}
	}
	return objects
}

func queued(trials, parallel int32) func(*v1beta1.Experiment) {
	return func(e *v1beta1.Experiment) {
		e.Labels = map[string]string{"kueue.x-k8s.io/queue-name": "team", "kueue.x-k8s.io/priority-class": "low"}
		e.Spec.MaxTrialCount, e.Spec.ParallelTrialCount = &trials, &parallel
	}
}

// epochs is a program that prints a loss for each of n seconds.
func epochs(n int) string {
	return fmt.Sprintf(`image: %q, command: [sh, -c, "i=0; while [ $i -lt %d ]; do i=$((i+1)); echo epoch=$i loss=${trialParameters.x}; sleep 1; done"]`, trialImage(), n)
}

// TestKueueLetsOneTrialRunAtATime offers three trials to a queue with room for one.
func TestKueueLetsOneTrialRunAtATime(t *testing.T) {
	i := withQueue(t)
	for kind, job := range queuedJobs {
		t.Run(kind, func(t *testing.T) {
			name := "queued-" + kind
			if err := i.client.Create(t.Context(), job.experiment(t, name, epochs(4), queued(4, 3))); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if t.Failed() {
					i.showFailures(t, name)
					i.showEvents(t, name)
				}
			})
			eventually(t, time.Minute, func(ctx context.Context) error {
				waiting := 0
				for _, trial := range i.trials(t, name) {
					if c := trial.LastCondition(); c != nil && strings.Contains(c.Message, v1beta1.QueuedSays) {
						waiting++
					}
				}
				out, err := i.vernier("get", "trials", name)
				if err != nil {
					t.Fatal(err)
				}
				if shown := strings.Count(out, "Queued"); waiting != 2 || shown != 2 {
					return fmt.Errorf("%d trials say that they are queued, want 2, and %d are shown so:\n%s", waiting, shown, out)
				}
				t.Logf("%s", out)
				return nil
			})
			i.awaitOneByOne(t, name)
			checkTrials(t, name, 4, i.trials(t, name))
		})
	}
}

// awaitOneByOne waits for the end of an experiment, and holds that programs of no two
// trials run at once.
func (i *instance) awaitOneByOne(t *testing.T, name string) {
	t.Helper()
	eventually(t, 4*time.Minute, func(ctx context.Context) error {
		var pods corev1.PodList
		if err := i.client.List(ctx, &pods, client.InNamespace("default"), client.HasLabels{v1beta1.LabelTrial}); err != nil {
			return err
		}
		var running []string
		for _, pod := range pods.Items {
			for _, s := range pod.Status.ContainerStatuses {
				if s.State.Running != nil && pod.DeletionTimestamp == nil {
					running = append(running, pod.Name)
				}
			}
		}
		if len(running) > 1 {
			t.Errorf("at once run %v", running)
		}
		var e v1beta1.Experiment
		if err := i.client.Get(ctx, client.ObjectKey{Namespace: "default", Name: name}, &e); err != nil {
			return err
		}
		if !e.IsCompleted() {
			return fmt.Errorf("the experiment has not ended: %+v", e.Status)
		}
		return nil
	})
}

// TestKueuePreemptsATrial has work of a higher priority take the place of a trial, which
// goes on when that is done. Neither attempt's points are lost.
func TestKueuePreemptsATrial(t *testing.T) {
	i := withQueue(t)
	const steps = 12
	for kind, job := range queuedJobs {
		t.Run(kind, func(t *testing.T) {
			name := "preempted-" + kind
			if err := i.client.Create(t.Context(), job.experiment(t, name, epochs(steps), queued(1, 1))); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if t.Failed() {
					i.showFailures(t, name)
					i.showEvents(t, name)
				}
			})
			eventually(t, time.Minute, func(context.Context) error {
				if points := i.pointsOf(t, name); len(points) == 0 || points[0] < 2 {
					return fmt.Errorf("%v points", points)
				}
				return nil
			})
			urgent := i.createUrgent(t, name)
			i.awaitMessage(t, time.Minute, name, v1beta1.PreemptedSays)
			if out, err := i.vernier("get", "trials", name); err != nil || !strings.Contains(out, "Preempted") {
				t.Errorf("vernier get trials: %v\n%s", err, out)
			}
			if points := i.pointsOf(t, name); len(points) != 1 || points[0] >= steps {
				t.Errorf("there are points %v when it was preempted", points)
			}
			if err := i.client.Delete(t.Context(), urgent, client.PropagationPolicy("Foreground")); err != nil {
				t.Fatal(err)
			}
			i.awaitEndWithin(t, 3*time.Minute, name)
			trials := i.trials(t, name)
			checkTrials(t, name, 1, trials)
			if o := trials[0].Status.Observation; o == nil || o.Metrics[0].Latest != trials[0].Spec.ParameterAssignments[0].Value {
				t.Errorf("it observed %+v", o)
			}
			if points := i.pointsOf(t, name); len(points) != 2 || points[0] < 2 || points[0] >= steps || points[1] != steps {
				t.Errorf("attempts have points %v, want two attempts, of which the second has %d", points, steps)
			}
		})
	}
}

// createUrgent creates a Job of a higher priority in the same queue, which does not end.
func (i *instance) createUrgent(t *testing.T, name string) *batchv1.Job {
	t.Helper()
	text := fmt.Sprintf(`
apiVersion: batch/v1
kind: Job
metadata: {name: urgent-%s, namespace: default, labels: {kueue.x-k8s.io/queue-name: team, kueue.x-k8s.io/priority-class: high}}
spec:
  template: {spec: {restartPolicy: Never, terminationGracePeriodSeconds: 0, containers: [{name: main, image: %q, command: [sleep, "1000"], resources: {requests: {cpu: 300m}}}]}}
`, name, trialImage())
	job := &batchv1.Job{}
	if err := yaml.UnmarshalStrict([]byte(text), job); err != nil {
		t.Fatal(err)
	}
	if err := i.client.Create(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = i.client.Delete(context.WithoutCancel(t.Context()), job, client.PropagationPolicy("Foreground"))
	})
	return job
}

// pointsOf counts the points of the loss in each attempt of an experiment's first trial.
func (i *instance) pointsOf(t *testing.T, experiment string) []int {
	t.Helper()
	trials := i.trials(t, experiment)
	if len(trials) == 0 {
		return nil
	}
	store := i.openStore(t)
	defer func() { _ = store.Close() }()
	series, err := collector.ReadSeries(t.Context(), store, string(trials[0].UID), "loss")
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(series, func(a, b collector.Series) int { return a.Attempt.Started.Compare(b.Attempt.Started) })
	var counts []int
	for _, s := range series {
		counts = append(counts, len(s.Points))
	}
	return counts
}
