package main

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

func TestTemplateInConfigMap(t *testing.T) {
	w := newWorld(t, byNumber(0))
	w.start()
	e := w.experiment("exp", func(e *v1beta1.Experiment) {
		e.Spec.MaxTrialCount = ptr.To[int32](2)
		e.Spec.TrialTemplate.TrialSource = v1beta1.TrialSource{ConfigMap: &v1beta1.ConfigMapSource{
			ConfigMapName: "templates", ConfigMapNamespace: w.namespace, TemplatePath: "job.json",
		}}
	})
	w.create(e)
	w.eventually("the missing ConfigMap is named", func() string {
		if c := w.read(e).LastCondition(); c == nil || !strings.Contains(c.Message, "templates") {
			return fmt.Sprintf("%+v", c)
		}
		return ""
	})
	w.templateInConfigMap()
	w.ends(e, v1beta1.ReasonExperimentMaxTrialsReached)
	if tr := w.trialsOf(e)[0]; tr.Spec.SuccessCondition == "" {
		t.Errorf("the conditions of the kind are not set: %+v", tr.Spec)
	}
}

// templateInConfigMap makes a ConfigMap with the template, and refers to it.
func (w *world) templateInConfigMap() v1beta1.TrialSource {
	w.t.Helper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "templates"}, Data: map[string]string{"job.json": jobTemplate}}
	if err := w.client.Create(w.t.Context(), cm); err != nil {
		w.t.Fatal(err)
	}
	return v1beta1.TrialSource{ConfigMap: &v1beta1.ConfigMapSource{ConfigMapName: cm.Name, ConfigMapNamespace: cm.Namespace, TemplatePath: "job.json"}}
}

func TestBrokenExperimentsEndAtOnce(t *testing.T) {
	w := newWorld(t, never)
	w.start()
	tests := map[string]struct {
		change func(*v1beta1.Experiment)
		want   string
	}{
		"min above max":        {func(e *v1beta1.Experiment) { e.Spec.Parameters[0].FeasibleSpace.Min = "7" }, "spec.parameters[0].feasibleSpace"},
		"unknown algorithm":    {func(e *v1beta1.Experiment) { e.Spec.Algorithm.AlgorithmName = "magic" }, "magic"},
		"no primary container": {func(e *v1beta1.Experiment) { e.Spec.TrialTemplate.PrimaryContainerName = "other" }, "other"},
		"unknown placeholder": {func(e *v1beta1.Experiment) {
			e.Spec.TrialTemplate.TrialSpec.Raw = []byte(strings.ReplaceAll(jobTemplate, "trialParameters.lr", "trialParameters.rate"))
		}, "rate"},
	}
	i := 0
	for name, tc := range tests {
		i++
		t.Run(name, func(t *testing.T) {
			w := &world{t: t, client: w.client, namespace: w.namespace}
			e := w.experiment(fmt.Sprintf("broken-%d", i), tc.change)
			w.create(e)
			got := w.ends(e, v1beta1.ReasonExperimentFailed)
			if !strings.Contains(got.LastCondition().Message, tc.want) {
				t.Errorf("the message does not speak of %q: %s", tc.want, got.LastCondition().Message)
			}
			if n := len(w.trialsOf(e)); n != 0 {
				t.Errorf("%d trials were made", n)
			}
		})
	}
}

func TestUnknownKindWaits(t *testing.T) {
	w := newWorld(t, never)
	w.start()
	e := w.experiment("exp", func(e *v1beta1.Experiment) {
		budget(1)(e)
		e.Spec.TrialTemplate.SuccessCondition = `status.ok`
		e.Spec.TrialTemplate.FailureCondition = `status.bad`
		e.Spec.TrialTemplate.TrialSpec.Raw = []byte(strings.Replace(strings.Replace(jobTemplate, `"batch/v1"`, `"example.com/v1"`, 1), `"Job"`, `"Unheard"`, 1))
	})
	w.create(e)
	w.eventually("the trial says what is missing", func() string {
		trials := w.trialsOf(e)
		if len(trials) == 0 {
			return fmt.Sprintf("no trial: %+v", w.read(e).Status.Conditions)
		}
		if c := trials[0].LastCondition(); c == nil || !strings.Contains(c.Message, "no kind Unheard") {
			return fmt.Sprintf("%+v", c)
		}
		return ""
	})
}
