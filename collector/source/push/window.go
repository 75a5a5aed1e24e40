package push

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strconv"
)

// digest identifies a request or a point among those of one trial.
type digest [16]byte

var digestEncoding = base64.RawURLEncoding

// digestOf hashes words; their borders count.
func digestOf(words ...string) (d digest) {
	var text []byte
	for _, w := range words {
		text = append(append(strconv.AppendInt(text, int64(len(w)), 10), ':'), w...)
	}
	sum := sha256.Sum256(text)
	copy(d[:], sum[:])
	return d
}

// MarshalText implements encoding.TextMarshaler.
func (d digest) MarshalText() ([]byte, error) {
	return digestEncoding.AppendEncode(nil, d[:]), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *digest) UnmarshalText(text []byte) error {
	b, err := digestEncoding.DecodeString(string(text))
	if err != nil || len(b) != len(d) {
		return fmt.Errorf("%q is no digest", text)
	}
	copy(d[:], b)
	return nil
}

// identity is what makes two points of MLflow the same, there as here.
func identity(run string, p entryPoint) digest {
	return digestOf(run, p.Metric, p.Value, strconv.FormatInt(p.Step, 10), strconv.FormatInt(p.Time, 10))
}

// windowSize is how many requests and points are remembered, so that one that is
// sent again is known. Senders try again for minutes at most.
const windowSize = 1 << 14

// window remembers the newest digests.
type window struct {
	seen map[digest]struct{}
	ring []digest
	next int
}

func newWindow() *window { return &window{seen: map[digest]struct{}{}} }

func (w *window) has(d digest) bool {
	_, ok := w.seen[d]
	return ok
}

func (w *window) add(d digest) {
	if w.has(d) {
		return
	}
	w.seen[d] = struct{}{}
	if len(w.ring) < windowSize {
		w.ring = append(w.ring, d)
		return
	}
	delete(w.seen, w.ring[w.next])
	w.ring[w.next] = d
	w.next = (w.next + 1) % windowSize
}
