//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

// Kinds whose pods no job shows, and what lies between a job and its pods.
var (
	workflows    = schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: "Workflow"}
	pipelineRuns = schema.GroupVersionKind{Group: "tekton.dev", Version: "v1beta1", Kind: "PipelineRun"}
	taskRuns     = schema.GroupVersionKind{Group: "tekton.dev", Version: "v1beta1", Kind: "TaskRun"}
	trainJobs    = schema.GroupVersionKind{Group: "trainer.kubeflow.org", Version: "v1alpha1", Kind: "TrainJob"}
	jobSets      = schema.GroupVersionKind{Group: "jobset.x-k8s.io", Version: "v1alpha2", Kind: "JobSet"}
)

// standIns make of a job what its real controller makes, with the same owners, labels and
// names of containers, and say how it stands.
var standIns = map[schema.GroupVersionKind]func(*standIn, context.Context, *unstructured.Unstructured) error{
	workflows: (*standIn).workflow, pipelineRuns: (*standIn).pipelineRun, trainJobs: (*standIn).trainJob,
}

// TestKindsWithoutPodTemplates runs the examples of these kinds as they are written, but
// for the images' program, to the end. What controls the kinds stands in for the real
// controllers. Other pods of a pipeline print a better loss, which does not count.
func TestKindsWithoutPodTemplates(t *testing.T) {
	i := up(t)
	for _, gvk := range []schema.GroupVersionKind{workflows, pipelineRuns, taskRuns, trainJobs, jobSets} {
		i.define(t, gvk)
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "train.sh"), `test "$1" = --worse && echo loss=9 || { echo loss=0.75; echo loss=0.5; }`+"\n")
	for gvk, make := range standIns {
		s := &standIn{i.client, "sh " + filepath.Join(dir, "train.sh")}
		i.control(t, gvk, func(ctx context.Context, job *unstructured.Unstructured) error { return make(s, ctx, job) })
	}
	for _, name := range []string{"argo-workflow", "tekton-pipeline-run", "trainjob"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := exampleOf(t, name)
			e.Namespace, e.Spec.MaxTrialCount, e.Spec.Objective.Goal = "default", ptr.To[int32](4), nil
			if err := i.client.Create(t.Context(), e); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if t.Failed() {
					i.showFailures(t, name)
				}
			})
			i.awaitEnd(t, name)
			trials := i.trials(t, name)
			checkTrials(t, name, 4, trials)
			for _, trial := range trials {
				if o := trial.Status.Observation; o == nil || o.Metrics[0].Min != "0.5" || o.Metrics[0].Max != "0.75" {
					t.Errorf("%s observed %+v, want losses of 0.5 and 0.75", trial.Name, o)
				}
			}
		})
	}
}

func exampleOf(t *testing.T, name string) *v1beta1.Experiment {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "api", "v1beta1", "testdata", "experiments", name+".yaml"))
	e := &v1beta1.Experiment{}
	if err == nil {
		err = yaml.UnmarshalStrict(raw, e)
	}
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// define makes the API server know a kind, with any fields.
func (i *instance) define(t *testing.T, gvk schema.GroupVersionKind) {
	t.Helper()
	lower := strings.ToLower(gvk.Kind)
	definition := &unstructured.Unstructured{}
	text := fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]ss.%[2]s}
