//go:build nxadm

package file

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nxadm/tail"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/source/sourcetest"
)

// TestForkAgainstWriters runs the writers against github.com/nxadm/tail. It is
// how it was decided not to use it; ARCHITECTURE.md has the result. Run it with
// -tags nxadm.
func TestForkAgainstWriters(t *testing.T) {
	for _, mode := range []struct {
		name string
		poll bool
	}{{"inotify", false}, {"polling", true}} {
		for name, write := range writers {
			t.Run(mode.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				path := filepath.Join(t.TempDir(), "metrics.log")
				tl, err := tail.TailFile(path, tail.Config{
					Follow: true, ReOpen: true, CompleteLines: true, Poll: mode.poll, Logger: tail.DiscardingLogger,
				})
				if err != nil {
					t.Fatal(err)
				}
				parser, rec := lossParser(t), sourcetest.NewRecord()
				done := make(chan struct{})
				go func() {
					defer close(done)
					for line := range tl.Lines {
						samples, _ := parser.Parse(nil, []byte(line.Text))
						for _, s := range samples {
							p := collector.Point{Metric: s.Metric, Value: s.Value, Step: s.Step, Seq: int64(s.Value)}
							rec.Add(t, p)
						}
					}
				}()
				w := &writer{t: t, path: path, seen: rec.Seen, patience: 4 * time.Second}
				write(w)
				// It has no notion of a drain: give it time, then stop at the end.
				tick := time.NewTicker(10 * time.Millisecond)
				for deadline := time.Now().Add(3 * time.Second); rec.Seen() < w.next && time.Now().Before(deadline); {
					<-tick.C
				}
				tick.Stop()
				if _, err := os.Stat(path); err == nil {
					go func() { _ = tl.StopAtEOF() }()
				}
				select {
				case <-done:
				case <-time.After(5 * time.Second):
					t.Error("it does not stop")
				}
				if got := rec.Seen(); got != w.next || rec.Again > 0 {
					t.Errorf("%d of %d values, %d of them twice", got, w.next, rec.Again)
				}
			})
		}
	}
}
