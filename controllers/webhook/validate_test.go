package webhook_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/controllers/webhook"
)

const examples = "../../api/v1beta1/testdata/experiments"

func example(t *testing.T, name string) *v1beta1.Experiment {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(examples, name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	exp := &v1beta1.Experiment{}
	if err := yaml.UnmarshalStrict(text, exp); err != nil {
		t.Fatal(err)
	}
	return exp
}

// trialSpec replaces a piece of the inline template's JSON.
func trialSpec(old, replacement string) func(*v1beta1.Experiment) {
	return func(e *v1beta1.Experiment) {
		raw := string(e.Spec.TrialTemplate.TrialSpec.Raw)
		if !strings.Contains(raw, old) {
			panic("the template has no " + old + ": " + raw)
		}
		e.Spec.TrialTemplate.TrialSpec.Raw = []byte(strings.ReplaceAll(raw, old, replacement))
	}
}

func texts(errs field.ErrorList) []string {
	var out []string
	for _, e := range errs {
		out = append(out, e.Error())
	}
	return out
}

// portWarning is of a PrometheusMetric collector with the default port.
const portWarning = "spec.metricsCollectorSpec.source.httpGet.port: 8080, the default, is one port for all trials; where trials share a network (the embedded mode, hostNetwork) those that run at the same time cannot all listen on it: auto gives each its own, in VERNIER_METRICS_PORT"

func TestExamples(t *testing.T) {
	wantWarnings := map[string][]string{
		"hyperopt-distribution": {`spec.parameters[2]: "width" is searched, but no trialParameter refers to it: trials will not see it`},
		"prometheus":            {portWarning},
	}
	files, err := filepath.Glob(filepath.Join(examples, "*.yaml"))
	if err != nil || len(files) < 33 {
		t.Fatalf("%d examples, want at least Katib's 33 (%v)", len(files), err)
	}
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), ".yaml")
		t.Run(name, func(t *testing.T) {
			exp := example(t, name)
			webhook.Default(exp)
			warnings, errs := rules.Validate(exp, nil)
			if len(errs) > 0 {
				t.Errorf("errors: %q", texts(errs))
			}
			if diff := cmp.Diff(wantWarnings[name], warnings); diff != "" {
				t.Errorf("warnings (-want +got)\n%s", diff)
			}
		})
	}
}

// rules are those of a cluster.
var rules webhook.Rules

func ptr[T any](v T) *T { return &v }

// parameter is an edit that makes p the first parameter of the experiment.
func parameter(kind v1beta1.ParameterType, f v1beta1.FeasibleSpace) func(*v1beta1.Experiment) {
	return func(e *v1beta1.Experiment) {
		e.Spec.Parameters[0].ParameterType, e.Spec.Parameters[0].FeasibleSpace = kind, f
	}
}

type edit = func(*v1beta1.Experiment)

// faulty is one way to spoil the example "random": what is done, and how each
// error begins or what it has in it.
type faulty struct {
	edit edit
	want []string
}

