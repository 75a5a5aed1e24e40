//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/trainer"
)

// operatedJob is a job of several pods that an operator of e2e/operators runs. %[1]s of
// the job are the fields of the container that name its image and its command.
type operatedJob struct {
	container, job string
	// label is that by which its controller knows the pods that it has made.
	label string
}

var operatedJobs = map[string]operatedJob{
	"pytorchjob": {"pytorch", `{apiVersion: kubeflow.org/v1, kind: PyTorchJob, spec: {pytorchReplicaSpecs: {
      Master: {replicas: 1, template: {spec: {containers: [{name: pytorch, %[1]s}]}}},
      Worker: {replicas: 1, template: {spec: {containers: [{name: pytorch, %[1]s}]}}}}}}`, "training.kubeflow.org/job-name"},
	"tfjob": {"tensorflow", `{apiVersion: kubeflow.org/v1, kind: TFJob, spec: {tfReplicaSpecs: {
      PS: {replicas: 1, template: {spec: {containers: [{name: tensorflow, %[1]s}]}}},
      Worker: {replicas: 2, template: {spec: {containers: [{name: tensorflow, %[1]s}]}}}}}}`, "training.kubeflow.org/job-name"},
	"trainjob": {"node", `{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, spec: {
      runtimeRef: {name: torch-distributed}, trainer: {numNodes: 2, %[1]s}}}`, "jobset.sigs.k8s.io/jobset-name"},
	"jobset": {"node", `{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, spec: {replicatedJobs: [{name: node, template: {spec: {
      parallelism: 2, completions: 2, backoffLimit: 0, template: {spec: {restartPolicy: Never, containers: [{name: node, %[1]s,
        env: [{name: SUBDOMAIN, valueFrom: {fieldRef: {fieldPath: "metadata.labels['jobset.sigs.k8s.io/jobset-name']"}}}]}]}}}}}]}}`, "jobset.sigs.k8s.io/jobset-name"},
}

// experiment is one whose trials are such jobs, with a parameter x.
func (o operatedJob) experiment(t *testing.T, name, program string, change func(*v1beta1.Experiment)) *v1beta1.Experiment {
	t.Helper()
	text := fmt.Sprintf(`
apiVersion: kubeflow.org/v1beta1
kind: Experiment
metadata: {name: %s, namespace: default}
spec:
  objective: {type: minimize, objectiveMetricName: loss}
  algorithm: {algorithmName: random}
  parallelTrialCount: 2
  maxTrialCount: 6
  maxFailedTrialCount: 0
  parameters: [{name: x, parameterType: double, feasibleSpace: {min: "0", max: "1"}}]
  trialTemplate:
    primaryContainerName: %s
    trialParameters: [{name: x, reference: x}]
    trialSpec: %s
`, name, o.container, fmt.Sprintf(o.job, program))
	var e v1beta1.Experiment
	if err := yaml.UnmarshalStrict([]byte(text), &e); err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(&e)
	}
	return &e
}

// withOperators is a cluster where e2e/operators has installed what it installs.
func withOperators(t *testing.T) *instance {
	t.Helper()
	i := cluster(t)
	if err := i.client.List(t.Context(), listOf(clusterQueues)); err != nil {
		t.Skipf("NOT RUN: it needs operators: make e2e-operators installs them (%v)", err)
	}
	return i
}

// TestOperators runs jobs of two ranks that talk, under the operators that people
// install. Vernier's own operator is on, and leaves their kinds to them.
func TestOperators(t *testing.T) {
	i := withOperators(t)
	i.turnOperatorOn(t)
	program := fmt.Sprintf(`image: %q, command: [%s, rank, "${trialParameters.x}"]`, trialImage(), testProgram(t))
	for name, job := range operatedJobs { // side by side
		if err := i.client.Create(t.Context(), job.experiment(t, name, program, nil)); err != nil {
			t.Fatal(err)
		}
	}
	i.checkMakers(t)
	for name := range operatedJobs {
		t.Run(name, func(t *testing.T) { i.checkOperated(t, name) })
	}
}

// turnOperatorOn does what docs/distributed.md says of a cluster without an operator. The
// definitions of the operators that are here stay theirs.
func (i *instance) turnOperatorOn(t *testing.T) {
	t.Helper()
	if out, err := i.vernier("kubectl", "create", "-k", "../config/operator"); err == nil || !strings.Contains(out, `"pytorchjobs.kubeflow.org" already exists`) {
		t.Fatalf("kubectl create: %v\n%s", err, out)
	}
	definition := &unstructured.Unstructured{}
	definition.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	if err := i.client.Get(t.Context(), client.ObjectKey{Name: "pytorchjobs.kubeflow.org"}, definition); err != nil || trainer.IsOurs(definition) {
		t.Fatalf("the definition of PyTorchJobs is ours: %v", err)
	}
	i.kubectl(t, "-n", "vernier-system", "patch", "deployment", "vernier-manager", "--type=json",
		"-p", `[{"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": "--operator"}]`)
	i.kubectl(t, "-n", "vernier-system", "rollout", "status", "deployment/vernier-manager", "--timeout=2m")
	t.Cleanup(func() { i.kubectl(t, "-n", "vernier-system", "rollout", "undo", "deployment/vernier-manager") })
}

