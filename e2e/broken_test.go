//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/vernier-ml/vernier/api/v1beta1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// soundExperiment is right but for its name, which its user gives.
func soundExperiment() jobExperiment {
	return jobExperiment{
		algorithm: "random",
		parallel:  1,
		max:       1,
		maxFailed: 1,
		parameter: `parameterType: double, feasibleSpace: {min: "0", max: "1"}`,
		command:   `[sh, -c, "echo loss=${trialParameters.x}"]`,
	}
}

// change edits the sound experiment.
type change func(spec map[string]any)

func set(value any, path ...string) change {
	return func(spec map[string]any) {
		if err := unstructured.SetNestedField(spec, value, path...); err != nil {
			panic(err)
		}
	}
}

func parameter(fields map[string]any) change {
	return func(spec map[string]any) { spec["parameters"] = []any{fields} }
}

func space(kind string, feasible map[string]any) change {
	return parameter(map[string]any{"name": "x", "parameterType": kind, "feasibleSpace": feasible})
}

func command(words ...any) change {
	return func(spec map[string]any) { container(spec)["command"] = words }
}

func container(spec map[string]any) map[string]any {
	return podSpec(spec)["containers"].([]any)[0].(map[string]any)
}

func podSpec(spec map[string]any) map[string]any {
	return jobSpec(spec)["template"].(map[string]any)["spec"].(map[string]any)
}

func jobSpec(spec map[string]any) map[string]any {
	return template(spec)["trialSpec"].(map[string]any)["spec"].(map[string]any)
}

func template(spec map[string]any) map[string]any { return spec["trialTemplate"].(map[string]any) }

// refusal is an experiment that admission refuses; want are parts of the error.
type refusal struct {
	change change
	want   []string
}

// refusals are those whose mistake can be seen before anything runs.
func refusals() map[string]refusal {
	return map[string]refusal{
		"a field of the wrong type": {set("three", "parallelTrialCount"), []string{"spec.parallelTrialCount", "integer"}},
		"an unknown parameter type": {space("float", map[string]any{"min": "0", "max": "1"}), []string{"parameterType", "double"}},
		"min above max":             {space("double", map[string]any{"min": "2", "max": "1"}), []string{"feasibleSpace", "min", "max"}},
		"min is not a number":       {space("double", map[string]any{"min": "zero", "max": "1"}), []string{"feasibleSpace.min", "zero"}},
		"an empty list":             {space("categorical", map[string]any{}), []string{"feasibleSpace.list"}},
		"a list with duplicates":    {space("categorical", map[string]any{"list": []any{"a", "a"}}), []string{"feasibleSpace.list", "a"}},
		"a log scale over zero":     {space("double", map[string]any{"min": "0", "max": "1", "distribution": "logUniform"}), []string{"feasibleSpace", "logUniform"}},
		"a step of zero":            {space("double", map[string]any{"min": "0", "max": "1", "step": "0"}), []string{"feasibleSpace.step"}},
		"two parameters of one name": {func(spec map[string]any) {
			p := spec["parameters"].([]any)
			spec["parameters"] = append(p, p[0])
		}, []string{"parameters", "x"}},
		"no parameters":             {set([]any{}, "parameters"), []string{"spec.parameters"}},
		"an unknown algorithm":      {set("gradient-descent", "algorithm", "algorithmName"), []string{"algorithm", "gradient-descent", "random"}},
		"an unknown setting":        {set([]any{map[string]any{"name": "temperature", "value": "1"}}, "algorithm", "algorithmSettings"), []string{"temperature"}},
		"a setting out of range":    {set([]any{map[string]any{"name": "random_state", "value": "minus one"}}, "algorithm", "algorithmSettings"), []string{"random_state"}},
		"a grid without steps":      {set("grid", "algorithm", "algorithmName"), []string{"step"}},
		"no objective metric":       {set(map[string]any{"type": "minimize"}, "objective"), []string{"objectiveMetricName"}},
		"more parallel than trials": {set(int64(5), "parallelTrialCount"), []string{"parallelTrialCount"}},
		"no such container":         {set("trainer", "trialTemplate", "primaryContainerName"), []string{"primaryContainerName", "trainer", "training"}},
		"a placeholder that nothing fills": {
			command("sh", "-c", "echo loss=${trialParameters.y} ${trialParameters.x}"), []string{"trialParameters.y"}},
		"a reference to no parameter": {
			set([]any{map[string]any{"name": "x", "reference": "learning_rate"}}, "trialTemplate", "trialParameters"), []string{"learning_rate"}},
		"a filter that is no expression": {
			set(map[string]any{"source": map[string]any{"filter": map[string]any{"metricsFormat": []any{"(["}}, "fileSystemPath": map[string]any{"path": "/tmp/m.log", "kind": "File", "format": "TEXT"}}, "collector": map[string]any{"kind": "File"}}, "metricsCollectorSpec"), []string{"metricsFormat"}},
		"a template with no kind": {func(spec map[string]any) {
			delete(template(spec)["trialSpec"].(map[string]any), "kind")
		}, []string{"kind"}},
	}
}

