package command

import (
	"context"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A collector that is started again is found where the last one was, also when
// another connection has the port for a moment.
func TestThePortOfTheLastOneIsWaitedFor(t *testing.T) {
	const never, lost = time.Hour, "cannot be had again, and what programs push there is lost"
	tests := map[string]struct {
		free  time.Duration // the port is taken for so long
		drain time.Duration // until the program has ended
		took  time.Duration
		said  string // what is troubled about
	}{
		"it is had again":       {keptPatience/2 - 1, never, keptPatience / 2, ""},
		"it is not":             {never, never, keptPatience, lost},
		"the program has ended": {never, time.Second, time.Second, lost},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var last []string // where the last one listened
				for range 2 {
					other, err := net.Listen("tcp", "127.0.0.1:0")
					must(t, err)
					defer func() { _ = other.Close() }() // once more
					defer time.AfterFunc(tc.free, func() { _ = other.Close() }).Stop()
					last = append(last, other.Addr().String())
				}
				cfg := runConfig{dir: t.TempDir(), pushAddress: "127.0.0.1:0", katibAddress: "127.0.0.1:0"}
				must(t, writeJSON(filepath.Join(cfg.dir, pushAddresses), addresses{Push: last[0], Katib: last[1]}))
				over, end := context.WithCancel(t.Context())
				begin := time.Now()
				defer time.AfterFunc(tc.drain, end).Stop()
				push, katib, trouble := listenTCP(t.Context(), over, cfg)
				took := time.Since(begin)
				var got []string
				for _, l := range []net.Listener{push, katib} {
					if l == nil {
						continue
					}
					got = append(got, l.Addr().String())
					defer shut(t, l)
				}
				if len(got) != 2 || slices.Equal(got, last) != (tc.said == "") {
					t.Errorf("it listens on %s, and the last one did on %s", got, last)
				}
				if took != tc.took {
					t.Errorf("it took %s, want %s for both", took, tc.took)
				}
				if (trouble == nil) != (tc.said == "") || trouble != nil && !strings.Contains(trouble.Error(), tc.said) {
					t.Errorf("trouble %v, want %q", trouble, tc.said)
				}
			})
		})
	}
}
