package probe_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/collector/probe"
)

func TestProbeOfAnEndpointWithLabels(t *testing.T) {
	const page = "loss{split=\"test\"} 3\nloss{split=\"train\"} 2\n"
	found := brief{Kind: "PrometheusMetric", Found: []string{"loss{split=\"test\"}: 1, 3 to 3, in [3, 3]"}, Seen: []string{"loss"}}
	tests := map[string]struct {
		takes  time.Duration // of each answer
		metric string
		want   brief
	}{
		"a series":                             {metric: `loss{split="test"}`, want: found},
		"a series of an endpoint that is slow": {takes: 2100 * time.Millisecond, metric: `loss{split="test"}`, want: found},
		"a series that is not there": {metric: `loss{split="val"}`, want: brief{Kind: "PrometheusMetric", Seen: []string{"loss"},
			Missing: []string{`loss{split="val"} lossloss is there, with other labels`}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				<-time.After(tc.takes)
				_, _ = io.WriteString(w, page) // the client may be gone
			}))
			defer server.Close()
			if d := cmp.Diff(tc.want, inShort(run(t, probe.Config{Path: server.URL}, tc.metric))); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
		})
	}
}
