package main

import (
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/vernier-ml/vernier/collector/report"
)

// keepEvery is the least time between two summaries while attempts are going on:
// each is made of all that have ended, of which there may be a thousand.
const keepEvery = time.Second

// keeper writes the summary of the attempts that have ended: at once when all
// have, and else at most every keepEvery.
type keeper struct {
	put func(report.Summary) error
	log *slog.Logger

	mu      sync.Mutex
	endings endings
	last    time.Time // when a summary was last begun
	due     bool      // one will be written

	writing sync.Mutex
	written int // attempts that had ended in the summary that was written
}

// begin counts an attempt that goes on.
func (k *keeper) begin() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.endings.begun++
}

// keep takes in an attempt that has ended.
func (k *keeper) keep(e ending) error {
	if !k.add(e) {
		return nil
	}
	return k.write()
}

// add reports whether the summary is to be written now.
func (k *keeper) add(e ending) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.endings.add(e)
	now := time.Now()
	wait := k.last.Add(keepEvery).Sub(now)
	if k.endings.ended == k.endings.begun || wait <= 0 {
		k.last = now
		return true
	}
	if !k.due {
		k.due = true
		time.AfterFunc(wait, k.catchUp)
	}
	return false
}

// catchUp writes the summary that is due, unless a later one was written.
func (k *keeper) catchUp() {
	k.mu.Lock()
	k.due, k.last = false, time.Now()
	k.mu.Unlock()
	if err := k.write(); err != nil {
		k.log.Error("the summary was not written", "error", err)
	}
}

func (k *keeper) write() error {
	k.writing.Lock()
	defer k.writing.Unlock()
	k.mu.Lock()
	all := k.endings
	all.later = slices.Clone(all.later)
	k.mu.Unlock()
	if all.ended == k.written {
		return nil
	}
	if err := k.put(all.whole()); err != nil {
		return err
	}
	k.written = all.ended
	return nil
}
