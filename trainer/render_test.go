package trainer_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/vernier-ml/vernier/trainer"
	"github.com/vernier-ml/vernier/trainer/kind"
)

var id = trainer.Identity{Namespace: "team", Name: "exp-0007", Seed: "1234"}

// one is a template with a single argument, as JSON.
func one(argument string) string {
	raw, _ := json.Marshal(map[string]any{
		"apiVersion": "batch/v1", "kind": "Job",
		"spec": map[string]any{"args": []any{argument}},
	})
	return string(raw)
}

func TestRender(t *testing.T) {
	tests := map[string]struct {
		template     string
		placeholders []trainer.Placeholder
		assignments  map[string]string
		want         map[string]any // beside apiVersion, kind and identity
	}{
		"a placeholder inside an argument is replaced": {
			template:     one("--lr=${trialParameters.rate}"),
			placeholders: []trainer.Placeholder{{Name: "rate", Reference: "lr"}},
			assignments:  map[string]string{"lr": "0.01"},
			want:         map[string]any{"spec": map[string]any{"args": []any{"--lr=0.01"}}},
		},
		"a placeholder twice in one argument is replaced twice": {
			template:     one("${trialParameters.a}-${trialParameters.b}-${trialParameters.a}"),
			placeholders: []trainer.Placeholder{{Name: "a", Reference: "x"}, {Name: "b", Reference: "y"}},
			assignments:  map[string]string{"x": "1", "y": "2"},
			want:         map[string]any{"spec": map[string]any{"args": []any{"1-2-1"}}},
		},
		"the seed of the trial needs no declaration": {
			template: one("--seed=${trialSeed} ${trialSeed}"),
			want:     map[string]any{"spec": map[string]any{"args": []any{"--seed=1234 1234"}}},
		},
		"the seed of the trial is a number where YAML has one": {
			template: "apiVersion: batch/v1\nkind: Job\nspec: {seed: ${trialSeed}, args: [--seed, \"${trialSeed}\"]}\n",
			want:     map[string]any{"spec": map[string]any{"seed": int64(1234), "args": []any{"--seed", "1234"}}},
		},
		"a number in JSON stays a string": {
			template:     one("${trialParameters.n}"),
			placeholders: []trainer.Placeholder{{Name: "n", Reference: "n"}},
			assignments:  map[string]string{"n": "4"},
			want:         map[string]any{"spec": map[string]any{"args": []any{"4"}}},
		},
		"quotes and newlines in a value stay in the string": {
			template:     one("${trialParameters.n}"),
			placeholders: []trainer.Placeholder{{Name: "n", Reference: "n"}},
			assignments:  map[string]string{"n": "a\"],\n\"command\":[\"rm\"]"},
			want:         map[string]any{"spec": map[string]any{"args": []any{"a\"],\n\"command\":[\"rm\"]"}}},
		},
		"a value that looks like a placeholder is not replaced again": {
			template:     one("${trialParameters.a} ${trialParameters.b}"),
			placeholders: []trainer.Placeholder{{Name: "a", Reference: "a"}, {Name: "b", Reference: "b"}},
			assignments:  map[string]string{"a": "${trialParameters.b}", "b": "2"},
			want:         map[string]any{"spec": map[string]any{"args": []any{"${trialParameters.b} 2"}}},
		},
		"shell variables and trialSpec in the text are left alone": {
			template: one("${HOME} $(X) ${trialSpec.Name}"),
			want:     map[string]any{"spec": map[string]any{"args": []any{"${HOME} $(X) ${trialSpec.Name}"}}},
		},
		"map keys are replaced": {
			template:     `{"apiVersion":"v1","kind":"X","spec":{"${trialParameters.k}":1}}`,
			placeholders: []trainer.Placeholder{{Name: "k", Reference: "k"}},
			assignments:  map[string]string{"k": "key: {"},
			want:         map[string]any{"spec": map[string]any{"key: {": int64(1)}},
		},
		"an undeclared use is fine where the declared one is not used": {
			template:     one("x"),
			placeholders: []trainer.Placeholder{{Name: "unused", Reference: "nothing"}},
			want:         map[string]any{"spec": map[string]any{"args": []any{"x"}}},
		},
		"large integers and floats keep their type": {
			template: `{"apiVersion":"v1","kind":"X","spec":{"i":9007199254740993,"f":0.5,"b":true,"n":null}}`,
			want:     map[string]any{"spec": map[string]any{"i": int64(9007199254740993), "f": 0.5, "b": true, "n": nil}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := trainer.Render([]byte(tc.template), tc.placeholders, tc.assignments, id, kind.For)
			if err != nil {
				t.Fatal(err)
			}
			if got.GetName() != "exp-0007" || got.GetNamespace() != "team" {
				t.Errorf("identity %s/%s, want team/exp-0007", got.GetNamespace(), got.GetName())
			}
			for _, k := range []string{"apiVersion", "kind", "metadata"} {
				delete(got.Object, k)
			}
			if diff := cmp.Diff(tc.want, got.Object); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestSeeded(t *testing.T) {
	for template, want := range map[string]bool{
		`{"args":["--seed=${trialSeed}"]}`: true, `{"args":["${trialSeed}"]}`: true, `{"args":["$${trialSeed}"]}`: false, `{"args":["x"]}`: false,
	} {
		if got := trainer.Seeded([]byte(template)); got != want {
			t.Errorf("%s passes the seed on: %v, want %v", template, got, want)
		}
	}
}

// The kubelet expands $(HOME) and turns $$ into a dollar sign. A value must come out
// of that unchanged.
func TestRenderedValuesAreNotExpanded(t *testing.T) {
	template := `{"apiVersion": "batch/v1", "kind": "Job", "metadata": {"annotations": {"v": "${trialParameters.v}"}},
		"spec": {"template": {"spec": {"containers": [{"name": "main",
			"command": ["$(MINE)", "--v=${trialParameters.v}"], "args": ["${trialParameters.v}"],
			"env": [{"name": "V", "value": "${trialParameters.v}"}], "workingDir": "${trialParameters.v}"}]}}}}`
	job, err := trainer.Render([]byte(template), []trainer.Placeholder{{Name: "v", Reference: "v"}},
		map[string]string{"v": "$(HOME) $$ $x"}, trainer.Identity{Namespace: "ns", Name: "exp-0000"}, kind.For)
	if err != nil {
		t.Fatal(err)
	}
	containers, _, _ := unstructured.NestedSlice(job.Object, "spec", "template", "spec", "containers")
	const escaped, plain = "$$(HOME) $$$$ $$x", "$(HOME) $$ $x"
	want := []any{map[string]any{
		"name": "main", "command": []any{"$(MINE)", "--v=" + escaped}, "args": []any{escaped},
		"env": []any{map[string]any{"name": "V", "value": escaped}}, "workingDir": plain,
	}}
	if diff := cmp.Diff(want, containers); diff != "" {
		t.Errorf("containers (-want +got):\n%s", diff)
	}
	if got := job.GetAnnotations()["v"]; got != plain {
		t.Errorf("annotation %q", got)
	}
}

func TestRenderReferencesToMetadata(t *testing.T) {
	template := `{"apiVersion":"batch/v1","kind":"Job","metadata":{"labels":{"team":"blue"},"annotations":{"a/b":"c"}},"spec":{"args":["${trialParameters.p}"]}}`
	tests := map[string]struct{ reference, want, wantErr string }{
		"name":                    {reference: "${trialSpec.Name}", want: "exp-0007"},
		"namespace":               {reference: "${trialSpec.Namespace}", want: "team"},
		"kind":                    {reference: "${trialSpec.Kind}", want: "Job"},
		"API version":             {reference: "${trialSpec.APIVersion}", want: "batch/v1"},
		"label":                   {reference: "${trialSpec.Labels[team]}", want: "blue"},
		"annotation with a slash": {reference: "${trialSpec.Annotations[a/b]}", want: "c"},
		"label that is missing":   {reference: "${trialSpec.Labels[none]}", wantErr: "spec.args[0]: placeholder ${trialParameters.p} refers to ${trialSpec.Labels[none]}, which the template does not have"},
		"label without a key":     {reference: "${trialSpec.Labels}", wantErr: "none of ${trialSpec.Name}"},
		"name with a key":         {reference: "${trialSpec.Name[x]}", wantErr: "none of ${trialSpec.Name}"},
		"something else":          {reference: "${trialSpec.Color}", wantErr: "none of ${trialSpec.Name}"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			job, err := trainer.Render([]byte(template), []trainer.Placeholder{{Name: "p", Reference: tc.reference}}, nil, id, kind.For)
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Fatalf("error %v, want %q in it", err, tc.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			args := job.Object["spec"].(map[string]any)["args"].([]any)
			if args[0] != tc.want {
				t.Errorf("got %q, want %q", args[0], tc.want)
			}
		})
	}
}

func TestRenderFaults(t *testing.T) {
	tests := map[string]struct {
		template     string
		placeholders []trainer.Placeholder
		want         []string
		wantIs       error
	}{
		"a placeholder that is not declared": {
			template: one("${trialParameters.x}"),
			want:     []string{`spec.args[0]: placeholder ${trialParameters.x} is not declared: add a trialParameter with the name "x", or correct the name`},
			wantIs:   trainer.ErrUnknownPlaceholder,
		},
		"a placeholder without a value": {
			template:     one("${trialParameters.x}"),
			placeholders: []trainer.Placeholder{{Name: "x", Reference: "lr"}},
			want:         []string{`spec.args[0]: placeholder ${trialParameters.x} refers to "lr", which has no value in this trial: refer to a parameter of the experiment`},
			wantIs:       trainer.ErrNoAssignment,
		},
		"a placeholder that does not end": {
			template: one("${trialParameters.x"),
			want:     []string{`spec.args[0]: "${trialParameters.x" has a placeholder that does not end: write ${trialParameters.name}`},
			wantIs:   trainer.ErrUnknownPlaceholder,
		},
		"several faults are reported together, in order": {
			template: `{"apiVersion":"v1","kind":"X","spec":{"b":"${trialParameters.x}","a":["${trialParameters.y}"]}}`,
			want: []string{
				`spec.a[0]: placeholder ${trialParameters.y} is not declared: add a trialParameter with the name "y", or correct the name`,
				`spec.b: placeholder ${trialParameters.x} is not declared: add a trialParameter with the name "x", or correct the name`,
			},
		},
		"name, namespace, kind and API version": {
			template: `{"metadata":{"name":"x","namespace":"y","resourceVersion":"12"}}`,
			want: []string{
				"apiVersion: is missing: a template is a complete object, say which apiVersion it has",
				"kind: is missing: a template is a complete object, say which kind it has",
				"metadata.name: must not be set: every trial gets its own; remove it",
				"metadata.namespace: must not be set: every trial gets its own; remove it",
				"metadata.resourceVersion: must not be set: every trial gets its own; remove it",
			},
		},
		"nothing":                {template: " \n", want: []string{"the template is empty: give a complete object, for example a batch/v1 Job"}},
		"a list":                 {template: "[1]", want: []string{"the template is not an object: it must begin with apiVersion and kind"}},
		"two documents":          {template: "a: 1\n---\nb: 2\n", want: []string{"the template holds more than one document: a trial is one object"}},
		"a key with odd letters": {template: `{"apiVersion":"v1","kind":"X","spec":{"a.b/c":"${trialParameters.x}"}}`, want: []string{`spec["a.b/c"]: placeholder ${trialParameters.x} is not declared: add a trialParameter with the name "x", or correct the name`}},
		"two keys that become one": {
			template:     `{"apiVersion":"v1","kind":"X","spec":{"${trialParameters.k}":1,"same":2}}`,
			placeholders: []trainer.Placeholder{{Name: "k", Reference: "same"}},
			want:         []string{"spec.same: stands here twice after its placeholder was replaced: use another key"},
		},
		"a key without a value": {template: `{"apiVersion":"v1","kind":"X","spec":{"${trialParameters.k}":1,"same":2}}`, placeholders: []trainer.Placeholder{{Name: "k", Reference: "${trialSpec.Labels[x]}"}}, want: []string{`spec["${trialParameters.k}"]: placeholder ${trialParameters.k} refers to ${trialSpec.Labels[x]}, which the template does not have: add it to the template's metadata`}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := trainer.Render([]byte(tc.template), tc.placeholders, map[string]string{"same": "same"}, id, kind.For)
			var got []string
			for _, fe := range trainer.FieldErrors(err) {
				got = append(got, fe.Error())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if tc.wantIs != nil && !errors.Is(err, tc.wantIs) {
				t.Errorf("error %v is not %v", err, tc.wantIs)
			}
		})
	}
}

func TestPlaceholders(t *testing.T) {
	got, err := trainer.Placeholders([]byte(yamlTemplate))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"flag", "lr", "word", "workers"}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestTemplateGVK(t *testing.T) {
	got, err := trainer.TemplateGVK([]byte(yamlTemplate))
	if err != nil || got.String() != "batch/v1, Kind=Job" {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := trainer.TemplateGVK([]byte("[")); err == nil {
		t.Error("no error for what is not YAML")
	}
}

// A program that reads its arguments with argparse cannot read --momentum= .
func TestArgumentsOfInactiveParametersAreLeftOut(t *testing.T) {
	ph := []trainer.Placeholder{{Name: "lr", Reference: "lr"}, {Name: "m", Reference: "momentum", Inactive: true}, {Name: "n", Reference: "nesterov", Inactive: true}}
	tests := map[string]struct{ in, want string }{
		"a flag with its value":            {`"train","--lr=${trialParameters.lr}","--momentum=${trialParameters.m}"`, `"train","--lr=0.1"`},
		"a flag and then its value":        {`"train","--momentum","${trialParameters.m}","x"`, `"train","x"`},
		"a short flag and then its value":  {`"train","-m","${trialParameters.m}","--lr","0.1"`, `"train","--lr","0.1"`},
		"a flag of one dash and its value": {`"train","-momentum","${trialParameters.m}"`, `"train"`},
		"a number is no flag":              {`"train","--low","-1","${trialParameters.m}"`, `"train","--low","-1"`},
		"a value without a flag":           {`"train","${trialParameters.m}","x"`, `"train","x"`},
		"a separator is no flag":           {`"train","--","${trialParameters.m}"`, `"train","--"`},
		"one that has another placeholder": {`"train","--opt=${trialParameters.lr},${trialParameters.m}"`, `"train","--opt=0.1,"`},
		"flags in a line of a shell":       {`"sh","-c","train --a=${trialParameters.m} --b ${trialParameters.n} --lr=${trialParameters.lr} && date"`, `"sh","-c","train   --lr=0.1 && date"`},
		"the rest of a shell's line":       {`"sh","-c","M=${trialParameters.m} train"`, `"sh","-c","M= train"`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			job, err := trainer.Render([]byte(`{"apiVersion":"batch/v1","kind":"Job","spec":{"command":[`+tc.in+`]}}`), ph, map[string]string{"lr": "0.1"}, trainer.Identity{}, kind.For)
			if err != nil {
				t.Fatal(err)
			}
			got, err := json.Marshal(job.Object["spec"].(map[string]any)["command"])
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff("["+tc.want+"]", strings.ReplaceAll(string(got), `\u0026`, "&")); diff != "" {
				t.Error(diff)
			}
		})
	}
}
