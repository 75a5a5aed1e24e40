package lines_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/server/lines"
	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/stop"
)

// TestDocumentedConversation holds that docs/optimize.md shows what really
// happens: its requests, in their order, get the answers that it shows, but for
// the points, which are the algorithm's affair.
func TestDocumentedConversation(t *testing.T) {
	text, err := os.ReadFile("../../docs/optimize.md")
	if err != nil {
		t.Fatal(err)
	}
	var space string
	var requests, want []string
	for i, block := range strings.Split(string(text), "```") {
		language, body, _ := strings.Cut(block, "\n")
		switch {
		case i%2 == 0:
		case language == "json":
			space = body
		case language == "" && strings.HasPrefix(body, "{"):
			for j, line := range strings.Split(strings.TrimSpace(body), "\n") {
				if j%2 == 0 {
					requests = append(requests, line)
				} else {
					want = append(want, line)
				}
			}
		}
	}
	if len(requests) < 10 || len(requests) != len(want) {
		t.Fatalf("%d requests and %d answers", len(requests), len(want))
	}
	st := study(t, space)
	rule, _ := stop.Get("threshold")
	stopper, err := rule.New(suggest.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	got := converse(t, lines.New(lines.Config{Study: st, Algorithm: build(t, "bayesianoptimization", st.Space), Stopper: stopper}), requests...)
	for i := range got {
		if diff := cmp.Diff(withoutPoints(t, want[i]), withoutPoints(t, got[i])); diff != "" {
			t.Errorf("%s (-documented +real):\n%s", requests[i], diff)
		}
	}
}

// withoutPoints keeps the numbers of the trials only.
func withoutPoints(t *testing.T, answer string) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(answer), &v); err != nil {
		t.Fatalf("%s: %v", answer, err)
	}
	if trials, ok := v["trials"].([]any); ok {
		for _, trial := range trials {
			delete(trial.(map[string]any), "params")
			delete(trial.(map[string]any), "why")
		}
	}
	return v
}
