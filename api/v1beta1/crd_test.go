package v1beta1_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

// definition reads a generated CRD.
func definition(t *testing.T, plural string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "config", "crd", "bases", "kubeflow.org_"+plural+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(text, crd); err != nil {
		t.Fatal(err)
	}
	return crd
}

// schema is a CRD's schema as the API server uses it.
type schema struct {
	structural *structuralschema.Structural
	validator  validation.SchemaValidator
	rules      *cel.Validator
}

func schemaOf(t *testing.T, plural string) schema {
	t.Helper()
	props := &apiextensions.JSONSchemaProps{}
	v1 := definition(t, plural).Spec.Versions[0].Schema.OpenAPIV3Schema
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(v1, props, nil); err != nil {
		t.Fatal(err)
	}
	s, err := structuralschema.NewStructural(props)
	if err != nil {
		t.Fatal(err)
	}
	if errs := structuralschema.ValidateStructural(nil, s); len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	validator, _, err := validation.NewSchemaValidator(props)
	if err != nil {
		t.Fatal(err)
	}
	return schema{s, validator, cel.NewValidator(s, true, celconfig.PerCallLimit)}
}

// faults are the errors that the API server would report for the object.
func (s schema) faults(t *testing.T, obj map[string]any) field.ErrorList {
	errs := validation.ValidateCustomResource(nil, obj, s.validator)
	celErrs, _ := s.rules.Validate(t.Context(), nil, s.structural, obj, nil, celconfig.RuntimeCELCostBudget)
	return append(errs, celErrs...)
}

// pruned are the paths of fields that the API server would drop.
func (s schema) pruned(obj map[string]any) []string {
	return pruning.PruneWithOptions(runtime.DeepCopyJSON(obj), s.structural, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
}

// object reads YAML as the API server would.
func object(t *testing.T, text []byte) map[string]any {
	t.Helper()
	raw, err := yaml.YAMLToJSON(text)
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, raw)
}

func decode(t *testing.T, raw []byte) map[string]any {
	t.Helper()
	var obj unstructured.Unstructured
	if err := obj.UnmarshalJSON(raw); err != nil {
		t.Fatal(err)
	}
	return obj.Object
}

func examples(t *testing.T) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "experiments", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	all := map[string][]byte{}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimSuffix(filepath.Base(f), ".yaml")] = text
	}
	return all
}

// Every example passes the schema, and survives the API server and the Go types
// unchanged.
func TestExperimentsRoundTrip(t *testing.T) {
	s := schemaOf(t, "experiments")
	for name, text := range examples(t) {
		t.Run(name, func(t *testing.T) {
			obj := object(t, text)
			if errs := s.faults(t, obj); len(errs) > 0 {
				t.Error(errs.ToAggregate())
			}
			if dropped := s.pruned(obj); len(dropped) > 0 {
				t.Errorf("the schema drops %v", dropped)
			}
			var typed v1beta1.Experiment
			if err := yaml.UnmarshalStrict(text, &typed); err != nil {
				t.Fatal(err)
			}
			raw, err := json.Marshal(typed)
			if err != nil {
				t.Fatal(err)
			}
			back := decode(t, raw)
			delete(back, "status")
			delete(back["metadata"].(map[string]any), "creationTimestamp")
			if diff := cmp.Diff(obj, back); diff != "" {
				t.Errorf("the types lose something (-given +back)\n%s", diff)
			}
			v1beta1.SetDefaults(&typed)
			if raw, err = json.Marshal(typed); err != nil {
				t.Fatal(err)
			}
			if errs := s.faults(t, decode(t, raw)); len(errs) > 0 {
				t.Errorf("with defaults: %v", errs.ToAggregate())
			}
		})
	}
}

// The API server rejects a CRD whose rules may be too expensive; this finds out
// without one.
func TestRulesCompileAndAreCheap(t *testing.T) {
	for _, plural := range []string{"experiments", "trials", "suggestions"} {
		internal := &apiextensions.CustomResourceDefinition{}
		crd := definition(t, plural)
		apiextensionsv1.SetDefaults_CustomResourceDefinition(crd)
		apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&crd.Spec)
		if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(crd, internal, nil); err != nil {
			t.Fatal(err)
		}
		internal.Status.StoredVersions = []string{"v1beta1"}
		if errs := crdvalidation.ValidateCustomResourceDefinition(t.Context(), internal); len(errs) > 0 {
			t.Errorf("%s: %v", plural, errs.ToAggregate())
		}
	}
}

// edit changes one field of the example "random".
func edit(t *testing.T, value any, path ...string) map[string]any {
	t.Helper()
	obj := object(t, examples(t)["random"])
	if err := unstructured.SetNestedField(obj, value, path...); err != nil {
		t.Fatal(err)
	}
	return obj
}

