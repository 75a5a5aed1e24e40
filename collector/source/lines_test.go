package source

import (
	"bytes"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/vernier-ml/vernier/collector"
)

// A line of a gigabyte, and a hole of one, take no more memory than short lines,
// and what follows is read.
func TestGiantLinesTakeLittleMemory(t *testing.T) {
	const size = 1 << 30
	for name, fill := range map[string]byte{"letters": 'x', "signs": '=', "zeros": 0, "spaces": ' '} {
		t.Run(name, func(t *testing.T) {
			chunk := bytes.Repeat([]byte{fill}, readSize)
			var points []collector.Point
			errs := 0
			l := lines{parser: lossParser(t), source: "x", now: time.Now, yield: func(p collector.Point, err error) bool {
				if err != nil {
					errs++
				} else {
					points = append(points, p)
				}
				return true
			}}
			l.begin()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			at := int64(0)
			for ; at < size; at += readSize {
				l.feed(at, chunk)
			}
			runtime.ReadMemStats(&after)
			l.feed(at, []byte("\nloss=1\n"))
			if grown := after.TotalAlloc - before.TotalAlloc; grown > 8<<20 {
				t.Errorf("%d bytes were allocated", grown)
			}
			if len(points) != 1 || points[0].Value != 1 || points[0].Seq != size+1 {
				t.Errorf("points %+v", points)
			}
			if want := min(int(fill), 1); errs != want {
				t.Errorf("%d errors, want %d", errs, want)
			}
		})
	}
}

// Each state of a progress bar is a line, wherever the bytes are cut.
func TestLinesEndWithEitherByte(t *testing.T) {
	text := "\rloss=1\r\nloss=2\n\n\rloss=3 \r\r loss=4\rloss=5"
	for cut := range len(text) + 1 {
		var got []float64
		l := lines{parser: lossParser(t), source: "x", now: time.Now, yield: func(p collector.Point, err error) bool {
			if err != nil || !strings.HasPrefix(text[p.Seq:], "loss") {
				t.Errorf("cut at %d: Seq %d, error %v", cut, p.Seq, err)
			}
			got = append(got, p.Value)
			return true
		}}
		l.begin()
		l.feed(0, []byte(text[:cut]))
		l.feed(int64(cut), []byte(text[cut:]))
		l.flush()
		if len(got) != 5 || got[0] != 1 || got[4] != 5 {
			t.Errorf("cut at %d: %v", cut, got)
		}
	}
}

// What one line of very many values needed is not kept for the next.
func TestALineOfManyValuesLeavesNoRoomBehind(t *testing.T) {
	n := 0
	l := lines{parser: lossParser(t), source: "x", now: time.Now, yield: func(_ collector.Point, err error) bool {
		if err != nil {
			t.Error(err)
		}
		n++
		return true
	}}
	l.begin()
	for _, values := range []int{10 * maxKeptSamples, 3} {
		n = 0
		l.feed(0, []byte(strings.Repeat("loss=1 ", values)+"\n"))
		if n != values || cap(l.samples) > maxKeptSamples {
			t.Errorf("%d points of %d, room for %d samples is kept", n, values, cap(l.samples))
		}
	}
}
