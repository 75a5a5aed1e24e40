package trainer_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/trainer"
	"github.com/vernier-ml/vernier/trainer/kind"
)

// shape is a tree without the contents of its strings.
func shape(v any) any {
	switch v := v.(type) {
	case string:
		return "string"
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = shape(v[i])
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for k, e := range v {
			out[k] = shape(e)
		}
		return out
	}
	return v
}

// FuzzRender verifies that no value changes the structure of the object, and that
// values arrive unchanged.
func FuzzRender(f *testing.F) {
	for _, seed := range []string{"0.1", "a\"b", "x\ny: z", "${trialParameters.v}", "\x00", "\"]}", "- a", "'", "*x", "&x", "!!int 3", "{{", "# c", "\\u0022", "null", "1_000", "é\u2028"} {
		f.Add(seed)
	}
	inline := []byte(`{"apiVersion":"batch/v1","kind":"Job","spec":{"args":["--v=${trialParameters.v}","${trialParameters.v}"],"n":1}}`)
	text := []byte("apiVersion: batch/v1\nkind: Job\nspec:\n  args:\n  - --v=${trialParameters.v}\n  - ${trialParameters.v}\n  n: 1\n")
	f.Fuzz(func(t *testing.T, value string) {
		value = strings.ToValidUTF8(value, "?")
		for _, template := range [][]byte{inline, text} {
			ph := []trainer.Placeholder{{Name: "v", Reference: "v"}}
			got, err := trainer.Render(template, ph, map[string]string{"v": value}, id, kind.For)
			if err != nil {
				t.Fatalf("value %q: %v", value, err)
			}
			plain, err := trainer.Render(template, ph, map[string]string{"v": "plain"}, id, kind.For)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(shape(got.Object), shape(plain.Object)) {
				t.Fatalf("value %q changes the structure: %v", value, got.Object)
			}
			want := []any{"--v=" + value, value}
			if diff := cmp.Diff(want, got.Object["spec"].(map[string]any)["args"]); diff != "" {
				t.Fatalf("value %q (-want +got)\n%s", value, diff)
			}
		}
	})
}

// FuzzTemplate verifies that no template makes Render panic, and that no placeholder
// is left in a rendered one.
func FuzzTemplate(f *testing.F) {
	f.Add(yamlTemplate)
	f.Add(one("${trialParameters.workers}"))
	f.Add("{a: ${trialParameters.lr}, ? ${trialParameters.lr} : x}")
	f.Add("apiVersion: v1\nkind: X\n? [a]\n: b\n")
	f.Add("apiVersion: v1\nkind: X\nmetadata:\n")
	f.Fuzz(func(t *testing.T, template string) {
		ph := []trainer.Placeholder{{Name: "workers", Reference: "w"}, {Name: "lr", Reference: "w"}}
		job, err := trainer.Render([]byte(template), ph, map[string]string{"w": "1"}, id, kind.For)
		if err != nil {
			if len(trainer.FieldErrors(err)) == 0 {
				t.Fatalf("error without a field error: %v", err)
			}
			return
		}
		if job.GetName() != id.Name || job.GetNamespace() != id.Namespace {
			t.Fatalf("identity %s/%s", job.GetNamespace(), job.GetName())
		}
		raw, err := job.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(raw), "${trialParameters.") {
			t.Fatalf("a placeholder is left in %s", raw)
		}
	})
}
