package webhook_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/controllers/webhook"
	"github.com/vernier-ml/vernier/trainer/trainertest"
)

func TestFaultsOfTheTemplate(t *testing.T) {
	template := func(edit func(*v1beta1.TrialTemplate)) edit {
		return func(e *v1beta1.Experiment) { edit(e.Spec.TrialTemplate) }
	}
	const spec = "spec.trialTemplate.trialSpec."
	const container = spec + "spec.template.spec.containers[0]"
	checkFaults(t, map[string]faulty{
		"neither":       {template(func(t *v1beta1.TrialTemplate) { t.TrialSpec = nil }), []string{"spec.trialTemplate: Required value: give trialSpec or configMap"}},
		"half a source": {template(func(t *v1beta1.TrialTemplate) { t.TrialSpec, t.ConfigMap = nil, &v1beta1.ConfigMapSource{} }), []string{"configMap.configMapName: Required", "configMap.templatePath: Required"}},
		"no primary container name": {template(func(t *v1beta1.TrialTemplate) { t.PrimaryContainerName = "" }),
			[]string{"spec.trialTemplate.primaryContainerName: Required value"}},
		"the primary container is not there": {template(func(t *v1beta1.TrialTemplate) { t.PrimaryContainerName = "main" }),
			[]string{spec + `spec.template.spec.containers: Invalid value: there is no container "main", which primaryContainerName names; the containers are: "training-container"`}},
		"no placeholders are declared": {template(func(t *v1beta1.TrialTemplate) { t.TrialParameters = nil }),
			[]string{"spec.trialTemplate.trialParameters: Required", container + ".command[3]: Invalid value: placeholder ${trialParameters.learningRate} is not declared", container + ".command[4]"}},
		"a placeholder without a name": {template(func(t *v1beta1.TrialTemplate) { t.TrialParameters[0].Name = "" }),
			[]string{"trialParameters[0].name: Required", container + ".command[3]"}},
		"a placeholder in braces": {template(func(t *v1beta1.TrialTemplate) { t.TrialParameters[0].Name = "{a}" }),
			[]string{"trialParameters[0].name: Invalid", container + ".command[3]"}},
		"a placeholder twice": {template(func(t *v1beta1.TrialTemplate) {
			t.TrialParameters = append(t.TrialParameters, t.TrialParameters[0])
		}), []string{`trialParameters[2].name: Duplicate value: "learningRate": is declared already: remove one, or give it another name`}},
		"a reference twice": {template(func(t *v1beta1.TrialTemplate) { t.TrialParameters[1].Reference = "lr" }),
			[]string{`trialParameters[1].reference: Duplicate value: "lr": has a placeholder already`}},
		"a reference to nothing": {template(func(t *v1beta1.TrialTemplate) { t.TrialParameters[0].Reference = "" }), []string{"trialParameters[0].reference: Required"}},
		"a reference to a parameter that is not searched": {template(func(t *v1beta1.TrialTemplate) { t.TrialParameters[0].Reference = "rate" }),
			[]string{`trialParameters[0].reference: Not found: "rate": there is no such parameter; the parameters are: lr, momentum`}},
		"a reference to metadata that does not exist": {template(func(t *v1beta1.TrialTemplate) { t.TrialParameters[0].Reference = "${trialSpec.Labels[x]}" }),
			[]string{container + ".command[3]: Invalid value: placeholder ${trialParameters.learningRate} refers to ${trialSpec.Labels[x]}, which the template does not have"}},
		"an unresolvable placeholder":     {trialSpec("epochs=1", "epochs=${trialParameters.epochs}"), []string{container + ".command[2]: Invalid value: placeholder ${trialParameters.epochs} is not declared: add a trialParameter"}},
		"a placeholder that does not end": {trialSpec("epochs=1", "epochs=${trialParameters.epochs"), []string{container + ".command[2]"}},
		"a name":                          {trialSpec(`"kind":"Job"`, `"kind":"Job","metadata":{"name":"a","namespace":"b"}`), []string{spec + "metadata.name", spec + "metadata.namespace"}},
		"no kind":                         {trialSpec(`"kind":"Job",`, ""), []string{spec + "kind"}},
		"an unknown field of a Job":       {trialSpec(`"restartPolicy"`, `"restartPolciy"`), []string{`is not a batch/v1 Job: unknown field "spec.template.spec.restartPolciy": correct or remove the field`}},
		"a string where a Job has a number": {trialSpec(`"spec":{"template"`, `"spec":{"parallelism":"${trialParameters.learningRate}","template"`),
			[]string{"is not a batch/v1 Job: json: cannot unmarshal string into Go struct field"}},
		"a restart policy that Jobs refuse": {trialSpec(`"Never"`, `"Always"`), []string{spec + `spec.template.spec.restartPolicy: Unsupported value: "Always"`}},
		"a quantity that is none":           {trialSpec(`"memory":"1Gi"`, `"memory":"lots"`), []string{"is not a batch/v1 Job"}},
		"no containers":                     {trialSpec(`"containers":[`, `"containers":[],"ephemeralContainers":[`), []string{spec + "spec.template.spec.containers"}},
		"no image":                          {trialSpec(`"image":"`, `"imagePullPolicy":"Always","workingDir":"/`), []string{container + ".image: Required value"}},
		"no command for StdOut":             {trialSpec(`"command"`, `"args"`), []string{container + ".command: Required value: is missing: the StdOut collector runs the command itself"}},
		"a collector's directory over the system": {both(trialSpec("epochs=1", "epochs=1"), fileAt("/etc/m.log")),
			[]string{`mount an empty directory over /etc, which the container needs`}},
		"a collector's directory over the program": {both(trialSpec("epochs=1", "main=/proj/train.py"), fileAt("/proj/m.log")),
			[]string{container + `.command[2]: Invalid value: names /proj/train.py: the collector would mount an empty directory over /proj and hide it`}},
		"a broken condition":      {template(func(t *v1beta1.TrialTemplate) { t.SuccessCondition = "status.#(" }), []string{"spec.trialTemplate.successCondition: Invalid value"}},
		"a kind without defaults": {trialSpec(`"kind":"Job"`, `"kind":"Toast"`), []string{"spec.trialTemplate.successCondition: Required value: there is no default for the kind Toast", "spec.trialTemplate.failureCondition: Required"}},
		"a training job without workers": {trialSpec(`"apiVersion":"batch/v1","kind":"Job"`, `"apiVersion":"kubeflow.org/v1","kind":"TFJob"`),
			[]string{spec + "spec.tfReplicaSpecs: Invalid value: no replica decides when the job has ended: give at least one Chief or Master or Worker"}},
		"a template that is not an object": {template(func(t *v1beta1.TrialTemplate) { t.TrialSpec = &runtime.RawExtension{Raw: []byte(`"job.yaml"`)} }),
			[]string{"spec.trialTemplate.trialSpec: Invalid value: the template is not an object"}},
	})
}