spec:
  group: %[2]s
  scope: Namespaced
  names: {kind: %[3]s, listKind: %[3]sList, plural: %[1]ss, singular: %[1]s}
  versions:
  - name: %[4]s
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`, lower, gvk.Group, gvk.Kind, gvk.Version)
	if err := yaml.Unmarshal([]byte(text), &definition.Object); err != nil {
		t.Fatal(err)
	}
	if err := i.client.Create(t.Context(), definition); err != nil {
		t.Fatal(err)
	}
	eventually(t, 30*time.Second, func(ctx context.Context) error { return i.client.List(ctx, listOf(gvk)) })
}

func listOf(gvk schema.GroupVersionKind) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	return list
}

// control calls step for each object of a kind, again and again, until the test ends.
func (i *instance) control(t *testing.T, gvk schema.GroupVersionKind, step func(context.Context, *unstructured.Unstructured) error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	t.Cleanup(func() { cancel(); <-done })
	go func() {
		defer close(done)
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			list := listOf(gvk)
			if err := i.client.List(ctx, list, client.InNamespace("default")); err != nil {
				continue
			}
			for n := range list.Items {
				if o := &list.Items[n]; o.GetDeletionTimestamp() == nil {
					if err := step(ctx, o); err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
						t.Logf("%s %s: %v", gvk.Kind, o.GetName(), err)
					}
				}
			}
		}
	}()
}

// standIn runs a program in the place of that of the examples' images.
type standIn struct {
	client  client.Client
	program string
}

// made creates an object if it is not there, and reads it.
func (s *standIn) made(ctx context.Context, o client.Object, owner *unstructured.Unstructured) error {
	o.SetNamespace(owner.GetNamespace())
	o.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(owner, owner.GroupVersionKind())})
	if err := s.client.Create(ctx, o); !apierrors.IsAlreadyExists(err) {
		return err
	}
	return s.client.Get(ctx, client.ObjectKeyFromObject(o), o)
}

func (s *standIn) pod(name, container string, worse bool, labels map[string]string) *corev1.Pod {
	command := strings.Fields(s.program)
	if worse {
		command = append(command, "--worse")
	}
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	p.Spec = corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: container, Image: "host", Command: command}}}
	return p
}

// end writes the status of a job whose pod has ended.
func (s *standIn) end(ctx context.Context, job *unstructured.Unstructured, phase corev1.PodPhase, succeeded, failed map[string]any) error {
	switch phase {
	case corev1.PodSucceeded:
		job.Object["status"] = succeeded
	case corev1.PodFailed:
		job.Object["status"] = failed
	default:
		return nil
	}
	return s.client.Update(ctx, job)
}

// workflow makes a pod that prepares, and then the one of the template with a container.
// They are the Workflow's own, with its podMetadata and their templates' labels.
func (s *standIn) workflow(ctx context.Context, job *unstructured.Unstructured) error {
	labels := map[string]string{"workflows.argoproj.io/workflow": job.GetName()}
	passed, _, _ := unstructured.NestedStringMap(job.Object, "spec", "podMetadata", "labels")
	maps.Copy(labels, passed)
	first := s.pod(job.GetName()+"-prepare-1", "main", true, maps.Clone(labels))
	if err := s.made(ctx, first, job); err != nil || first.Status.Phase != corev1.PodSucceeded {
		return err
	}
	templates, _, _ := unstructured.NestedSlice(job.Object, "spec", "templates")
	for _, v := range templates {
		template := v.(map[string]any)
		if template["container"] == nil {
			continue
		}
		own, _, _ := unstructured.NestedStringMap(template, "metadata", "labels")
		maps.Copy(labels, own)
	}
	pod := s.pod(job.GetName()+"-model-training-2", "main", false, labels)
	if err := s.made(ctx, pod, job); err != nil {
		return err
	}
	return s.end(ctx, job, pod.Status.Phase, map[string]any{"phase": "Succeeded"}, map[string]any{"phase": "Failed"})
}

// pipelineRun makes a TaskRun for each task with its labels, and its pod with those. The
// name of the pod says nothing, as when it is too long.
func (s *standIn) pipelineRun(ctx context.Context, job *unstructured.Unstructured) error {
	var pod *corev1.Pod
	for _, task := range []string{"prepare", "model-training"} {
		labels := maps.Clone(job.GetLabels())
		labels["tekton.dev/pipelineRun"], labels["tekton.dev/pipelineTask"] = job.GetName(), task
		run := &unstructured.Unstructured{}
		run.SetGroupVersionKind(taskRuns)
		run.SetName(fmt.Sprintf("h%s-%s", job.GetUID(), task))
		run.SetLabels(labels)
		if err := s.made(ctx, run, job); err != nil {
			return err
		}
		pod = s.pod(run.GetName()+"-pod", "step-"+task, task == "prepare", labels)
		if err := s.made(ctx, pod, run); err != nil {
			return err
		}
	}
	condition := func(status string) map[string]any {
		return map[string]any{"conditions": []any{map[string]any{"type": "Succeeded", "status": status}}}
	}
	return s.end(ctx, job, pod.Status.Phase, condition("True"), condition("False"))
}

// trainJob makes a JobSet, and that an Indexed Job of two nodes. No label of the TrainJob
// comes to the pods, which Kubernetes makes.
func (s *standIn) trainJob(ctx context.Context, job *unstructured.Unstructured) error {
	set := &unstructured.Unstructured{}
	set.SetGroupVersionKind(jobSets)
	set.SetName(job.GetName())
	if err := s.made(ctx, set, job); err != nil {
		return err
	}
	node := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: job.GetName() + "-node-0"}}
	node.Spec.Parallelism, node.Spec.Completions, node.Spec.CompletionMode = ptr.To[int32](2), ptr.To[int32](2), ptr.To(batchv1.IndexedCompletion)
	node.Spec.Template.Labels = map[string]string{"jobset.sigs.k8s.io/jobset-name": job.GetName(), "jobset.sigs.k8s.io/replicatedjob-name": "node"}
	node.Spec.Template.Spec = s.pod("", "node", false, nil).Spec
	script := fmt.Sprintf(`test "$JOB_COMPLETION_INDEX" = 0 && exec %[1]s || exec %[1]s --worse`, s.program)
	node.Spec.Template.Spec.Containers[0].Command = []string{"sh", "-c", script}
	if err := s.made(ctx, node, set); err != nil {
		return err
	}
	phase := corev1.PodRunning
	for _, c := range node.Status.Conditions {
		if c.Status == corev1.ConditionTrue && c.Type == batchv1.JobComplete {
			phase = corev1.PodSucceeded
		}
		if c.Status == corev1.ConditionTrue && c.Type == batchv1.JobFailed {
			phase = corev1.PodFailed
		}
	}
	condition := func(kind string) map[string]any {
		return map[string]any{"conditions": []any{map[string]any{"type": kind, "status": "True"}}}
	}
	return s.end(ctx, job, phase, condition("Complete"), condition("Failed"))
}
