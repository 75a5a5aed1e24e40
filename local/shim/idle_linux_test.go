package shim

import (
	"testing"
	"time"
)

// What runs may change while it is counted: an answer from before the lock could
// let a shim live for ever, or end it with a container that has just started.
func TestWhatRunsIsAskedUnderTheLock(t *testing.T) {
	asked, stopped := 0, 0
	i := &idle{after: time.Hour, stop: func() { stopped++ }}
	i.quiet = func() bool {
		asked++
		if i.mu.TryLock() {
			i.mu.Unlock()
			t.Error("it is asked without the lock")
		}
		return true
	}
	i.client(1)
	i.client(-1)
	i.timer.Stop()
	i.expire()
	if asked != 2 || stopped != 1 {
		t.Errorf("asked %d times and stopped %d times, want 2 and 1", asked, stopped)
	}
}