// What depends on template and endpoint together is said at admission.
func TestValidateTemplateWithItsEndpoint(t *testing.T) {
	endpoint := func(port string, more ...edit) edit {
		return func(e *v1beta1.Experiment) {
			m := &v1beta1.MetricsCollectorSpec{}
			if err := yaml.UnmarshalStrict([]byte("{collector: {kind: PrometheusMetric}, source: {httpGet: {port: "+port+", path: /metrics}}}"), m); err != nil {
				panic(err)
			}
			e.Spec.MetricsCollectorSpec = m
			for _, f := range more {
				f(e)
			}
		}
	}
	onHost := trialSpec(`"restartPolicy"`, `"hostNetwork":true,"restartPolicy"`)
	checkFaults(t, map[string]faulty{
		"a fixed port on the host's network": {endpoint("8080", onHost),
			[]string{"spec.trialTemplate.trialSpec.spec.template.spec.hostNetwork: Invalid value: on the host's network the port 8080 is one for all trials of a node"}},
		"a port of the trial's own on the host's network": {endpoint("auto", onHost), nil},
		"a fixed port": {endpoint("8080"), nil},
	})
}

func TestWarnings(t *testing.T) {
	checkWarnings(t, map[string]faulty{
		"none": {func(*v1beta1.Experiment) {}, nil},
		"a placeholder that the template does not use": {
			trialSpec("--lr=${trialParameters.learningRate}", "--lr=1"),
			[]string{"spec.trialTemplate.trialParameters[0]: the template does not use ${trialParameters.learningRate}"},
		},
		"a name that is no placeholder for replicas": {
			trialSpec("--lr=${trialParameters.learningRate}", "--lr=${trialParameters.learningRate} id=${replica.id} $${replica.hosts}"),
			[]string{"spec.trialTemplate.trialSpec: ${replica.id} is left as it is: of the placeholders for replicas there are ${replica.index}, ${replica.role} and ${replica.hosts}"},
		},
		"more failures allowed than trials": {
			func(e *v1beta1.Experiment) { e.Spec.MaxFailedTrialCount = ptr(int32(13)) },
			[]string{"spec.maxFailedTrialCount: 13 is above maxTrialCount, which is 12: failures will never end the experiment"},
		},
		"a program whose variables may come by envFrom, and whose command is the image's": {
			func(e *v1beta1.Experiment) {
				e.Spec.MetricsCollectorSpec = &v1beta1.MetricsCollectorSpec{Collector: &v1beta1.CollectorSpec{Kind: v1beta1.PushCollector}}
				trialSpec(`"command"`, `"envFrom":[{"secretRef":{"name":"s"}}],"args"`)(e)
			},
			[]string{"spec.trialTemplate.trialSpec.spec.template.spec.containers[0].command: is missing, and envFrom may set MLFLOW_TRACKING_URI or KUBEFLOW_TRAINER_SERVER_URL, so that they are not set for the program: it can push by VERNIER_PUSH_URL and report_metrics. Write the program as command, or give envFrom a prefix"},
		},
		"a parameter that trials do not see": {
			func(e *v1beta1.Experiment) {
				e.Spec.Parameters = append(e.Spec.Parameters, v1beta1.ParameterSpec{Name: "extra", ParameterType: "int", FeasibleSpace: v1beta1.FeasibleSpace{Min: "1", Max: "2"}})
			},
			[]string{`spec.parameters[2]: "extra" is searched, but no trialParameter refers to it: trials will not see it`},
		},
	})
}

