package main

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestASidecarIsWaitedFor(t *testing.T) {
	const never = time.Hour
	tests := map[string]struct {
		up   time.Duration // the sidecar comes up after
		wait time.Duration
		want bool
		took time.Duration
	}{
		"it is up":                    {0, lateWait, true, 0},
		"it comes late":               {lateWait - readyPoll, lateWait, true, lateWait - readyPoll},
		"it does not come":            {never, lateWait, false, lateWait + readyPoll},
		"a startup probe ends sooner": {lateWait, readyWait, false, readyWait + readyPoll},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir, begin := t.TempDir(), time.Now()
				if tc.up == 0 {
					must(t, sayReady(dir))
				} else {
					defer time.AfterFunc(tc.up-1, func() { _ = sayReady(dir) }).Stop() // just before it is looked for
				}
				if got, took := awaitReady(dir, tc.wait), time.Since(begin); got != tc.want || took != tc.took {
					t.Errorf("ready %v after %s, want %v after %s", got, took, tc.want, tc.took)
				}
			})
		})
	}
}
