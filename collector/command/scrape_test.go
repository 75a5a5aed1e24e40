package command

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/collector/contract"
)

// gauge is a trainer's endpoint with one metric.
type gauge struct {
	*httptest.Server
	mu     sync.Mutex
	value  int
	served int // times that value was served
}

func newGauge(t *testing.T) *gauge {
	t.Helper()
	g := &gauge{}
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		g.mu.Lock()
		defer g.mu.Unlock()
		if req.Header.Get("X-Token") != "a b" {
			t.Errorf("headers %v", req.Header)
		}
		g.served++
		fmt.Fprintf(w, "# TYPE loss gauge\nloss{split=\"test\"} %d\nloss{split=\"train\"} -1\nepoch %d\n", g.value, g.value)
	}))
	t.Cleanup(g.Close)
	return g
}

func (g *gauge) set(v int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.value, g.served = v, 0
}

func (g *gauge) times() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.served
}

// TestScrapeEndToEndAcrossKills kills the sidecar while it scrapes. Each value
// stands long enough to be scraped after the kill; each must be stored once.
func TestScrapeEndToEndAcrossKills(t *testing.T) {
	b, g := newBench(t), newGauge(t)
	b.env = []string{contract.EnvScrapeHeaders + "=X-Token: a b"}
	args := []string{"--kind=PrometheusMetric", "--url=" + g.URL + "/metrics", `--metric=loss{split="test"}`}
	s := b.run(args...)
	var expected []float64
	for v := range 12 {
		if v > 0 { // with 0 it looks like a gauge that is not set yet
			expected = append(expected, float64(v))
		}
		g.set(v)
		b.until("served", func() bool { return g.times() > 0 })
		if v%2 == 1 { // killed while what was served is on its way, or just after
			s.kill(b)
			g.set(v)
			s = b.run(args...)
		}
		// A source that asks again has kept what it was told before.
		b.until("served again", func() bool { return g.times() > 1 })
	}
	g.set(12)
	t.Logf("SIGTERM to exit: %v", s.term()) // reads a last time
	series := b.points()
	if len(series) != 1 {
		t.Fatalf("series %+v, sidecar: %s", series, s.said.String())
	}
	want(t, "losses", append(expected, 12), values(series[0].Points))
	for i, p := range series[0].Points {
		if p.Step != int64(i+1) || p.Metric != `loss{split="test"}` {
			t.Errorf("point %+v, want step %d", p, i+1)
		}
	}
	if states := b.attempts(); len(states) != 1 || !states[0].Final || states[0].Note != "" {
		t.Errorf("attempts %+v", states)
	}
}

func TestScrapeSaysWhatWasNotThere(t *testing.T) {
	b, g := newBench(t), newGauge(t)
	b.env = []string{contract.EnvScrapeHeaders + "=X-Token: a b"}
	s := b.run("--kind=PrometheusMetric", "--url="+g.URL, "--metric=los")
	b.until("served", func() bool { return g.times() > 0 })
	s.term()
	states := b.attempts()
	if len(states) != 1 || !states[0].Final || !strings.Contains(states[0].Note, "los was not found: did you mean loss?") {
		t.Errorf("attempts %+v", states)
	}
}

// The injector hands headers over by the environment: arguments are seen by
// everybody on the node.
func TestScrapeTakesHeadersFromTheEnvironment(t *testing.T) {
	b, g := newBench(t), newGauge(t) // which wants the header
	b.env = []string{contract.EnvScrapeHeaders + "=Accept-Language: en\nX-Token: a b\n"}
	s := b.run("--kind=PrometheusMetric", "--url="+g.URL, `--metric=loss{split="train"}`)
	b.until("served", func() bool { return g.times() > 0 })
	s.term()
	if series := b.points(); len(series) != 1 || len(series[0].Points) != 1 {
		t.Errorf("series %+v, sidecar: %s", series, s.said.String())
	}
}

func TestScrapeHeaders(t *testing.T) {
	tests := map[string]struct {
		lines string
		want  http.Header
		fault string
	}{
		"none":                        {want: http.Header{}},
		"one name twice":              {"X: 1\nX: 2\nY:", http.Header{"X": {"1", "2"}, "Y": {""}}, ""},
		"a Secret ends with its line": {"Authorization: Bearer a:b\r\n\n\nX: 1\n", http.Header{"Authorization": {"Bearer a:b"}, "X": {"1"}}, ""},
		"a line that is none":         {"X: 1\ns3cret", nil, "line 2 of VERNIER_SCRAPE_HEADERS is no header"},
		"a line without a name":       {": s3cret", nil, "line 1 of VERNIER_SCRAPE_HEADERS is no header"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := scrapeHeader(tc.lines)
			if tc.fault != "" {
				if err == nil || !strings.Contains(err.Error(), tc.fault) || strings.Contains(err.Error(), "s3cret") {
					t.Errorf("the fault is %v, want %s without the value", err, tc.fault)
				}
				return
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
				t.Errorf("%v (-want +got)\n%s", err, diff)
			}
		})
	}
}

func TestScrapeRefusesHeaders(t *testing.T) {
	b := newBench(t)
	b.env = []string{contract.EnvScrapeHeaders + "=X-Token"}
	s := b.start("--kind=PrometheusMetric", "--url=http://127.0.0.1:1/", "--metric=loss")
	if err := s.cmd.Wait(); err == nil || !strings.Contains(s.said.String(), `VERNIER_SCRAPE_HEADERS is no header; write it as`) {
		t.Errorf("ended with %v, said %s", err, s.said.String())
	}
}
