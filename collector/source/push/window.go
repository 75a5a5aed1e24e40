package push

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"

	"github.com/vernier-ml/vernier/collector"
)

// digestOf identifies a request or a point among those of one trial: a hash of
// words, whose borders count.
func digestOf(words ...string) string {
	h := sha256.New()
	for _, w := range words {
		fmt.Fprintf(h, "%d:%s", len(w), w) // never fails
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// identity is what makes two points of MLflow the same, there as here.
func identity(run string, p collector.Record) string {
	return digestOf(run, p.Metric, p.Value, strconv.FormatInt(p.Step, 10), strconv.FormatInt(p.Time, 10))
}

// windowSize is how many requests and points are remembered at least, so that one
// that is sent again is known. Senders try again for minutes at most.
const windowSize = 1 << 14

// window remembers the newest digests.
type window struct{ newest, older map[string]bool }

func newWindow() *window { return &window{newest: map[string]bool{}} }

func (w *window) has(d string) bool { return w.newest[d] || w.older[d] }

func (w *window) add(d string) {
	if len(w.newest) == windowSize {
		w.older, w.newest = w.newest, map[string]bool{}
	}
	w.newest[d] = true
}