// What a client cannot decode would stop the manager's cache of all Experiments.
func TestADurationThatTheSchemaAcceptsCanBeRead(t *testing.T) {
	s := schemaOf(t, "experiments")
	for text, ok := range map[string]bool{
		"8h30m": true, "1.5h": true, "0s": true, "500ms": true, "99999h99999h99999h99999h": true,
		"": false, "8 hours": false, "1d": false, "-1h": false, "9999999h": false, "5": false,
	} {
		obj := edit(t, text, "spec", "maxDuration")
		accepted := len(s.faults(t, obj)) == 0
		err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj, &v1beta1.Experiment{})
		if accepted != ok || accepted && err != nil {
			t.Errorf("%q: accepted %v, then %v", text, accepted, err)
		}
	}
}

func TestSchemaFaults(t *testing.T) {
	parameter := func(kind string, space map[string]any) []any {
		return []any{map[string]any{"name": "a", "parameterType": kind, "feasibleSpace": space}}
	}
	tests := map[string]struct {
		obj  map[string]any
		want string
	}{
		"an unknown type of parameter": {
			edit(t, parameter("float", map[string]any{"min": "0", "max": "1"}), "spec", "parameters"),
			`spec.parameters[0].parameterType: Unsupported value: "float"`,
		},
		"a number where a string belongs": {
			edit(t, parameter("double", map[string]any{"min": 0.1, "max": "1"}), "spec", "parameters"),
			"spec.parameters[0].feasibleSpace.min",
		},
		"a list for a double": {
			edit(t, parameter("double", map[string]any{"min": "0", "max": "1", "list": []any{"1"}}), "spec", "parameters"),
			"an int or double has min and max, not a list",
		},
		"a step for a categorical": {
			edit(t, parameter("categorical", map[string]any{"step": "1", "list": []any{"1"}}), "spec", "parameters"),
			"a discrete or categorical has a list, not min, max and step",
		},
		"an unknown distribution": {
			edit(t, parameter("double", map[string]any{"distribution": "gamma"}), "spec", "parameters"),
			`spec.parameters[0].feasibleSpace.distribution: Unsupported value: "gamma"`,
		},
		"an unknown objective type":          {edit(t, "improve", "spec", "objective", "type"), "spec.objective.type: Unsupported value"},
		"an unknown resume policy":           {edit(t, "Always", "spec", "resumePolicy"), "spec.resumePolicy: Unsupported value"},
		"an unknown collector":               {edit(t, "Radio", "spec", "metricsCollectorSpec", "collector", "kind"), "use one of StdOut, File, TensorFlowEvent, PrometheusMetric, Push"},
		"no trials":                          {edit(t, int64(0), "spec", "maxTrialCount"), "spec.maxTrialCount"},
		"a negative parallelTrialCount":      {edit(t, int64(-1), "spec", "parallelTrialCount"), "spec.parallelTrialCount"},
		"a negative maxFailedTrialCount":     {edit(t, int64(-1), "spec", "maxFailedTrialCount"), "spec.maxFailedTrialCount"},
		"no GPU hours":                       {edit(t, 0.0, "spec", "maxGPUHours"), "spec.maxGPUHours: Invalid value: 0"},
		"GPU hours that are text":            {edit(t, "40", "spec", "maxGPUHours"), "spec.maxGPUHours: Invalid value"},
		"more at once than any cluster runs": {edit(t, int64(2_000_000_000), "spec", "parallelTrialCount"), "spec.parallelTrialCount: Invalid value: 2000000000"},
		"an objective without a name":        {edit(t, []any{map[string]any{"type": "minimize", "objectiveMetricName": ""}}, "spec", "objectives"), "spec.objectives[0].objectiveMetricName"},
		"a constraint without a name":        {edit(t, []any{map[string]any{"metricName": "", "min": 1.0}}, "spec", "constraints"), "spec.constraints[0].metricName"},
		"a mean of too many":                 {edit(t, []any{map[string]any{"name": "loss", "value": "mean-last-1001"}}, "spec", "objective", "metricStrategies"), "mean-last-"},
		"more at once than in all":           {edit(t, int64(13), "spec", "parallelTrialCount"), "parallelTrialCount must not be above maxTrialCount"},
		"parameters and an architecture":     {edit(t, map[string]any{}, "spec", "nasConfig"), "parameters and nasConfig exclude each other"},
		"two templates":                      {edit(t, map[string]any{"configMapName": "a"}, "spec", "trialTemplate", "configMap"), "trialSpec and configMap exclude each other"},
		"a template that is not an object":   {edit(t, "job.yaml", "spec", "trialTemplate", "trialSpec"), "spec.trialTemplate.trialSpec"},
		"a condition without its status":     {edit(t, []any{map[string]any{"type": "Created"}}, "status", "conditions"), "status.conditions[0].status: Required value"},
		"a constraint without a bound":       {edit(t, []any{map[string]any{"metricName": "memory"}}, "spec", "constraints"), "give min, max or both"},
		"a constraint whose bounds cross":    {edit(t, []any{map[string]any{"metricName": "memory", "min": 2.0, "max": 1.0}}, "spec", "constraints"), "min must not be above max"},
		"an objective without a direction":   {edit(t, []any{map[string]any{"objectiveMetricName": "loss"}}, "spec", "objectives"), "spec.objectives[0].type: Required value"},
		"a metric strategy that is unknown":  {edit(t, []any{map[string]any{"name": "loss", "value": "mean"}}, "spec", "objective", "metricStrategies"), "mean-last-"},
	}
	s := schemaOf(t, "experiments")
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			errs := s.faults(t, tc.obj)
			if len(errs) == 0 || !strings.Contains(errs.ToAggregate().Error(), tc.want) {
				t.Errorf("got %v, want %q in it", errs.ToAggregate(), tc.want)
			}
		})
	}
}

