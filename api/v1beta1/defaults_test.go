package v1beta1_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

// spec reads the YAML of an experiment's spec.
func spec(t *testing.T, text string) *v1beta1.Experiment {
	t.Helper()
	e := &v1beta1.Experiment{}
	if err := yaml.UnmarshalStrict([]byte(text), &e.Spec); err != nil {
		t.Fatal(err)
	}
	return e
}

func TestSetDefaults(t *testing.T) {
	tests := map[string]struct{ given, want string }{
		"an empty spec": {"{}", `
parallelTrialCount: 3
resumePolicy: Never
algorithm: {algorithmName: auto}
metricsCollectorSpec: {collector: {kind: StdOut}}`},
		"parallelTrialCount is not above maxTrialCount": {"{maxTrialCount: 2}", `
maxTrialCount: 2
parallelTrialCount: 2
resumePolicy: Never
algorithm: {algorithmName: auto}
metricsCollectorSpec: {collector: {kind: StdOut}}`},
		"what is set stays": {`
parallelTrialCount: 7
resumePolicy: LongRunning
algorithm: {algorithmName: tpe, algorithmSettings: [{name: gamma, value: "0.2"}]}
metricsCollectorSpec: {collector: {kind: Push}}
parameters: [{name: a, parameterType: double, feasibleSpace: {min: "1", max: "2", distribution: logUniform}}]`, `
parallelTrialCount: 7
resumePolicy: LongRunning
algorithm: {algorithmName: tpe, algorithmSettings: [{name: gamma, value: "0.2"}]}
metricsCollectorSpec: {collector: {kind: Push}}
parameters: [{name: a, parameterType: double, feasibleSpace: {min: "1", max: "2", distribution: logUniform}}]`},
		"every parameter gets a distribution": {`
parallelTrialCount: 1
resumePolicy: Never
algorithm: {algorithmName: auto}
metricsCollectorSpec: {collector: {kind: Push}}
parameters: [{name: a, parameterType: categorical, feasibleSpace: {list: [x]}}]`, `
parallelTrialCount: 1
resumePolicy: Never
algorithm: {algorithmName: auto}
metricsCollectorSpec: {collector: {kind: Push}}
parameters: [{name: a, parameterType: categorical, feasibleSpace: {list: [x], distribution: uniform}}]`},
		"an architecture search gets no algorithm": {"{nasConfig: {}, parallelTrialCount: 1, resumePolicy: Never, metricsCollectorSpec: {collector: {kind: Push}}}",
			"{nasConfig: {}, parallelTrialCount: 1, resumePolicy: Never, metricsCollectorSpec: {collector: {kind: Push}}}"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := spec(t, tc.given)
			v1beta1.SetDefaults(got)
			if diff := cmp.Diff(spec(t, tc.want), got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			again := got.DeepCopy()
			v1beta1.SetDefaults(again)
			if diff := cmp.Diff(got, again); diff != "" {
				t.Errorf("a second call changes something\n%s", diff)
			}
		})
	}
}