func checkFaults(t *testing.T, tests map[string]faulty) {
	t.Helper()
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			exp := example(t, "random")
			tc.edit(exp)
			webhook.Default(exp)
			_, errs := rules.Validate(exp, nil)
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

func TestFaultsOfTheSpace(t *testing.T) {
	const double, integer, discrete, categorical = v1beta1.ParameterTypeDouble, v1beta1.ParameterTypeInt, v1beta1.ParameterTypeDiscrete, v1beta1.ParameterTypeCategorical
	type space = v1beta1.FeasibleSpace
	checkFaults(t, map[string]faulty{
		"min above max":             {parameter(double, space{Min: "2", Max: "1"}), []string{"spec.parameters[0].feasibleSpace.min: Invalid value: 2 is above max 1; swap them"}},
		"min that does not parse":   {parameter(double, space{Min: "low", Max: "1"}), []string{"spec.parameters[0].feasibleSpace.min"}},
		"max that is infinite":      {parameter(double, space{Min: "0", Max: "inf"}), []string{"spec.parameters[0].feasibleSpace.max"}},
		"no bounds":                 {parameter(double, space{}), []string{"spec.parameters[0].feasibleSpace.min", "spec.parameters[0].feasibleSpace.max"}},
		"an int that is not whole":  {parameter(integer, space{Min: "0.5", Max: "2"}), []string{"spec.parameters[0].feasibleSpace.min"}},
		"step of zero":              {parameter(double, space{Min: "0", Max: "1", Step: "0"}), []string{"spec.parameters[0].feasibleSpace.step"}},
		"step below zero":           {parameter(integer, space{Min: "0", Max: "1", Step: "-1"}), []string{"spec.parameters[0].feasibleSpace.step"}},
		"a list for a double":       {parameter(double, space{Min: "0", Max: "1", List: []string{"1"}}), []string{"spec.parameters[0].feasibleSpace.list"}},
		"bounds for a categorical":  {parameter(categorical, space{Min: "0", Max: "1", List: []string{"a"}}), []string{"feasibleSpace.min", "feasibleSpace.max"}},
		"an empty list":             {parameter(categorical, space{}), []string{"spec.parameters[0].feasibleSpace.list"}},
		"a value twice":             {parameter(categorical, space{List: []string{"a", "b", "a"}}), []string{"spec.parameters[0].feasibleSpace.list"}},
		"a number twice":            {parameter(discrete, space{List: []string{"1", "1.0"}}), []string{"spec.parameters[0].feasibleSpace.list"}},
		"a word among the numbers":  {parameter(discrete, space{List: []string{"1", "two"}}), []string{"spec.parameters[0].feasibleSpace.list"}},
		"log of zero":               {parameter(double, space{Min: "0", Max: "1", Distribution: "logUniform"}), []string{"spec.parameters[0].feasibleSpace.min"}},
		"log of a negative number":  {parameter(integer, space{Min: "-1", Max: "1", Distribution: "logNormal"}), []string{"spec.parameters[0].feasibleSpace.min"}},
		"an unknown type":           {parameter("float", space{Min: "0", Max: "1"}), []string{"spec.parameters[0].parameterType"}},
		"an unknown distribution":   {parameter(double, space{Min: "0", Max: "1", Distribution: "gamma"}), []string{"spec.parameters[0].feasibleSpace.distribution"}},
		"two parameters, one name":  {func(e *v1beta1.Experiment) { e.Spec.Parameters[1].Name = "lr" }, []string{"spec.parameters[1].name", "spec.trialTemplate.trialParameters[1].reference: Not found: \"momentum\": there is no such parameter; the parameters are: lr, lr"}},
		"no parameters":             {func(e *v1beta1.Experiment) { e.Spec.Parameters = nil }, []string{"spec.parameters: Required value"}},
		"grid of a continuous axis": {func(e *v1beta1.Experiment) { e.Spec.Algorithm = &v1beta1.AlgorithmSpec{AlgorithmName: "grid"} }, []string{`parameter "lr": step is missing`, `parameter "momentum": step is missing`}},
	})
}

func TestFaultsOfTheAlgorithm(t *testing.T) {
	settings := func(name string, s ...v1beta1.AlgorithmSetting) edit {
		return func(e *v1beta1.Experiment) {
			e.Spec.Algorithm = &v1beta1.AlgorithmSpec{AlgorithmName: name, AlgorithmSettings: s}
		}
	}
	checkFaults(t, map[string]faulty{
		"an unknown algorithm": {settings("rnadom"), []string{`spec.algorithm.algorithmName: Unsupported value: "rnadom": there is no such algorithm: did you mean random?`}},
		"an unknown algorithm and a bad space": {func(e *v1beta1.Experiment) {
			settings("rnadom")(e)
			parameter("double", v1beta1.FeasibleSpace{Min: "2", Max: "1"})(e)
		}, []string{"spec.algorithm.algorithmName", "spec.parameters[0].feasibleSpace.min"}},
		"an unknown setting":       {settings("random", v1beta1.AlgorithmSetting{Name: "seeed", Value: "1"}), []string{`spec.algorithm.algorithmSettings[0]: Invalid value: "1": setting "seeed" is unknown`}},
		"a setting that is no int": {settings("random", v1beta1.AlgorithmSetting{Name: "random_state", Value: "x"}), []string{"spec.algorithm.algorithmSettings[0]"}},
		"a setting out of range":   {settings("random", v1beta1.AlgorithmSetting{Name: "random_state", Value: "-1"}), []string{"spec.algorithm.algorithmSettings[0]"}},
		"a setting without a name": {settings("random", v1beta1.AlgorithmSetting{Value: "1"}), []string{"spec.algorithm.algorithmSettings[0].name: Required value"}},
		"a setting twice":          {settings("random", v1beta1.AlgorithmSetting{Name: "random_state", Value: "1"}, v1beta1.AlgorithmSetting{Name: "random_state", Value: "2"}), []string{"spec.algorithm.algorithmSettings[1]"}},
		"an early stopping rule":   {func(e *v1beta1.Experiment) { e.Spec.EarlyStopping = &v1beta1.EarlyStoppingSpec{AlgorithmName: "x"} }, []string{"spec.earlyStopping.algorithmName: Unsupported value"}},
		"a setting of the rule that is wrong": {func(e *v1beta1.Experiment) {
			e.Spec.EarlyStopping = &v1beta1.EarlyStoppingSpec{AlgorithmName: "medianstop", AlgorithmSettings: []v1beta1.EarlyStoppingSetting{
				{Name: "start_step", Value: "4"}, {Name: "min_trials_required", Value: "many"},
			}}
		}, []string{"spec.earlyStopping.algorithmSettings[1]"}},
		"a rule without a name": {func(e *v1beta1.Experiment) { e.Spec.EarlyStopping = &v1beta1.EarlyStoppingSpec{} }, []string{"spec.earlyStopping.algorithmName: Required value"}},
		"an architecture, no words": {func(e *v1beta1.Experiment) {
			e.Spec.Parameters, e.Spec.NasConfig, e.Spec.Algorithm = nil, &v1beta1.NasConfig{}, nil
		}, []string{"spec.algorithm.algorithmName: Required value: name one of: "}},
	})
}

func TestFaultsOfBudgetAndObjective(t *testing.T) {
	objective := func(o *v1beta1.ObjectiveSpec) edit {
		return func(e *v1beta1.Experiment) { e.Spec.Objective = o }
	}
	type obj = v1beta1.ObjectiveSpec
	checkFaults(t, map[string]faulty{
		"no objective":                {objective(nil), []string{"spec.objective: Required value"}},
		"no direction":                {objective(&obj{ObjectiveMetricName: "loss"}), []string{"spec.objective.type: Required value"}},
		"no metric":                   {objective(&obj{Type: "minimize"}), []string{"spec.objective.objectiveMetricName: Required value"}},
		"the objective is additional": {objective(&obj{Type: "minimize", ObjectiveMetricName: "loss", AdditionalMetricNames: []string{"a", "loss"}}), []string{`spec.objective.additionalMetricNames[1]: Duplicate value: "loss": is the objective, or stands here before: remove one`}},
		"a metric without a name":     {objective(&obj{Type: "minimize", ObjectiveMetricName: "loss", AdditionalMetricNames: []string{""}}), []string{"spec.objective.additionalMetricNames[0]: Required value", "spec.objective.metricStrategies[1].name"}},
		"use of the machine":          {objective(&obj{Type: "maximize", ObjectiveMetricName: "system/gpu0.utilization_percent"}), []string{`spec.objective.objectiveMetricName: Invalid value: "system/gpu0.utilization_percent": is sampled from the machine`}},
		"use beside the objective":    {objective(&obj{Type: "minimize", ObjectiveMetricName: "loss", AdditionalMetricNames: []string{"system/gpu_0_power_watts", "system/memory_gib"}}), []string{`spec.objective.additionalMetricNames[1]: Invalid value: "system/memory_gib": is sampled`}},
		"a strategy for no metric":    {objective(&obj{Type: "minimize", ObjectiveMetricName: "loss", MetricStrategies: []v1beta1.MetricStrategy{{Name: "x", Value: "min"}}}), []string{"spec.objective.metricStrategies[0].name"}},
		"two strategies":              {objective(&obj{Type: "minimize", ObjectiveMetricName: "loss", MetricStrategies: []v1beta1.MetricStrategy{{Name: "loss", Value: "min"}, {Name: "loss", Value: "max"}}}), []string{`spec.objective.metricStrategies[1].name: Duplicate value: "loss": has a strategy already: remove one`}},
		"repeats with several objectives": {func(e *v1beta1.Experiment) {
			e.Spec.Repeats, e.Spec.Objective.Goal = v1beta1.RepeatAuto, nil
			e.Spec.Objectives = []v1beta1.ObjectiveMetric{{ObjectiveMetricName: e.Spec.Objective.ObjectiveMetricName, Type: e.Spec.Objective.Type}, {ObjectiveMetricName: "size", Type: "minimize"}}
		}, []string{`spec.repeats: Invalid value: "Auto": repeats are for one objective`}},
		"repeats in a grid": {func(e *v1beta1.Experiment) {
			e.Spec.Repeats, e.Spec.Algorithm.AlgorithmName = v1beta1.RepeatAuto, "grid"
			e.Spec.Algorithm.AlgorithmSettings = []v1beta1.AlgorithmSetting{{Name: "grid_points", Value: "3"}}
		}, []string{`spec.repeats: Invalid value: "Auto": grid tries each of its points once: remove it`}},
		"a name that is too long":   {func(e *v1beta1.Experiment) { e.Name = strings.Repeat("a", 41) }, []string{"metadata.name: Invalid value: \"" + strings.Repeat("a", 41) + "\": has 41 characters: use at most 40"}},
		"a name with a capital":     {func(e *v1beta1.Experiment) { e.Name = "a-B" }, []string{"metadata.name: Invalid value: \"a-B\": use lower case letters"}},
		"a name that begins with 1": {func(e *v1beta1.Experiment) { e.Name = "1a" }, []string{"metadata.name"}},
		"several faults at once": {func(e *v1beta1.Experiment) {
			e.Spec.Objective = nil
			e.Spec.Algorithm.AlgorithmName = "x"
			e.Spec.TrialTemplate.PrimaryContainerName = ""
		}, []string{"spec.objective", "spec.algorithm.algorithmName", "spec.trialTemplate.primaryContainerName"}},
	})
}

func TestFaultsOfTheCollector(t *testing.T) {
	collector := func(text string) edit {
		return func(e *v1beta1.Experiment) {
			e.Spec.MetricsCollectorSpec = &v1beta1.MetricsCollectorSpec{}
			if err := yaml.UnmarshalStrict([]byte(text), e.Spec.MetricsCollectorSpec); err != nil {
				panic(err)
			}
		}
	}
	checkFaults(t, map[string]faulty{
		"None":                       {collector("{collector: {kind: None}}"), []string{`spec.metricsCollectorSpec.collector.kind: Forbidden: None collects nothing`}},
		"a relative file":            {collector("{collector: {kind: File}, source: {fileSystemPath: {path: a.log}}}"), []string{"spec.metricsCollectorSpec.source.fileSystemPath.path: Invalid value: \"a.log\": must be absolute"}},
		"a file in the root":         {collector("{collector: {kind: File}, source: {fileSystemPath: {path: /a.log}}}"), []string{"must lie in a directory of its own"}},
		"a file that is a directory": {collector("{collector: {kind: File}, source: {fileSystemPath: {path: /a/b/}}}"), []string{"must name a file"}},
		"our own directory":          {collector("{collector: {kind: File}, source: {fileSystemPath: {path: /var/run/vernier/x}}}"), []string{"lies in the collector's own directory"}},
		"a directory of text":        {collector("{collector: {kind: File}, source: {fileSystemPath: {path: /a/b, kind: Directory, format: TEXT}}}"), []string{`fileSystemPath.format: Unsupported value: "TEXT": supported values: "CSV", "WANDB"`}},
		"a directory of no format":   {collector("{collector: {kind: File}, source: {fileSystemPath: {path: /a/b, kind: Directory}}}"), []string{`fileSystemPath.format: Unsupported value: ""`}},
		"a file of W&B":              {collector("{collector: {kind: File}, source: {fileSystemPath: {path: /a/b, kind: File, format: WANDB}}}"), []string{`fileSystemPath.format: Unsupported value: "WANDB": supported values: "TEXT", "JSON", "LOGFMT", "CSV"`}},
		"the root as a directory":    {collector("{collector: {kind: File}, source: {fileSystemPath: {path: /, kind: Directory, format: WANDB}}}"), []string{"must lie in a directory of its own"}},
		"a table on standard output": {collector("{source: {fileSystemPath: {format: CSV}}}"), []string{`fileSystemPath.format: Unsupported value: "CSV": supported values: "TEXT", "JSON", "LOGFMT"`}},
		"a filter for logfmt":        {collector("{source: {filter: {metricsFormat: ['(a)(b)']}, fileSystemPath: {format: LOGFMT}}}"), []string{"source.filter: Forbidden: LOGFMT is read as it is"}},
		"kind File for events":       {collector("{collector: {kind: TensorFlowEvent}, source: {fileSystemPath: {path: /a/b, kind: File}}}"), []string{"fileSystemPath.kind: Unsupported value"}},
		"a format for events":        {collector("{collector: {kind: TensorFlowEvent}, source: {fileSystemPath: {path: /a/b, format: TEXT}}}"), []string{"fileSystemPath.format: Forbidden"}},
		"an unknown format":          {collector("{collector: {kind: File}, source: {fileSystemPath: {path: /a/b, format: XML}}}"), []string{"fileSystemPath.format: Unsupported value"}},
		"a filter for JSON":          {collector("{collector: {kind: File}, source: {filter: {metricsFormat: ['(a)(b)']}, fileSystemPath: {path: /a/b, format: JSON}}}"), []string{"source.filter: Forbidden"}},
		"a broken filter":            {collector("{source: {filter: {metricsFormat: ['(a)(b)', '(a']}}}"), []string{"source.filter.metricsFormat[1]: Invalid value: \"(a\": is not a Go regular expression"}},
		"a filter with one group":    {collector("{source: {filter: {metricsFormat: ['loss=(.*)']}}}"), []string{"source.filter.metricsFormat[0]: Invalid value: \"loss=(.*)\": needs two groups"}},
		"a bad endpoint":             {collector("{collector: {kind: PrometheusMetric}, source: {httpGet: {port: http, path: metrics}}}"), []string{"httpGet.port: Invalid value: \"http\": must be a number from 1 to 65535, or auto", "httpGet.path"}},
		"an endpoint's escapes":      {collector("{collector: {kind: PrometheusMetric}, source: {httpGet: {port: 8080, path: '/metrics%zz'}}}"), []string{"httpGet.path: Invalid value: \"/metrics%zz\": invalid URL escape"}},
		"a host that is a query":     {collector("{collector: {kind: PrometheusMetric}, source: {httpGet: {port: 8080, path: /metrics, host: 'a?b'}}}"), []string{"httpGet.host"}},
		"a host with an escape":      {collector("{collector: {kind: PrometheusMetric}, source: {httpGet: {port: 8080, path: /metrics, host: 'a%b'}}}"), []string{"httpGet.host"}},
		"a header that is two words": {collector("{collector: {kind: PrometheusMetric}, source: {httpGet: {port: 8080, path: /, httpHeaders: [{name: 'my header', value: c}, {name: X_Key, value: d}]}}}"), []string{"httpGet.httpHeaders[0]"}},
		"a header that is not text":  {collector("{collector: {kind: PrometheusMetric}, source: {httpGet: {port: 8080, path: /, httpHeaders: [{name: a, value: \"c\\x01\"}]}}}"), []string{"httpGet.httpHeaders[0]"}},
		"an endpoint's details":      {collector("{collector: {kind: PrometheusMetric}, source: {httpGet: {port: 99999, path: /, scheme: FTP, host: 'http://a', httpHeaders: [{name: 'a:b', value: c}]}}}"), []string{"httpGet.port", "httpGet.scheme: Unsupported value", "httpGet.host", `httpGet.httpHeaders[0]: Invalid value: "a:b": is not a header: give it a name`}},
		"a broken selector": {func(e *v1beta1.Experiment) {
			collector("{collector: {kind: PrometheusMetric}}")(e)
			e.Spec.Objective.AdditionalMetricNames = []string{`acc{split="test"`}
		}, []string{"spec.objective.additionalMetricNames[0]: Invalid value"}},
		"no custom collector":                        {collector("{collector: {kind: Custom}, source: {fileSystemPath: {path: a}}}"), []string{"customCollector: Required value", "fileSystemPath.path", "fileSystemPath.kind"}},
		"a nameless custom collector":                {collector("{collector: {kind: Custom, customCollector: {args: [a]}}}"), []string{"collector.customCollector.name: Invalid value: \"\"", "collector.customCollector.image: Required value: say which image collects"}},
		"a custom collector with the program's name": {collector("{collector: {kind: Custom, customCollector: {name: training-container, image: i}}}"), []string{"the container name \"training-container\" is taken by the Custom collector: rename one of them"}},
		"a custom collector with the sidecar's name": {collector("{collector: {kind: Custom, customCollector: {name: metrics-collector, image: i}}}"), []string{"which the sidecar beside it has: rename it"}},
		"a custom collector's file in /etc":          {collector("{collector: {kind: Custom, customCollector: {name: c, image: i}}, source: {fileSystemPath: {path: /etc/a, kind: File}}}"), []string{"which the container needs"}},
	})
}
