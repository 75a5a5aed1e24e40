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

// MissingAfter is how long a program has written before it is said that a metric was not
// found yet.
const MissingAfter = 2 * time.Minute

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
