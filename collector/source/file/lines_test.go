package file

import (
	"bytes"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/parse"
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
			l := newLines(lossParser(t), "x", time.Now, func(p collector.Point, err error) bool {
				if err != nil {
					errs++
				} else {
					points = append(points, p)
				}
				return true
			})
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
		l := newLines(lossParser(t), "x", time.Now, func(p collector.Point, err error) bool {
			if err != nil || !strings.HasPrefix(text[p.Seq:], "loss") {
				t.Errorf("cut at %d: Seq %d, error %v", cut, p.Seq, err)
			}
			got = append(got, p.Value)
			return true
		})
		l.feed(0, []byte(text[:cut]))
		l.feed(int64(cut), []byte(text[cut:]))
		l.flush()
		if len(got) != 5 || got[0] != 1 || got[4] != 5 {
			t.Errorf("cut at %d: %v", cut, got)
		}
	}
}

// Passing over many lines at once finds the same points, wherever the bytes are
// cut.
func TestSkippingChangesNoPoint(t *testing.T) {
	type plain struct{ parse.Line } // without Skip
	pieces := []string{"loss=1", "loss=0.25 step=3", "loss=1,5", "Epoch 3/10", "\x1b[1mepoch 4", "\x00", "\n", "\n", "\n", "\r", "\r\n", "chatter", "x=1"}
	random := rand.New(rand.NewPCG(3, 5))
	read := func(parser parse.Line, text string, cuts []int) (points []collector.Point, errs int) {
		l := newLines(parser, "x", func() time.Time { return time.Unix(9, 0) }, func(p collector.Point, err error) bool {
			if err != nil {
				errs++
				return true
			}
			points = append(points, p)
			return true
		})
		at := 0
		for _, cut := range append(cuts, len(text)) {
			l.feed(int64(at), []byte(text[at:cut]))
			at = cut
		}
		l.flush()
		return points, errs
	}
	for range 5000 {
		var text strings.Builder
		for range 1 + random.IntN(30) {
			text.WriteString(pieces[random.IntN(len(pieces))])
		}
		first := random.IntN(text.Len() + 1)
		cuts := []int{first, first + random.IntN(text.Len()-first+1)}
		want, wantErrs := read(plain{lossParser(t)}, text.String(), cuts)
		got, gotErrs := read(lossParser(t), text.String(), cuts)
		if diff := cmp.Diff(want, got); diff != "" || wantErrs != gotErrs {
			t.Fatalf("%q cut at %d: %d errors without Skip, %d with; points (-without +with):\n%s", text.String(), cuts, wantErrs, gotErrs, diff)
		}
	}
}

// What one line of very many values needed is not kept for the next.
func TestALineOfManyValuesLeavesNoRoomBehind(t *testing.T) {
	n := 0
	l := newLines(lossParser(t), "x", time.Now, func(_ collector.Point, err error) bool {
		if err != nil {
			t.Error(err)
		}
		n++
		return true
	})
	for _, values := range []int{10 * maxKeptSamples, 3} {
		n = 0
		l.feed(0, []byte(strings.Repeat("loss=1 ", values)+"\n"))
		if n != values || cap(l.samples) > maxKeptSamples {
			t.Errorf("%d points of %d, room for %d samples is kept", n, values, cap(l.samples))
		}
	}
}
