package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/vernier-ml/vernier/api/v1beta1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// jobSpec is the Job that both workloads run.
func jobSpec(p program, x string) batchv1.JobSpec {
	zero := int32(0)
	pod := corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever,
		Containers:    []corev1.Container{{Name: "training", Image: p.image, Command: append(slices.Clone(p.command), x)}},
	}
	if p.dir != "" {
		pod.Volumes = []corev1.Volume{{Name: "bench", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: p.dir}}}}
		pod.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "bench", MountPath: p.dir}}
	}
	return batchv1.JobSpec{BackoffLimit: &zero, Template: corev1.PodTemplateSpec{Spec: pod}}
}

// experiment runs the programs as the trials of an Experiment.
type experiment struct{ client client.WithWatch }

func (experiment) name() string { return "trials" }

func (w experiment) run(ctx context.Context, r round) error {
	e, err := newExperiment(r)
	if err != nil {
		return err
	}
	events, err := w.client.Watch(ctx, &v1beta1.ExperimentList{}, client.InNamespace(e.Namespace))
	if err != nil {
		return err
	}
	defer events.Stop()
	if err := w.client.Create(ctx, e); err != nil {
		return err
	}
	for event := range events.ResultChan() {
		seen, ok := event.Object.(*v1beta1.Experiment)
		if !ok || seen.Name != e.Name || len(seen.Status.Conditions) == 0 {
			continue
		}
		switch last := seen.Status.Conditions[len(seen.Status.Conditions)-1]; last.Type {
		case v1beta1.ExperimentSucceeded:
			if int(seen.Status.TrialsSucceeded) != r.trials {
				return fmt.Errorf("%d of %d trials succeeded%s", seen.Status.TrialsSucceeded, r.trials, w.failures(ctx, e))
			}
			return w.client.Delete(ctx, e, client.PropagationPolicy(metav1.DeletePropagationBackground))
		case v1beta1.ExperimentFailed:
			return fmt.Errorf("the experiment failed: %s", last.Message)
		}
	}
	return fmt.Errorf("the watch ended: %w", context.Cause(ctx))
}

// failures says what happened to the trials that did not succeed.
func (w experiment) failures(ctx context.Context, e *v1beta1.Experiment) string {
	var trials v1beta1.TrialList
	if err := w.client.List(ctx, &trials, client.InNamespace(e.Namespace), client.MatchingLabels{"katib.kubeflow.org/experiment": e.Name}); err != nil {
		return ": " + err.Error()
	}
	text := ""
	for _, t := range trials.Items {
		if last := t.Status.Conditions[len(t.Status.Conditions)-1]; last.Type != v1beta1.TrialSucceeded {
			text += fmt.Sprintf("\n%s is %s: %s", t.Name, last.Type, last.Message)
		}
	}
	return text
}

func newExperiment(r round) (*v1beta1.Experiment, error) {
	job := batchv1.Job{TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}, Spec: jobSpec(r.program, "${trialParameters.x}")}
	raw, err := json.Marshal(job)
	if err != nil {
		return nil, err
	}
	parallel, trials := int32(r.parallel), int32(r.trials)
	return &v1beta1.Experiment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("throughput-%d", r.number)},
		Spec: v1beta1.ExperimentSpec{
			Objective:          &v1beta1.ObjectiveSpec{Type: v1beta1.ObjectiveTypeMinimize, ObjectiveMetricName: "loss"},
			Algorithm:          &v1beta1.AlgorithmSpec{AlgorithmName: "random"},
			ParallelTrialCount: &parallel,
			MaxTrialCount:      &trials,
			Parameters: []v1beta1.ParameterSpec{{
				Name: "x", ParameterType: v1beta1.ParameterTypeDouble,
				FeasibleSpace: v1beta1.FeasibleSpace{Min: "0", Max: "1"},
			}},
			TrialTemplate: &v1beta1.TrialTemplate{
				TrialSource:          v1beta1.TrialSource{TrialSpec: &runtime.RawExtension{Raw: raw}},
				TrialParameters:      []v1beta1.TrialParameterSpec{{Name: "x", Reference: "x"}},
				PrimaryContainerName: "training",
			},
		},
	}, nil
}

// bareJobs runs the programs as Jobs, without anything around them: a new Job
// is made as soon as one is complete, and complete ones are deleted, as trials
// do by default.
type bareJobs struct{ client client.WithWatch }

func (bareJobs) name() string { return "bare Jobs" }

func (w bareJobs) run(ctx context.Context, r round) error {
	label := map[string]string{"bench": fmt.Sprintf("bare-%d", r.number)}
	events, err := w.client.Watch(ctx, &batchv1.JobList{}, client.InNamespace("default"), client.MatchingLabels(label))
	if err != nil {
		return err
	}
	defer events.Stop()
	created, done := 0, map[string]bool{}
	create := func() error {
		job := &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("bare-%d-%04d", r.number, created), Labels: label},
			Spec:       jobSpec(r.program, "0.5"),
		}
		created++
		return w.client.Create(ctx, job)
	}
	for range min(r.parallel, r.trials) {
		if err := create(); err != nil {
			return err
		}
	}
	deleted := make(chan error, r.trials)
	for event := range events.ResultChan() {
		job, ok := event.Object.(*batchv1.Job)
		if !ok || event.Type == watch.Deleted || done[job.Name] || !isComplete(job) {
			continue
		}
		done[job.Name] = true
		if created < r.trials {
			if err := create(); err != nil {
				return err
			}
		}
		go func() {
			deleted <- w.client.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationBackground))
		}()
		if len(done) == r.trials {
			for range r.trials {
				if err := <-deleted; err != nil {
					return err
				}
			}
			return nil
		}
	}
	return fmt.Errorf("the watch ended: %w", context.Cause(ctx))
}

func isComplete(job *batchv1.Job) bool {
	for _, c := range job.Status.Conditions {
		if c.Type == batchv1.JobComplete && c.Status == corev1.ConditionTrue {
			return true
		}
	}
	return false
}
