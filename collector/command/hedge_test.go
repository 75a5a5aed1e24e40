package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/vernier-ml/vernier/collector/contract"
	"github.com/vernier-ml/vernier/collector/report"
)

// A node that goes down may kill the sidecar long before its grace is over, while the
// manager is away: the result is in the termination message by then. If the manager
// comes back in time instead, the whole curve is stored.
func TestAResultIsNotLostWithTheManagerAndTheGrace(t *testing.T) {
	for kind, measure := range map[string]func(b *bench, file string){
		"StdOut": func(b *bench, _ string) { b.say("step=1 loss=3", "step=2 loss=0.5", "step=3 loss=2") },
		"File": func(b *bench, file string) {
			must(b.t, os.WriteFile(file, []byte("step=1 loss=3\nstep=2 loss=0.5\nstep=3 loss=2\n"), 0o644))
		},
		"Push": func(b *bench, _ string) { b.push(3); b.push(0.5); b.push(2) },
	} {
		for name, back := range map[string]bool{"it is killed": false, "the manager comes back": true} {
			t.Run(kind+", "+name, func(t *testing.T) {
				t.Parallel()
				b := newBench(t)
				file := filepath.Join(b.dir, "metrics.log")
				args := []string{"--kind=" + kind, "--metric=loss", "--grace=10m"}
				if kind == "File" {
					args = append(args, "--path="+file)
				}
				s := b.run(args...)
				b.away()
				measure(b, file)
				must(t, s.cmd.Process.Signal(unix.SIGTERM))
				b.until("summarized", func() bool {
					message, err := os.ReadFile(b.log)
					_, unread := contract.ParseSummary(string(message))
					return err == nil && unread == nil
				})
				if !back {
					s.kill(b)
					m := b.wantSummary("loss", 3).Metrics[0]
					if m.Min.Text != "0.5" || m.Max.Text != "3" || m.Last.Text != "2" {
						t.Errorf("summary %+v", m)
					}
					return
				}
				b.serve(strings.TrimPrefix(b.url, "http://"), [][]byte{[]byte(strings.Repeat("k", report.MinKeySize))})
				if err := s.cmd.Wait(); err != nil {
					t.Errorf("the sidecar ended with %v: %s", err, s.said.String())
				}
				want(t, "losses", []float64{3, 0.5, 2}, values(b.points("loss")[0].Points))
				if a := b.attempts(); len(a) != 1 || !a[0].Final || !b.wantSummary("loss", 3).Final {
					t.Errorf("attempts %+v", a)
				}
			})
		}
	}
}