func TestWarningsOfTheCollector(t *testing.T) {
	collector := func(parallel int32, text string) edit {
		return func(e *v1beta1.Experiment) {
			e.Spec.ParallelTrialCount, e.Spec.MetricsCollectorSpec = &parallel, &v1beta1.MetricsCollectorSpec{}
			if err := yaml.UnmarshalStrict([]byte(text), e.Spec.MetricsCollectorSpec); err != nil {
				t.Fatal(err)
			}
		}
	}
	const pushed = "nothing is read from it, as the program sends its metrics (kind: Push): remove it, or use kind: "
	checkWarnings(t, map[string]faulty{
		"Prometheus without a port":                {collector(2, "{collector: {kind: PrometheusMetric}}"), []string{portWarning}},
		"Prometheus without a port, one at a time": {collector(1, "{collector: {kind: PrometheusMetric}}"), nil},
		"Prometheus with a port of each trial's":   {collector(2, "{collector: {kind: PrometheusMetric}, source: {httpGet: {port: auto}}}"), nil},
		"Prometheus with a port of one's choice":   {collector(2, "{collector: {kind: PrometheusMetric}, source: {httpGet: {port: 9100}}}"), nil},
		"Push":                                     {collector(2, "{collector: {kind: Push}}"), nil},
		"Push of a file":                           {collector(2, "{collector: {kind: Push}, source: {fileSystemPath: {path: /a/b}}}"), []string{"spec.metricsCollectorSpec.source.fileSystemPath: " + pushed + "File"}},
		"Push of a page":                           {collector(2, "{collector: {kind: Push}, source: {httpGet: {port: 80}}}"), []string{"spec.metricsCollectorSpec.source.httpGet: " + pushed + "PrometheusMetric"}},
	})
}

const noGPUs = "spec.maxGPUHours: the template asks for no GPUs (limits such as nvidia.com/gpu), so this budget is never reached"

func TestWarningsOfGPUHours(t *testing.T) {
	hours := func(e *v1beta1.Experiment) { e.Spec.MaxGPUHours = ptr(8.0) }
	checkWarnings(t, map[string]faulty{
		"no GPUs, and no budget of them": {func(*v1beta1.Experiment) {}, nil},
		"no GPUs":                        {hours, []string{noGPUs}},
		"a GPU":                          {both(hours, trialSpec(`"memory":"1Gi"`, `"nvidia.com/gpu":1`)), nil},
		"a part of one":                  {both(hours, trialSpec(`"memory":"1Gi"`, `"nvidia.com/mig-1g.10gb":1`)), nil},
		"no template": {both(hours, func(e *v1beta1.Experiment) { e.Spec.TrialTemplate = nil }),
			[]string{"spec.trialTemplate: there is none, so nothing here runs the trials: they are handed out to programs that ask for them (see docs/api.md)", noGPUs}},
	})
}

