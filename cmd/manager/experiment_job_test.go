package main

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/trainer"
)

func TestJobHasCollectorAndLabels(t *testing.T) {
	w := newWorld(t, never)
	w.start()
	e := w.experiment("exp", budget(1))
	w.create(e)
	var job batchv1.Job
	w.eventually("the job exists", func() string {
		if err := w.client.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "exp-0000"}, &job); err != nil {
			return err.Error()
		}
		return ""
	})
	trial := w.trialsOf(e)[0]
	if owner := metav1.GetControllerOf(&job); owner == nil || owner.UID != trial.UID || owner.Kind != "Trial" {
		t.Errorf("owner: %+v", owner)
	}
	for _, labels := range []map[string]string{job.Labels, job.Spec.Template.Labels} {
		if labels[v1beta1.LabelTrial] != "exp-0000" || labels[v1beta1.LabelExperiment] != "exp" {
			t.Errorf("labels: %v", labels)
		}
	}
	var token string
	for _, c := range job.Spec.Template.Spec.InitContainers {
		for _, v := range c.Env {
			if v.Name == "VERNIER_REPORT_TOKEN" {
				token = v.Value
			}
		}
	}
	if want := "token-of-" + string(trial.UID); token != want {
		t.Errorf("token = %q, want %q", token, want)
	}
	w.eventually("the trial runs", func() string {
		if tr := w.trialsOf(e)[0]; !tr.IsRunning() {
			return fmt.Sprintf("%+v", tr.Status)
		}
		return ""
	})
}

// While a registry does not answer the trial waits, and says why.
func TestAContainerWithoutACommandRunsThatOfItsImage(t *testing.T) {
	w := newWorld(t, never)
	var answers atomic.Bool
	w.entrypoint = func(context.Context, trainer.Image) ([]string, []string, error) {
		if !answers.Load() {
			return nil, nil, fmt.Errorf("%w: no answer from the registry", trainer.ErrImage)
		}
		return []string{"python"}, []string{"train.py"}, nil
	}
	w.start()
	e := w.experiment("exp", budget(1), func(e *v1beta1.Experiment) {
		e.Spec.TrialTemplate.TrialSpec.Raw = []byte(strings.Replace(jobTemplate, `"command": ["train", `, `"args": [`, 1))
	})
	w.create(e)
	w.eventually("the trial says why it waits", func() string {
		trials := w.trialsOf(e)
		if len(trials) == 0 || trials[0].LastCondition() == nil || !strings.Contains(trials[0].LastCondition().Message, "no answer from the registry") {
			return fmt.Sprintf("%+v", trials)
		}
		return ""
	})
	answers.Store(true)
	w.eventually("its job runs the image's entrypoint with the arguments", func() string {
		var job batchv1.Job
		if err := w.client.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "exp-0000"}, &job); err != nil {
			return err.Error()
		}
		main := job.Spec.Template.Spec.Containers[0]
		if n := len(main.Command); main.Command[n-1] != "python" || len(main.Args) != 1 || !strings.HasPrefix(main.Args[0], "--lr=") {
			t.Fatalf("it runs %v with %v", main.Command, main.Args)
		}
		return ""
	})
}

func TestRetainKeepsJobs(t *testing.T) {
	w := newWorld(t, byNumber(0))
	w.start()
	e := w.experiment("exp", func(e *v1beta1.Experiment) {
		e.Spec.MaxTrialCount = ptr.To[int32](2)
		e.Spec.TrialTemplate.Retain = true
	})
	w.create(e)
	w.ends(e, v1beta1.ReasonExperimentMaxTrialsReached)
	var jobs batchv1.JobList
	if err := w.client.List(t.Context(), &jobs, client.InNamespace(w.namespace)); err != nil {
		t.Fatal(err)
	}
	if len(jobs.Items) != 2 {
		t.Errorf("%d jobs are left, want 2", len(jobs.Items))
	}
}

