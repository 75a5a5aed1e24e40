package command

import (
	"bytes"
	"net/http"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/vernier-ml/vernier/collector/contract"
	"github.com/vernier-ml/vernier/collector/report"
)

// What is read again at the end, because the manager was away, says nothing of a
// trouble that there is not: its addresses are those of the reading before, and an
// endpoint that has gone answered before.
func TestASecondReadingSaysNothingThatIsNotTrue(t *testing.T) {
	for kind, begin := range map[string]func(t *testing.T, b *bench) (s *sidecar, end func()){
		"Push": func(t *testing.T, b *bench) (*sidecar, func()) {
			s := b.run(append(pushArgs(), "--grace=10m")...)
			must(t, persist(t.Context(), http.DefaultClient, b.pushEnv()[contract.EnvPushURL], `{"loss": 3}`, "one"))
			return s, func() {}
		},
		"PrometheusMetric": func(t *testing.T, b *bench) (*sidecar, func()) {
			g := newGauge(t)
			g.set(3)
			s := b.run("--kind=PrometheusMetric", `--metric=loss{split="test"}`, "--url="+g.URL, "--grace=10m")
			b.untilPoints(1)
			return s, func() {
				g.set(4)
				seen := g.times()
				b.until("scraped", func() bool { return g.times() > seen+2 })
				g.Close()
			}
		},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.env = []string{contract.EnvScrapeHeaders + "=X-Token: a b"}
			s, end := begin(t, b)
			b.untilPoints(1)
			b.away()
			end()
			must(t, s.cmd.Process.Signal(unix.SIGTERM))
			b.until("summarized", func() bool {
				message, err := os.ReadFile(b.log)
				_, unread := contract.ParseSummary(string(message))
				return err == nil && unread == nil
			})
			b.serve(strings.TrimPrefix(b.url, "http://"), [][]byte{bytes.Repeat([]byte("k"), report.MinKeySize)})
			if err := s.cmd.Wait(); err != nil {
				t.Errorf("the sidecar ended with %v: %s", err, s.said.String())
			}
			for _, a := range b.attempts() {
				if a.Note != "" || !a.Final {
					t.Errorf("attempt %+v", a)
				}
			}
		})
	}
}