// Statuses as Katib's controllers write them.
func TestStatusesRoundTrip(t *testing.T) {
	condition := `{"type":"Created","status":"True","reason":"r","message":"m","lastUpdateTime":"2026-11-21T12:00:00Z","lastTransitionTime":"2026-11-21T12:00:00Z"}`
	tests := map[string]struct {
		plural, status string
		into           any
	}{
		"a new experiment": {"experiments", `{"conditions":[` + condition + `],"startTime":"2026-11-21T12:00:00Z","completionTime":null,"currentOptimalTrial":{"observation":{}}}`, &v1beta1.ExperimentStatus{}},
		"an old experiment": {"experiments", `{"startTime":"2026-11-21T12:00:00Z","completionTime":"2026-11-21T13:00:00Z","lastReconcileTime":"2026-11-21T13:00:00Z",
			"conditions":[` + condition + `],
			"currentOptimalTrial":{"bestTrialName":"a","parameterAssignments":[{"name":"lr","value":"0.1"}],"observation":{"metrics":[{"name":"loss","min":"0.1","max":"0.2","latest":"0.1"}]}},
			"runningTrialList":["a"],"pendingTrialList":["a"],"failedTrialList":["a"],"succeededTrialList":["a"],"killedTrialList":["a"],"earlyStoppedTrialList":["a"],"metricsUnavailableTrialList":["a"],
			"trials":7,"trialsSucceeded":1,"trialsFailed":1,"trialsKilled":1,"trialsPending":1,"trialsRunning":1,"trialsEarlyStopped":1,"trialMetricsUnavailable":1}`, &v1beta1.ExperimentStatus{}},
		"a trial":      {"trials", `{"startTime":"2026-11-21T12:00:00Z","completionTime":"2026-11-21T13:00:00Z","conditions":[` + condition + `],"observation":{"metrics":[{"name":"loss","min":"nan","max":"inf","latest":"unavailable"}]}}`, &v1beta1.TrialStatus{}},
		"a suggestion": {"suggestions", `{"startTime":"2026-11-21T12:00:00Z","suggestionCount":1,"algorithmSettings":[{"name":"a","value":"b"}],"conditions":[` + condition + `],"suggestions":[{"name":"a-1","labels":{"x":"y"},"parameterAssignments":[{"name":"lr","value":"0.1"}],"earlyStoppingRules":[{"name":"loss","value":"1","comparison":"less","startStep":4}]}]}`, &v1beta1.SuggestionStatus{}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			kind := definition(t, tc.plural).Spec.Names.Kind
			obj := decode(t, []byte(`{"apiVersion":"kubeflow.org/v1beta1","kind":"`+kind+`","metadata":{"name":"a"},"status":`+tc.status+`}`))
			s := schemaOf(t, tc.plural)
			if errs := s.faults(t, obj); len(errs) > 0 {
				t.Error(errs.ToAggregate())
			}
			if dropped := s.pruned(obj); len(dropped) > 0 {
				t.Errorf("the schema drops %v", dropped)
			}
			if err := json.Unmarshal([]byte(tc.status), tc.into); err != nil {
				t.Fatal(err)
			}
			raw, err := json.Marshal(tc.into)
			if err != nil {
				t.Fatal(err)
			}
			var want, got map[string]any
			if err := json.Unmarshal([]byte(tc.status), &want); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(raw, &got); err != nil {
				t.Fatal(err)
			}
			if want["completionTime"] == nil {
				delete(want, "completionTime") // absent and null mean the same
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestDefinitionsAreKatibs(t *testing.T) {
	common := []string{"Type:.status.conditions[-1:].type", "Status:.status.conditions[-1:].status"}
	age := "Age:.metadata.creationTimestamp"
	for plural, columns := range map[string][]string{
		"experiments": append(common[:2:2], age),
		"trials":      append(common[:2:2], age),
		"suggestions": append(common[:2:2], "Requested:.spec.requests", "Assigned:.status.suggestionCount", age),
	} {
		crd := definition(t, plural)
		v := crd.Spec.Versions[0]
		var got []string
		for _, c := range v.AdditionalPrinterColumns {
			got = append(got, c.Name+":"+c.JSONPath)
		}
		if diff := cmp.Diff(columns, got); diff != "" {
			t.Errorf("%s: columns (-want +got)\n%s", plural, diff)
		}
		if diff := cmp.Diff([]string{"all", "kubeflow", "katib"}, crd.Spec.Names.Categories); diff != "" {
			t.Errorf("%s: categories\n%s", plural, diff)
		}
		if v.Subresources == nil || v.Subresources.Status == nil || !v.Storage || v.Name != "v1beta1" || crd.Spec.Group != "kubeflow.org" {
			t.Errorf("%s: version %+v", plural, v)
		}
	}
}
