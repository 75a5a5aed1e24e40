package main

import (
	"bytes"
	"context"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

const ofKatib = `
metadata: {namespace: default, name: charlm, finalizers: [update-prometheus-metrics]}
spec:
  objective: {type: minimize, objectiveMetricName: loss}
  algorithm: {algorithmName: random}
  parameters: [{name: lr, parameterType: double, feasibleSpace: {min: "0.1", max: "0.9"}}]
  trialTemplate:
    primaryContainerName: main
    trialParameters: [{name: lr, reference: lr}]
    configMap: {configMapName: templates, configMapNamespace: kubeflow, templatePath: job}
`

const jobOfKatib = `{apiVersion: batch/v1, kind: Job, spec: {template: {spec: {restartPolicy: Never,
  containers: [{name: main, image: x, command: [train, "${trialParameters.lr}"]}]}}}}`

// What migration lets go on is what admission and the controller let.
func TestWhichExperimentsCanGoOnUnderVernier(t *testing.T) {
	tests := map[string]struct {
		change   func(*v1beta1.Experiment, *corev1.ConfigMap)
		expected string // of the reason; empty: it can
	}{
		"a template that Katib's users share": {func(*v1beta1.Experiment, *corev1.ConfigMap) {}, ""},
		"an algorithm that katib-config names": {func(e *v1beta1.Experiment, _ *corev1.ConfigMap) {
			e.Spec.Algorithm.AlgorithmName = "mine"
		}, ""},
		"an algorithm that nothing names": {func(e *v1beta1.Experiment, _ *corev1.ConfigMap) {
			e.Spec.Algorithm.AlgorithmName = "hyperdrive"
		}, "there is no such algorithm"},
		"a template that is gone": {func(e *v1beta1.Experiment, _ *corev1.ConfigMap) {
			e.Spec.TrialTemplate.ConfigMap.TemplatePath = "gone"
		}, "has no such entry"},
		"a template of another namespace that is not shared": {func(_ *v1beta1.Experiment, cm *corev1.ConfigMap) {
			cm.Labels = nil
		}, "not shared"},
		"a template that cannot run": {func(_ *v1beta1.Experiment, cm *corev1.ConfigMap) {
			cm.Data["job"] = strings.Replace(jobOfKatib, "name: main", "name: other", 1)
		}, "templatePath"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var e v1beta1.Experiment
			if err := yaml.Unmarshal([]byte(ofKatib), &e); err != nil {
				t.Fatal(err)
			}
			templates := configMap("templates", "job", jobOfKatib)
			templates.Labels = map[string]string{"katib.kubeflow.org/component": "trial-templates"}
			tc.change(&e, templates)
			out := shownPlan(t, &e, templates, configMap("katib-config", "katib-config.yaml", "runtime: {suggestions: [{algorithmName: mine, image: mine}]}"))
			if _, reason, refused := strings.Cut(out, "cannot go on under Vernier"); refused != (tc.expected != "") || !strings.Contains(reason, tc.expected) {
				t.Errorf("expected the reason %q:\n%s", tc.expected, out)
			}
		})
	}
}

func configMap(name, key, text string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeflow", Name: name}, Data: map[string]string{key: text}}
}

// shownPlan is what is shown of the way from a Katib that has these objects.
func shownPlan(t *testing.T, objects ...client.Object) string {
	t.Helper()
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(append(objects,
		&admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "katib.kubeflow.org"}},
		&admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "vernier-webhook"}})...).Build()
	root := newMigrateCommand(func(context.Context, bool) (*session, error) { return &session{client: c}, nil })
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs([]string{"katib"})
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	return out.String()
}
