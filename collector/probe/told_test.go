package probe

import (
	"os"
	"os/exec"
	"testing"
	"testing/synctest"
	"time"
)

// What is waited for after the program's end depends on how it has ended.
func TestToldInTime(t *testing.T) {
	const never = time.Hour
	tests := map[string]struct {
		script string
		after  time.Duration // the signal is handed on so late
		want   bool
		took   time.Duration
	}{
		"it deals with it and fails":     {"exit 1", 200 * time.Millisecond, true, 200 * time.Millisecond},
		"it fails, and nobody was told":  {"exit 1", never, false, toldPatience},
		"it ends by the signal":          {"kill -INT $$", 4 * time.Second, true, 4 * time.Second},
		"by the other one":               {"kill -TERM $$", 4 * time.Second, true, 4 * time.Second},
		"as a shell whose program did":   {"exit 130", 4 * time.Second, true, 4 * time.Second},
		"it was killed, nobody was told": {"kill -INT $$", never, false, signalledPatience},
		"it was killed by force":         {"kill -KILL $$", never, false, toldPatience},
		"it ends well":                   {"exit 0", never, false, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			ended := exec.CommandContext(t.Context(), "sh", "-c", tc.script).Run()
			synctest.Test(t, func(t *testing.T) {
				signals, begin := make(chan os.Signal, 1), time.Now()
				time.AfterFunc(tc.after, func() { signals <- os.Interrupt })
				c := &Command{Interrupts: signals, err: ended}
				if got, took := c.told(), time.Since(begin); got != tc.want || took != tc.took {
					t.Errorf("told %v after %s, want %v after %s", got, took, tc.want, tc.took)
				}
			})
		})
	}
}
