package lines_test

import (
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/server/lines"
	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/stop"
)

// TestDocumentedConversation holds that docs/optimize.md shows what really
// happens: its requests, in their order, to the algorithm, seed and stopper that
// it names, get the answers that it shows, numbers to about three digits.
func TestDocumentedConversation(t *testing.T) {
	text, err := os.ReadFile("../../docs/optimize.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, named := range []string{"--algorithm bayesianoptimization --seed 1\n", "With `--stopper threshold`:\n"} {
		if !strings.Contains(string(text), named) {
			t.Errorf("the page does not say %q, which its answers come from", named)
		}
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
		if diff := cmp.Diff(decoded(t, want[i]), decoded(t, got[i]), threeDigits); diff != "" {
			t.Errorf("%s (-documented +real):\n%s", requests[i], diff)
		}
	}
}

// threeDigits lets numbers differ that other processors may compute otherwise.
var threeDigits = cmp.Comparer(func(a, b float64) bool {
	return math.Abs(a-b) <= 2e-3*max(math.Abs(a), math.Abs(b))
})

func decoded(t *testing.T, answer string) (v map[string]any) {
	t.Helper()
	if err := json.Unmarshal([]byte(answer), &v); err != nil {
		t.Fatalf("%s: %v", answer, err)
	}
	return v
}
