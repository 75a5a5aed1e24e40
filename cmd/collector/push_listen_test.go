package main

import (
	"net"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A collector that is started again is found where the last one was, also when a
// connection of somebody else has the port for a moment.
func TestThePortOfTheLastOneIsWaitedFor(t *testing.T) {
	tests := map[string]struct {
		free time.Duration // the port is taken for so long
		said string        // what is troubled about
	}{
		"it is had again": {keptPatience / 2, ""},
		"it is not":       {2 * keptPatience, "cannot be had again, and what programs push there is lost"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				other, err := net.Listen("tcp", "127.0.0.1:0")
				must(t, err)
				defer func() { _ = other.Close() }() // once more
				time.AfterFunc(tc.free, func() { _ = other.Close() })
				cfg, kept := runConfig{dir: t.TempDir(), pushAddress: "127.0.0.1:0"}, other.Addr().String()
				must(t, writeJSON(filepath.Join(cfg.dir, pushAddresses), addresses{Push: kept}))
				push, _, trouble := listenTCP(t.Context(), cfg)
				if len(push) != 1 {
					t.Fatalf("%d listeners, trouble %v", len(push), trouble)
				}
				defer shut(t, push[0])
				if same := push[0].Addr().String() == kept; same != (tc.said == "") {
					t.Errorf("it listens on %s, and the last one did on %s", push[0].Addr(), kept)
				}
				if (trouble == nil) != (tc.said == "") || trouble != nil && !strings.Contains(trouble.Error(), tc.said) {
					t.Errorf("trouble %v, want %q", trouble, tc.said)
				}
			})
		})
	}
}