// checkWarnings checks that each experiment is valid, and what it is warned of.
func checkWarnings(t *testing.T, tests map[string]faulty) {
	t.Helper()
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			exp := example(t, "random")
			tc.edit(exp)
			webhook.Default(exp)
			warnings, errs := rules.Validate(exp, nil)
			if len(errs) > 0 {
				t.Error(errs.ToAggregate())
			}
			if diff := cmp.Diff(tc.want, warnings); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

const configMapTemplate = `
apiVersion: batch/v1
kind: Job
spec:
  parallelism: ${trialParameters.workers}
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: training-container
        image: train
        command: [train, --lr, ${trialParameters.learningRate}]
`

func TestTemplatesOfConfigMaps(t *testing.T) {
	exp := example(t, "configmap-template")
	exp.Spec.Parameters[1] = v1beta1.ParameterSpec{Name: "workers", ParameterType: "int", FeasibleSpace: v1beta1.FeasibleSpace{Min: "1", Max: "4"}}
	exp.Spec.TrialTemplate.TrialParameters[1] = v1beta1.TrialParameterSpec{Name: "workers", Reference: "workers"}
	webhook.Default(exp)
	if _, errs := rules.Validate(exp, nil); len(errs) > 0 {
		t.Error(errs.ToAggregate())
	}
	tests := map[string]struct {
		old, replacement string
		want             []string
	}{
		"a bare number is a number":    {"", "", nil},
		"a quoted number is a string":  {"${trialParameters.workers}", `"${trialParameters.workers}"`, []string{"spec.trialTemplate.configMap.templatePath: Invalid value: is not a batch/v1 Job"}},
		"YAML that is broken":          {"kind: Job", "kind: [", []string{"spec.trialTemplate.configMap.templatePath: Invalid value: the template is not YAML"}},
		"no kind with known defaults":  {"kind: Job", "kind: Toast", []string{"spec.trialTemplate.successCondition: Required", "spec.trialTemplate.failureCondition: Required"}},
		"the container is not in here": {"name: training-container", "name: other", []string{"spec.trialTemplate.configMap.templatePath.spec.template.spec.containers: Invalid value"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			text := configMapTemplate
			if tc.old != "" {
				text = strings.ReplaceAll(text, tc.old, tc.replacement)
			}
			_, errs := rules.ValidateTemplate(exp, []byte(text))
			if len(errs) != len(tc.want) {
				t.Errorf("%d errors, want %d", len(errs), len(tc.want))
			}
			for i, e := range errs {
				if i >= len(tc.want) || !strings.Contains(e.Error(), tc.want[i]) {
					t.Errorf("error %d: %s", i, e)
				}
			}
		})
	}
}

// The conditions of the fixtures, which are known to read each phase, are the
// defaults of their kinds.
func TestDefaultConditionsReadTheFixtures(t *testing.T) {
	fixtures, err := trainertest.Fixtures()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range fixtures {
		d, ok := v1beta1.DefaultsForKind(f.Object().GroupVersionKind().GroupKind())
		if !ok || d.SuccessCondition != f.SuccessCondition || d.FailureCondition != f.FailureCondition {
			t.Errorf("%s: the defaults are %+v", f.File, d)
		}
	}
}

// both makes two edits.
func both(first, second edit) edit {
	return func(e *v1beta1.Experiment) { first(e); second(e) }
}

// fileAt collects from a file.
func fileAt(path string) edit {
	return func(e *v1beta1.Experiment) {
		e.Spec.MetricsCollectorSpec = &v1beta1.MetricsCollectorSpec{
			Collector: &v1beta1.CollectorSpec{Kind: v1beta1.FileCollector},
			Source:    &v1beta1.SourceSpec{FileSystemPath: &v1beta1.FileSystemPath{Path: path, Kind: v1beta1.FileKind, Format: v1beta1.TextFormat}},
		}
	}
}

// Without a template the trials run outside. That is mostly meant, and sometimes a
// mistake, so it is said.
func TestWithoutATemplateTrialsRunOutside(t *testing.T) {
	exp := example(t, "random")
	exp.Spec.TrialTemplate = nil
	webhook.Default(exp)
	warnings, errs := rules.Validate(exp, nil)
	if len(errs) > 0 || len(warnings) != 1 || !strings.Contains(warnings[0], "they are handed out to programs that ask for them") {
		t.Errorf("warnings %q, errors %v", warnings, errs)
	}
}

func TestAnImageMayGiveTheCommand(t *testing.T) {
	exp := example(t, "random")
	trialSpec(`"command"`, `"args"`)(exp)
	webhook.Default(exp)
	if _, errs := (webhook.Rules{Entrypoints: true}).Validate(exp, nil); len(errs) > 0 {
		t.Error(errs)
	}
}