func TestDefaultStrategies(t *testing.T) {
	tests := map[string]struct{ given, want string }{
		"minimize": {"{type: minimize, objectiveMetricName: loss, additionalMetricNames: [acc]}",
			"[{name: loss, value: min}, {name: acc, value: min}]"},
		"maximize, one is given": {"{type: maximize, objectiveMetricName: acc, additionalMetricNames: [loss, x], metricStrategies: [{name: loss, value: latest}]}",
			"[{name: loss, value: latest}, {name: acc, value: max}, {name: x, value: max}]"},
		"no type": {"{objectiveMetricName: loss}", "[{name: loss, value: latest}]"},
		"no name": {"{type: minimize}", "[]"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			e := spec(t, "objective: "+tc.given)
			v1beta1.SetDefaults(e)
			want := spec(t, "objective: {metricStrategies: "+tc.want+"}").Spec.Objective.MetricStrategies
			got := e.Spec.Objective.MetricStrategies
			if len(want) == 0 && len(got) == 0 {
				return
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestDefaultCollectors(t *testing.T) {
	tests := map[string]struct{ given, want string }{
		"File": {"{collector: {kind: File}}",
			"{collector: {kind: File}, source: {fileSystemPath: {path: /var/log/katib/metrics.log, kind: File, format: TEXT}}}"},
		"File with a path": {"{collector: {kind: File}, source: {fileSystemPath: {path: /a, format: JSON}}}",
			"{collector: {kind: File}, source: {fileSystemPath: {path: /a, kind: File, format: JSON}}}"},
		"TensorFlowEvent": {"{collector: {kind: TensorFlowEvent}}",
			"{collector: {kind: TensorFlowEvent}, source: {fileSystemPath: {path: /var/log/katib/tfevent/, kind: Directory}}}"},
		"PrometheusMetric": {"{collector: {kind: PrometheusMetric}}",
			"{collector: {kind: PrometheusMetric}, source: {httpGet: {path: /metrics, port: 8080}}}"},
		"PrometheusMetric with a port of its own": {"{collector: {kind: PrometheusMetric}, source: {httpGet: {port: auto}}}",
			"{collector: {kind: PrometheusMetric}, source: {httpGet: {path: /metrics, port: auto}}}"},
		"files of W&B": {"{collector: {kind: File}, source: {fileSystemPath: {format: WANDB}}}",
			"{collector: {kind: File}, source: {fileSystemPath: {kind: Directory, path: /var/log/katib/metrics/, format: WANDB}}}"},
		"a directory of tables": {"{collector: {kind: File}, source: {fileSystemPath: {kind: Directory, path: /out, format: CSV}}}",
			"{collector: {kind: File}, source: {fileSystemPath: {kind: Directory, path: /out, format: CSV}}}"},
		"a directory of unknown files has no format": {"{collector: {kind: File}, source: {fileSystemPath: {kind: Directory}}}",
			"{collector: {kind: File}, source: {fileSystemPath: {kind: Directory, path: /var/log/katib/metrics/}}}"},
		"PrometheusMetric with a port": {"{collector: {kind: PrometheusMetric}, source: {httpGet: {port: 9}}}",
			"{collector: {kind: PrometheusMetric}, source: {httpGet: {path: /metrics, port: 9}}}"},
		"only a filter": {"{source: {filter: {metricsFormat: [a]}}}",
			"{collector: {kind: StdOut}, source: {filter: {metricsFormat: [a]}}}"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			e := spec(t, "metricsCollectorSpec: "+tc.given)
			v1beta1.SetDefaults(e)
			want := spec(t, "metricsCollectorSpec: "+tc.want).Spec.MetricsCollectorSpec
			if diff := cmp.Diff(want, e.Spec.MetricsCollectorSpec); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestKindDefaults(t *testing.T) {
	master := map[string]string{"training.kubeflow.org/job-role": "master"}
	is := func(c string) string { return `status.conditions.#(type=="` + c + `")#|#(status=="True")#` }
	katib := map[string]v1beta1.KindDefaults{
		"Job":        {SuccessCondition: is("Complete"), FailureCondition: is("Failed")},
		"TFJob":      {SuccessCondition: is("Succeeded"), FailureCondition: is("Failed"), PrimaryPodLabels: master},
		"PyTorchJob": {SuccessCondition: is("Succeeded"), FailureCondition: is("Failed"), PrimaryPodLabels: master},
		"XGBoostJob": {SuccessCondition: is("Succeeded"), FailureCondition: is("Failed"), PrimaryPodLabels: master},
		"MPIJob":     {SuccessCondition: is("Succeeded"), FailureCondition: is("Failed"), PrimaryPodLabels: master},
		"TrainJob": {SuccessCondition: is("Complete"), FailureCondition: is("Failed"), PrimaryPodLabels: map[string]string{
			"jobset.sigs.k8s.io/replicatedjob-name": "node", "batch.kubernetes.io/job-completion-index": "0"}},
	}
	for kind, want := range katib {
		got, ok := v1beta1.DefaultsForKind(runtimeschema.GroupKind{Kind: kind})
		if diff := cmp.Diff(want, got); !ok || diff != "" {
			t.Errorf("%s (-want +got)\n%s", kind, diff)
		}
	}
	for _, kind := range []string{"JAXJob", "MXJob", "PaddleJob", "JobSet", "RayJob", "Workflow", "PipelineRun", "Pod"} {
		d, ok := v1beta1.DefaultsForKind(runtimeschema.GroupKind{Kind: kind})
		if !ok || d.SuccessCondition == "" || d.FailureCondition == "" {
			t.Errorf("%s has no conditions", kind)
		}
	}
	if _, ok := v1beta1.DefaultsForKind(runtimeschema.GroupKind{Kind: "Toaster"}); ok {
		t.Error("a toaster has defaults")
	}
}

func TestDefaultsOfTheTemplate(t *testing.T) {
	e := spec(t, `
trialTemplate:
  successCondition: mine
  trialSpec: {apiVersion: kubeflow.org/v1, kind: TFJob, spec: {deep: [1, {x: null}]}}`)
	raw := string(e.Spec.TrialTemplate.TrialSpec.Raw)
	v1beta1.SetDefaults(e)
	tt := e.Spec.TrialTemplate
	if tt.SuccessCondition != "mine" || tt.FailureCondition == "" || tt.PrimaryPodLabels["training.kubeflow.org/job-role"] != "master" {
		t.Errorf("template %+v", tt)
	}
	if string(tt.TrialSpec.Raw) != raw {
		t.Errorf("the template was rewritten: %s", tt.TrialSpec.Raw)
	}
	cm := spec(t, "trialTemplate: {configMap: {configMapName: a}}")
	v1beta1.SetDefaults(cm)
	if cm.Spec.TrialTemplate.SuccessCondition != "" {
		t.Error("the kind of a template in a ConfigMap is not known yet")
	}
}
