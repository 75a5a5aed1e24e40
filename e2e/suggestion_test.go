//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

// TestAnAlgorithmThatSpeaksKatibsProtocol has Optuna propose the trials of an
// experiment, behind the messages and the server code that Katib publishes in its SDK.
// (Katib publishes the algorithms themselves in images only.)
func TestAnAlgorithmThatSpeaksKatibsProtocol(t *testing.T) {
	python := pythonWith(t, katibSDK+" optuna")
	i := up(t)
	i.configureService(t, python)
	e := jobExperiment{
		name: "theirs", algorithm: "optuna-tpe", parallel: 2, max: 6, maxFailed: 1,
		parameter: `parameterType: double, feasibleSpace: {min: "0", max: "1"}`,
		command:   `[sh, -c, "echo loss=${trialParameters.x}"]`,
	}.object(t)
	e.Spec.Algorithm.AlgorithmSettings = []v1beta1.AlgorithmSetting{{Name: "random_state", Value: "3"}}
	if err := i.client.Create(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	refused := jobExperiment{name: "refused", algorithm: "optuna-tpe", parallel: 1, max: 1, maxFailed: 1, command: `["true"]`,
		parameter: `parameterType: double, feasibleSpace: {min: "0", max: "1"}`}.object(t)
	refused.Spec.Algorithm.AlgorithmSettings = []v1beta1.AlgorithmSetting{{Name: "gamma", Value: "1"}}
	if err := i.client.Create(t.Context(), refused); err != nil {
		t.Fatal(err)
	}
	i.awaitEnd(t, "theirs")
	if err := i.client.Get(t.Context(), client.ObjectKeyFromObject(e), e); err != nil {
		t.Fatal(err)
	}
	if c := e.LastCondition(); c.Type != v1beta1.ExperimentSucceeded || c.Reason != v1beta1.ReasonExperimentMaxTrialsReached {
		t.Errorf("the experiment ended with %+v", c)
	}
	trials := i.trials(t, "theirs")
	for _, trial := range trials {
		if trial.Labels["optuna.example.com/trial"] == "" {
			t.Errorf("trial %s lacks the label that the service gave it: %v", trial.Name, trial.Labels)
		}
	}
	var s v1beta1.Suggestion
	if err := i.client.Get(t.Context(), client.ObjectKeyFromObject(e), &s); err != nil {
		t.Fatal(err)
	}
	if len(trials) != 6 || s.Status.SuggestionCount != 6 || len(s.Status.AlgorithmSettings) != 1 || s.Status.AlgorithmSettings[0].Value != "6" {
		t.Errorf("%d trials, and the suggestion %+v; want 6, and the setting asked=6", len(trials), s.Status)
	}
	i.awaitRefusal(t, refused)
}

// The service is asked about the experiment's settings as soon as it is up.
func (i *instance) awaitRefusal(t *testing.T, e *v1beta1.Experiment) {
	t.Helper()
	eventually(t, time.Minute, func(ctx context.Context) error {
		if err := i.client.Get(ctx, client.ObjectKeyFromObject(e), e); err != nil {
			return err
		}
		if c := e.LastCondition(); c == nil || c.Type != v1beta1.ExperimentFailed || !strings.Contains(c.Message, "unknown setting gamma") {
			return fmt.Errorf("the experiment that the service refuses has the condition %+v", c)
		}
		return nil
	})
}

// configureService has katib-config name a service of Katib's protocol: a program in
// Python, as the algorithm optuna-tpe.
func (i *instance) configureService(t *testing.T, python string) {
	t.Helper()
	script, err := filepath.Abs(filepath.Join("testdata", "suggestion_service.py"))
	if err != nil {
		t.Fatal(err)
	}
	config, err := yaml.Marshal(map[string]any{
		"apiVersion": "config.kubeflow.org/v1beta1", "kind": "KatibConfig",
		"runtime": map[string]any{"suggestions": []any{map[string]any{
			"algorithmName": "optuna-tpe", "image": "example.com/optuna-tpe:v1", "command": []string{python, script},
		}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	cm := &corev1.ConfigMap{Data: map[string]string{"katib-config.yaml": string(config)}}
	cm.Namespace, cm.Name = "kubeflow", "katib-config"
	if err := i.client.Create(t.Context(), cm); err != nil {
		t.Fatal(err)
	}
}
