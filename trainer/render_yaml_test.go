package trainer_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/trainer"
	"github.com/vernier-ml/vernier/trainer/kind"
)

// yamlTemplate is a template from a ConfigMap.
const yamlTemplate = `
# ${trialParameters.comment} in a comment is left alone
apiVersion: batch/v1
kind: Job
metadata:
  labels:
    rate: ${trialParameters.lr}
spec:
  parallelism: ${trialParameters.workers}
  quoted: "${trialParameters.workers}"
  single: '${trialParameters.workers}'
  joined: 1${trialParameters.workers}
  suspend: ${trialParameters.flag}
  flow: [a, ${trialParameters.workers}, {deep: ${trialParameters.workers}}]
  rate: ${trialParameters.lr}
  name: ${trialParameters.word}
  date: 2026-11-21
  template:
    spec:
      containers:
      - name: main
        command: [train, --lr, ${trialParameters.lr}, ${trialParameters.flag}]
        args:
        - ${trialParameters.workers}
        env:
        - name: WORKERS
          value: ${trialParameters.workers}
        resources:
          limits:
            nvidia.com/gpu: ${trialParameters.workers}
`

func TestRenderYAML(t *testing.T) {
	var placeholders []trainer.Placeholder
	for _, n := range []string{"workers", "lr", "flag", "word"} {
		placeholders = append(placeholders, trainer.Placeholder{Name: n, Reference: n})
	}
	got, err := trainer.Render([]byte(yamlTemplate), placeholders, map[string]string{
		"workers": "4", "lr": "1e-3", "flag": "true", "word": "null # : [",
	}, id, kind.For)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"apiVersion": "batch/v1", "kind": "Job",
		"metadata": map[string]any{
			"name": "exp-0007", "namespace": "team",
			"labels": map[string]any{"rate": "1e-3"},
		},
		"spec": map[string]any{
			"parallelism": int64(4), "quoted": "4", "single": "4", "joined": "14",
			"suspend": true,
			"flow":    []any{"a", int64(4), map[string]any{"deep": int64(4)}},
			"rate":    0.001,
			"name":    "null # : [",
			"date":    "2026-11-21",
			"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{
				"name":      "main",
				"command":   []any{"train", "--lr", "1e-3", "true"},
				"args":      []any{"4"},
				"env":       []any{map[string]any{"name": "WORKERS", "value": "4"}},
				"resources": map[string]any{"limits": map[string]any{"nvidia.com/gpu": int64(4)}},
			}}}},
		},
	}
	if diff := cmp.Diff(want, got.Object); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestRenderYAMLOddities(t *testing.T) {
	tests := map[string]struct {
		spec string
		want any
	}{
		"anchors and merge keys":          {"spec:\n  a: &a {x: 1}\n  b: {<<: *a, y: 2}", map[string]any{"a": map[string]any{"x": int64(1)}, "b": map[string]any{"x": int64(1), "y": int64(2)}}},
		"keys that are numbers":           {"spec: {1: a, true: b}", map[string]any{"1": "a", "true": "b"}},
		"a block string":                  {"spec:\n  s: |\n    --lr ${trialParameters.lr}\n", map[string]any{"s": "--lr 0.5\n"}},
		"a bare key":                      {"spec:\n  ${trialParameters.lr}: 1", map[string]any{"0.5": int64(1)}},
		"an anchored placeholder":         {"spec:\n  a: &p ${trialParameters.lr}\n  b: *p", map[string]any{"a": 0.5, "b": 0.5}},
		"a word like our own stand-in":    {"spec: [placeholder0end, placeholderx0bare, ${trialParameters.lr}]", []any{"placeholder0end", "placeholderx0bare", 0.5}},
		"a leading document mark":         {"---\nspec: {a: 0644}", map[string]any{"a": int64(420)}},
		"JSON with comments is YAML":      {"spec: {\"a\": 1} # c", map[string]any{"a": int64(1)}},
		"leading zeros are not a number":  {"spec: [${trialParameters.zip}]", []any{"007"}},
		"infinity is not a number either": {"spec: [${trialParameters.inf}]", []any{".inf"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			text := tc.spec + "\napiVersion: v1\nkind: X\n"
			got, err := trainer.Render([]byte(text), []trainer.Placeholder{{Name: "lr", Reference: "lr"}, {Name: "zip", Reference: "zip"}, {Name: "inf", Reference: "inf"}},
				map[string]string{"lr": "0.5", "zip": "007", "inf": ".inf"}, id, kind.For)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got.Object["spec"]); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestRenderRefusesBrokenYAML(t *testing.T) {
	for name, text := range map[string]string{
		"unclosed bracket": "apiVersion: v1\nkind: X\nspec: [${trialParameters.a}\n",
		"duplicate keys":   "apiVersion: v1\nkind: X\nkind: Y\n",
		"tab":              "a:\n\t- b",
		"an alias bomb":    "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\ng: &g [*f,*f,*f,*f,*f,*f,*f,*f,*f]\nh: [*g,*g,*g,*g,*g,*g,*g,*g,*g]",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := trainer.Render([]byte(text), nil, nil, id, kind.For)
			if err == nil || !strings.Contains(err.Error(), "the template is not YAML") {
				t.Errorf("error %v, want that it is not YAML", err)
			}
		})
	}
}

func TestYAMLsOtherBooleansAreThoseOfKubernetes(t *testing.T) {
	const text = `
apiVersion: batch/v1
kind: Job
metadata: {annotations: {answer: yes}}
spec:
  suspend: no
  template:
    spec:
      hostNetwork: Yes
      containers:
      - name: main
        stdin: on
        tty: "on"
        command: [train, --shuffle, yes]
        args: [off]
        env: [{name: VERBOSE, value: no}]
`
	job, err := trainer.Render([]byte(text), nil, nil, id, kind.For)
	if err != nil {
		t.Fatal(err)
	}
	pod := map[string]any{"hostNetwork": true, "containers": []any{map[string]any{
		"name": "main", "stdin": true, "tty": "on",
		"command": []any{"train", "--shuffle", "yes"}, "args": []any{"off"},
		"env": []any{map[string]any{"name": "VERBOSE", "value": "no"}},
	}}}
	if diff := cmp.Diff(map[string]any{"suspend": false, "template": map[string]any{"spec": pod}}, job.Object["spec"]); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	if got := job.GetAnnotations()["answer"]; got != "yes" {
		t.Errorf("annotation %q, want yes", got)
	}
}

func TestATemplateMayEndWithADocumentMark(t *testing.T) {
	for _, end := range []string{"---", "---\n", "...\n", "---\n# end\n---\n"} {
		job, err := trainer.Render([]byte("apiVersion: v1\nkind: X\n"+end), nil, nil, id, kind.For)
		if err != nil || job.GetKind() != "X" {
			t.Errorf("%q at the end: %v, %v", end, job, err)
		}
	}
}
