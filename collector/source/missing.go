package source

import (
	"fmt"
	"slices"
	"time"

	"github.com/vernier-ml/vernier/collector"
)

// MaxNames bounds the names that a source remembers, for what to offer in place of
// one that was not found.
const MaxNames = 500

// MissingError says which metrics were asked for and never found, and what there
// is instead. A source yields one at its end at most, and before that others, each in
// place of the one before, with Yet.
type MissingError struct {
	// Yet: they may still come.
	Yet bool
	// Metrics are those that were not found.
	Metrics []string
	// Text is the whole message, one sentence or more.
	Text string
}

// Error implements error.
func (e *MissingError) Error() string { return e.Text }

// Missing returns the metrics that were not found.
func (e *MissingError) Missing() []string { return e.Metrics }

// NotYet says whether the metrics may still come.
func (e *MissingError) NotYet() bool { return e.Yet }

// missingAfter is how long there were values before it is said that a metric was not found
// yet.
const missingAfter = 2 * time.Minute

// Wait says when metrics that were not found yet are told.
type Wait struct {
	began time.Time
	told  int
}

// Due is told how many metrics are missing while there are values. It says whether to tell
// them now: after a while, and again when fewer are missing.
func (w *Wait) Due(now time.Time, missing int) bool {
	if w.began.IsZero() {
		w.began = now
	}
	if missing == w.told || now.Sub(w.began) < missingAfter {
		return false
	}
	w.told = missing
	return missing > 0
}

// NotFound returns the metrics that were asked for and not found, each once.
func NotFound(asked []string, found func(metric string) bool) (missing []string) {
	for _, m := range asked {
		if !found(m) && !slices.Contains(missing, m) {
			missing = append(missing, m)
		}
	}
	return missing
}

// maxTroubles bounds the errors that one source yields.
const maxTroubles = 1000

// Troubles are the errors that a source has yielded.
type Troubles struct {
	// Prefix begins each of them.
	Prefix string
	// Yield takes them.
	Yield Yield
	told  map[string]bool
}

// Tell yields an error that was not yielded before.
func (t *Troubles) Tell(err error) (ok bool) {
	text := err.Error()
	if t.told[text] || len(t.told) >= maxTroubles {
		return true
	}
	if t.told == nil {
		t.told = map[string]bool{}
	}
	t.told[text] = true
	return t.Yield(collector.Point{}, fmt.Errorf("%s: %w", t.Prefix, err))
}