// failure is an experiment that fails once something runs, or that is refused.
type failure struct {
	change change
	// wantTrial is the state in which the trial ends; "" when the experiment
	// ends without one.
	wantTrial v1beta1.TrialConditionType
	want      []string // parts of the message
}

func failures() map[string]failure {
	return map[string]failure{
		"the objective is never printed": {command("sh", "-c", "echo accuracy=0.9 ${trialParameters.x}"), v1beta1.TrialMetricsUnavailable, []string{"loss"}},
		"the command is not found":       {command("no-such-trainer", "${trialParameters.x}"), v1beta1.TrialFailed, []string{"no-such-trainer"}},
		"the program exits with 1":       {command("sh", "-c", "echo loss=${trialParameters.x}; exit 1"), v1beta1.TrialFailed, []string{"exit", "1"}},
		"the program is killed":          {command("sh", "-c", "echo loss=${trialParameters.x}; kill -9 $$$$"), v1beta1.TrialFailed, []string{"SIGKILL"}},
		"memory runs out": {func(spec map[string]any) {
			// tail keeps the last "line" of an endless stream without newlines in memory.
			command("sh", "-c", "echo loss=${trialParameters.x}; tail /dev/zero")(spec)
			container(spec)["resources"] = map[string]any{"limits": map[string]any{"memory": "64Mi"}}
		}, v1beta1.TrialFailed, []string{"OOMKilled", "memory"}},
		"it never ends, with a deadline": {func(spec map[string]any) {
			command("sh", "-c", "echo loss=${trialParameters.x}; sleep 1000")(spec)
			jobSpec(spec)["activeDeadlineSeconds"] = int64(2)
		}, v1beta1.TrialFailed, []string{"DeadlineExceeded", "activeDeadlineSeconds"}},
		"it never ends, and has a time": {func(spec map[string]any) {
			command("sh", "-c", "echo loss=${trialParameters.x}; sleep 1000")(spec)
			set("3s", "maxTrialDuration")(spec)
		}, v1beta1.TrialFailed, []string{"maxTrialDuration, 3s"}},
		"it finds no node for too long": {func(spec map[string]any) {
			podSpec(spec)["nodeSelector"] = map[string]any{"gpu": "h200"}
			set("3s", "maxTrialWaitDuration")(spec)
		}, v1beta1.TrialFailed, []string{"It waited too long", "finds no node"}},
		"the template's ConfigMap is missing": {func(spec map[string]any) {
			delete(template(spec), "trialSpec")
			set(map[string]any{"configMapName": "absent", "configMapNamespace": "default", "templatePath": "job.yaml"}, "trialTemplate", "configMap")(spec)
			set(`status.conditions.#(type=="Complete")#`, "trialTemplate", "successCondition")(spec)
			set(`status.conditions.#(type=="Failed")#`, "trialTemplate", "failureCondition")(spec)
		}, "", []string{"absent"}},
		"a container with no command": {func(spec map[string]any) {
			delete(container(spec), "command")
			container(spec)["args"] = []any{"${trialParameters.x}"}
			set("3s", "maxTrialWaitDuration")(spec) // on a cluster its image may still come to a registry
		}, v1beta1.TrialFailed, []string{"command"}},
	}
}

