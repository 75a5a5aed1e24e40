package report

import (
	"context"
	"math/rand/v2"
	"time"
)

// retry spaces tries.
type retry struct {
	drain <-chan struct{}
	pause time.Duration
}

// wait returns false when ctx ended. The first wait during which drain closes
// ends at once, and the pauses begin anew.
func (r *retry) wait(ctx context.Context) bool {
	r.pause = min(max(2*r.pause, minRetry), maxRetry)
	timer := time.NewTimer(r.pause/2 + rand.N(r.pause/2))
	defer timer.Stop()
	select {
	case <-r.drain:
		if r.drain != nil {
			r.drain, r.pause = nil, 0
		}
	case <-timer.C:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
