package main

import (
	"slices"
	"sync"
	"time"

	"github.com/vernier-ml/vernier/collector"
)

// lags collects how long points took.
type lags struct {
	mu  sync.Mutex
	all []time.Duration
}

func (l *lags) add(now time.Time, points []collector.Point) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range points {
		l.all = append(l.all, now.Sub(p.Time))
	}
}

// quantile is 0 when there are none.
func (l *lags) quantile(q float64) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.all) == 0 {
		return 0
	}
	slices.Sort(l.all)
	return l.all[int(q*float64(len(l.all)-1))].Round(time.Millisecond)
}