// TestBrokenExperiments holds that what can be seen before anything runs is
// refused at admission, with the field and what to do, that the rest fails with
// a message that says why, and that neither leaves anything behind.
func TestBrokenExperiments(t *testing.T) {
	i := upOrCluster(t)
	for name, test := range refusals() {
		t.Run(name, func(t *testing.T) { i.checkRefused(t, broken(t, "refused", test.change), test.want) })
	}
	t.Run("refused experiments leave nothing behind", func(t *testing.T) { i.checkEmpty(t) })
	for name, test := range failures() {
		t.Run(name, func(t *testing.T) { i.checkFails(t, test) })
	}
	t.Run("failed experiments leave nothing behind", func(t *testing.T) { i.checkEmpty(t) })
}

func broken(t *testing.T, name string, change change) *unstructured.Unstructured {
	t.Helper()
	content := map[string]any{}
	if err := yaml.Unmarshal([]byte(soundExperiment().yaml()), &content); err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{Object: content}
	object.SetNamespace("default")
	object.SetName(name)
	// Numbers of YAML are float64; the API wants integers.
	for _, field := range []string{"parallelTrialCount", "maxTrialCount", "maxFailedTrialCount"} {
		set(int64(1), field)(content["spec"].(map[string]any))
	}
	jobSpec(content["spec"].(map[string]any))["backoffLimit"] = int64(0)
	change(content["spec"].(map[string]any))
	return object
}

// checkFails creates the experiment, or sees it refused: either way the message
// says what is wrong. Then it deletes it.
func (i *instance) checkFails(t *testing.T, f failure) {
	t.Helper()
	object := broken(t, "failing", f.change)
	err := i.client.Create(t.Context(), object)
	if err != nil {
		t.Logf("refused: %v", err)
		requireWords(t, err.Error(), f.want)
		return
	}
	message := ""
	eventually(t, time.Minute, func(ctx context.Context) error {
		var e v1beta1.Experiment
		if err := i.client.Get(ctx, types.NamespacedName{Namespace: "default", Name: "failing"}, &e); err != nil {
			return err
		}
		n := len(e.Status.Conditions)
		if n == 0 || e.Status.Conditions[n-1].Type != v1beta1.ExperimentFailed {
			return fmt.Errorf("the experiment has not failed: %+v", e.Status.Conditions)
		}
		message = e.Status.Conditions[n-1].Message
		return nil
	})
	for _, trial := range i.trials(t, "failing") {
		last := trial.Status.Conditions[len(trial.Status.Conditions)-1]
		if last.Type != f.wantTrial {
			t.Errorf("trial %s is %s: %s; want %s", trial.Name, last.Type, last.Message, f.wantTrial)
		}
		message += " " + string(last.Type) + ": " + last.Message
	}
	t.Logf("%s", message)
	requireWords(t, message, f.want)
	if err := i.client.Delete(t.Context(), object, client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
		t.Fatal(err)
	}
	eventually(t, 40*time.Second, func(ctx context.Context) error {
		err := i.client.Get(ctx, client.ObjectKeyFromObject(object), object)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(errors.New("the experiment is still there"), err)
	})
}

func requireWords(t *testing.T, text string, words []string) {
	t.Helper()
	for _, word := range words {
		if !strings.Contains(text, word) {
			t.Errorf("%q does not name %q", text, word)
		}
	}
}

// checkEmpty holds that no object and no process of an experiment is left.
func (i *instance) checkEmpty(t *testing.T) {
	t.Helper()
	eventually(t, 30*time.Second, func(ctx context.Context) error {
		for _, list := range []client.ObjectList{&v1beta1.ExperimentList{}, &v1beta1.TrialList{}, &v1beta1.SuggestionList{}, &batchv1.JobList{}, &corev1.PodList{}} {
			if err := i.client.List(ctx, list, client.InNamespace("default")); err != nil {
				return err
			}
			content, err := yaml.Marshal(list)
			if err != nil {
				return err
			}
			var items struct {
				Items []struct {
					Metadata struct{ Name string } `json:"metadata"`
				} `json:"items"`
			}
			if err := yaml.Unmarshal(content, &items); err != nil {
				return err
			}
			if len(items.Items) > 0 {
				return fmt.Errorf("left behind in %T: %+v", list, items.Items)
			}
		}
		if left := processesNaming(t, "tail /dev/zero"); len(left) > 0 {
			return fmt.Errorf("processes left behind: %v", left)
		}
		return nil
	})
}