// checkMakers holds that the pods of each kind were made by its own controller.
func (i *instance) checkMakers(t *testing.T) {
	t.Helper()
	seen := map[string]bool{}
	eventually(t, 5*time.Minute, func(ctx context.Context) error {
		var pods corev1.PodList
		if err := i.client.List(ctx, &pods, client.InNamespace("default")); err != nil {
			return err
		}
		for _, pod := range pods.Items {
			for name, job := range operatedJobs {
				if !strings.HasPrefix(pod.Labels[job.label], name+"-") {
					continue
				}
				seen[name] = true
				if pod.Labels[trainer.LabelOperator] != "" {
					t.Errorf("the pod %s was made by Vernier's operator", pod.Name)
				}
			}
		}
		if len(seen) < len(operatedJobs) {
			return fmt.Errorf("of %d pods and those before them, there were some of %v only", len(pods.Items), seen)
		}
		return nil
	})
}

// checkOperated waits for an experiment of rank. Its trials have the sum of both ranks,
// and their jobs are gone.
func (i *instance) checkOperated(t *testing.T, name string) {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			i.showFailures(t, name)
			i.showEvents(t, name)
		}
	})
	i.awaitFinishedTrialsWithin(t, 10*time.Minute, name, 6)
	i.awaitEnd(t, name)
	trials := i.trials(t, name)
	checkTrials(t, name, 6, trials)
	for _, trial := range trials {
		x, err := strconv.ParseFloat(trial.Spec.ParameterAssignments[0].Value, 64)
		if err != nil {
			t.Fatal(err)
		}
		want := strconv.FormatFloat(x+x, 'g', -1, 64)
		if o := trial.Status.Observation; o == nil || o.Metrics[0].Latest != want || o.Metrics[0].Min != want {
			t.Errorf("%s observed %+v, want the sum %s and no other", trial.Name, o, want)
		}
	}
	eventually(t, time.Minute, func(ctx context.Context) error {
		for _, trial := range trials {
			var job unstructured.Unstructured
			if err := json.Unmarshal(trial.Spec.RunSpec.Raw, &job); err != nil {
				t.Fatal(err)
			}
			if err := i.client.Get(ctx, client.ObjectKeyFromObject(&trial), &job); client.IgnoreNotFound(err) != nil || err == nil {
				return fmt.Errorf("the job of %s is still there: %w", trial.Name, err)
			}
		}
		return nil
	})
}

// TestOperatorsReplaceEvictedPods evicts the pod of a JobSet's trial. The pod is made
// again, or all of the JobSet where it says so, and no failure is counted.
func TestOperatorsReplaceEvictedPods(t *testing.T) {
	i := withOperators(t)
	for name, policy := range map[string]string{"replaced": "", "restarted": "failurePolicy: {maxRestarts: 1}, "} {
		t.Run(name, func(t *testing.T) {
			job := operatedJob{container: "node", job: `{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, spec: {` + policy + `replicatedJobs: [{name: node, template: {spec: {
      backoffLimit: 0, template: {spec: {restartPolicy: Never, containers: [{name: node, %[1]s}]}}}}}]}}`}
			program := fmt.Sprintf(`image: %q, command: [sh, -c, "for i in $(seq 20); do echo epoch=$i loss=${trialParameters.x}; sleep 1; done"]`, trialImage())
			experiment := job.experiment(t, name, program, func(e *v1beta1.Experiment) {
				e.Spec.MaxTrialCount, e.Spec.ParallelTrialCount = ptr.To[int32](1), ptr.To[int32](1)
			})
			if err := i.client.Create(t.Context(), experiment); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { i.clear(t) })
			first := i.awaitRunningPod(t, "")
			i.evict(t, first)
			i.awaitRunningPod(t, first.UID)
			i.awaitEnd(t, name)
			trials := i.trials(t, name)
			checkTrials(t, name, 1, trials)
			if o := trials[0].Status.Observation; o == nil || o.Metrics[0].Latest != trials[0].Spec.ParameterAssignments[0].Value {
				t.Errorf("it observed %+v", o)
			}
		})
	}
}