func TestForeignJobIsLeftAlone(t *testing.T) {
	w := newWorld(t, never)
	foreign := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "exp-0000"},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "x", Image: "x"}},
		}}},
	}
	if err := w.client.Create(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	w.start()
	e := w.experiment("exp", func(e *v1beta1.Experiment) { e.Spec.MaxFailedTrialCount = ptr.To[int32](1) })
	w.create(e)
	w.ends(e, v1beta1.ReasonExperimentFailed)
	if c := w.trialsOf(e)[0].Status.Conditions; !strings.Contains(c[len(c)-1].Message, "does not belong to this trial") {
		t.Errorf("conditions: %+v", c)
	}
	if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(foreign), foreign); err != nil {
		t.Errorf("the foreign job: %v", err)
	}
}

// A collector that is stopped with its job says "final" too: that a job is gone
// is no success.
func TestJobDeletedWhileTheManagerIsAwayIsNoSuccess(t *testing.T) {
	w := newWorld(t, never)
	stop := w.start()
	e := w.experiment("exp", budget(1))
	w.create(e)
	w.eventually("the trial runs", func() string {
		if trials := w.trialsOf(e); len(trials) == 0 || !trials[0].IsRunning() {
			return "not running"
		}
		return ""
	})
	stop()
	tr := w.trialsOf(e)[0]
	var job batchv1.Job
	if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(&tr), &job); err != nil {
		t.Fatal(err)
	}
	w.report(t.Context(), collector.TrialID{Namespace: tr.Namespace, Name: tr.Name, UID: string(tr.UID)}, string(job.UID), ending{points: []float64{9}})
	if err := w.client.Delete(t.Context(), &job, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		t.Fatal(err)
	}
	w.behave(func(string) ending { return ending{points: []float64{1}} })
	w.start()
	w.ends(e, v1beta1.ReasonExperimentMaxTrialsReached)
	if o := w.trialsOf(e)[0].Status.Observation; o == nil || o.Metrics[0].Latest != "1" {
		t.Errorf("observation %+v, want that of the second run", o)
	}
}

func TestVanishedJobIsMadeAgain(t *testing.T) {
	w := newWorld(t, never)
	w.start()
	e := w.experiment("exp", budget(1))
	w.create(e)
	key := client.ObjectKey{Namespace: w.namespace, Name: "exp-0000"}
	var first batchv1.Job
	w.eventually("the trial runs", func() string {
		if err := w.client.Get(t.Context(), key, &first); err != nil {
			return err.Error()
		}
		if trials := w.trialsOf(e); !trials[0].IsRunning() {
			return "not running"
		}
		return ""
	})
	if err := w.client.Delete(t.Context(), &first, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		t.Fatal(err)
	}
	w.eventually("there is a new job", func() string {
		var second batchv1.Job
		if err := w.client.Get(t.Context(), key, &second); err != nil {
			return err.Error()
		}
		if second.UID == first.UID {
			return "the old one is there"
		}
		return ""
	})
	w.behave(func(string) ending { return ending{points: []float64{1}} })
	w.ends(e, v1beta1.ReasonExperimentMaxTrialsReached)
}

func TestAFailedJobIsMadeAgain(t *testing.T) {
	w := newWorld(t, nil)
	e := w.experiment("exp", budget(1), func(e *v1beta1.Experiment) { e.Spec.TrialTemplate.Retry = 2 })
	w.behave(func(string) ending {
		var tr v1beta1.Trial
		err := w.client.Get(context.Background(), client.ObjectKey{Namespace: w.namespace, Name: "exp-0000"}, &tr)
		return ending{never: err != nil, points: []float64{1}, failed: strings.Repeat("it broke", max(0, 2-int(tr.Status.Retries)))}
	})
	w.start()
	w.create(e)
	w.ends(e, v1beta1.ReasonExperimentMaxTrialsReached)
	tr := w.trialsOf(e)[0]
	attempts, err := w.store.Attempts(t.Context(), string(tr.UID))
	if err != nil || len(attempts) != 3 {
		t.Errorf("%d jobs were made, %v", len(attempts), err)
	}
	if !tr.IsSucceeded() || tr.Status.Retries != 2 || tr.Status.Observation.Metrics[0].Latest != "1" {
		t.Errorf("trial: %+v", tr.Status)
	}
	w.noJobs()
}
