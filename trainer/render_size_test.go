package trainer_test

import (
	"strings"
	"testing"

	"github.com/vernier-ml/vernier/trainer"
	"github.com/vernier-ml/vernier/trainer/kind"
)

// A value, or a list of hosts, that a small template repeats must not fill the memory.
func TestWhatATemplateBecomesHasAnEnd(t *testing.T) {
	const pod = `{"name": "main", "command": ["train", "COMMAND"]}`
	for name, tc := range map[string]struct{ spec, command string }{
		"a long value": {`{"template": {"spec": {"containers": [` + pod + `]}}}`, strings.Repeat("${trialParameters.x}", 20_000)},
		"many hosts": {`{"completionMode": "Indexed", "completions": 10000, "template": {"spec": {"subdomain": "a", "containers": [` + pod + `]}}}`,
			strings.Repeat("${replica.hosts}", 50_000)},
	} {
		t.Run(name, func(t *testing.T) {
			text := `{"apiVersion": "batch/v1", "kind": "Job", "spec": ` + strings.Replace(tc.spec, "COMMAND", tc.command, 1) + `}`
			_, err := trainer.Render([]byte(text), []trainer.Placeholder{{Name: "x", Reference: "x"}}, map[string]string{"x": strings.Repeat("v", 500_000)}, id, kind.For)
			if err == nil || !strings.Contains(err.Error(), "more than an object may have") || len(trainer.FieldErrors(err)) != 1 {
				t.Errorf("error %.300v, want one that says so", err)
			}
		})
	}
}
