// Package sourcetest is what the tests of sources share.
package sourcetest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/source"
	"github.com/vernier-ml/vernier/collector/tensorboard"
)

// Quick is a clock on which every pause lasts a millisecond.
func Quick() source.Clock {
	return source.Clock{After: func(time.Duration) <-chan time.Time { return time.After(time.Millisecond) }}
}

// Patience bounds how long a test waits for something that must come.
const Patience = 20 * time.Second

// Comes waits until a condition holds, and returns false when it does not in a
// while.
func Comes(wait time.Duration, holds func() bool) bool {
	for end := time.Now().Add(wait); !holds(); time.Sleep(time.Millisecond) { //nolint:forbidigo // the poll of a wait for something
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// Closed returns a closed channel.
func Closed() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// Shut closes c.
func Shut(t testing.TB, c io.Closer) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// ID is the identity of a point.
type ID struct {
	Source string
	Seq    int64
}

// Record is what readers of one origin have seen together.
type Record struct {
	Mu     sync.Mutex
	Points map[ID]collector.Point
	Values map[float64]bool
	Errs   []string
	Again  int // points that came with an identity already seen
}

// NewRecord returns an empty record.
func NewRecord() *Record {
	return &Record{Points: map[ID]collector.Point{}, Values: map[float64]bool{}}
}

// Seen is the number of different values.
func (r *Record) Seen() int {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	return len(r.Values)
}

// Add takes a point; it fails the test if its identity means another point.
func (r *Record) Add(t testing.TB, p collector.Point) {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	key := ID{p.Source, p.Seq}
	if old, ok := r.Points[key]; ok {
		r.Again++
		if old.Value != p.Value || old.Metric != p.Metric {
			t.Errorf("%v is both %s=%v and %s=%v", key, old.Metric, old.Value, p.Metric, p.Value)
		}
	}
	r.Points[key] = p
	r.Values[p.Value] = true
}

func (r *Record) fail(err error) {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	r.Errs = append(r.Errs, err.Error())
}

// Follow reads src to its end, or until limit points were seen.
func (r *Record) Follow(ctx context.Context, t testing.TB, src collector.Source, limit int) (ended bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	last := map[string]int64{}
	n := 0
	for p, err := range src.Points(ctx) {
		if err != nil {
			if !errors.Is(err, context.Canceled) {
				r.fail(err)
			}
			continue
		}
		if before, ok := last[p.Source]; ok && p.Seq <= before {
			t.Errorf("%s: Seq %d comes after %d", p.Source, p.Seq, before)
		}
		last[p.Source] = p.Seq
		r.Add(t, p)
		if n++; n == limit {
			return false
		}
	}
	return true
}

// WantAll checks that the values 0.5, 1.5, ... were read, each under one
// identity.
func (r *Record) WantAll(t testing.TB, n int) {
	t.Helper()
	for i := range n {
		if !r.Values[float64(i)+0.5] {
			t.Errorf("the value %d.5 is missing", i)
		}
	}
	if len(r.Values) != n || len(r.Points) != n {
		t.Errorf("got %d values under %d identities, want %d", len(r.Values), len(r.Points), n)
	}
	for key, p := range r.Points {
		if float64(p.Step)+0.5 != p.Value {
			t.Errorf("%v: step %d with value %v", key, p.Step, p.Value)
		}
	}
}

// Collected reads a source to its end.
func Collected(t testing.TB, src collector.Source) (points []collector.Point, errs []string) {
	t.Helper()
	for p, err := range src.Points(t.Context()) {
		if err != nil {
			errs = append(errs, err.Error())
			continue
		}
		points = append(points, p)
	}
	return points, errs
}

// Late writes a file as a network file system may show it: with its whole size, but
// zeros from a place on. At the third pause of the clock the data is there, and at the
// sixth drain is closed.
func Late(t testing.TB, path string, whole []byte, shown int) (clock source.Clock, drain <-chan struct{}) {
	t.Helper()
	write := func(b []byte) {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer Shut(t, f)
		if _, err := f.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	write(append(slices.Clone(whole[:shown]), make([]byte, len(whole)-shown)...))
	end, pauses := make(chan struct{}), 0
	quick := Quick()
	return source.Clock{After: func(d time.Duration) <-chan time.Time {
		switch pauses++; pauses {
		case 3:
			write(whole)
		case 6:
			close(end)
		}
		return quick.After(d)
	}}, end
}

// Values reads a source to its end, and fails the test where it says an error.
func Values(t testing.TB, src collector.Source) (values []float64) {
	t.Helper()
	points, errs := Collected(t, src)
	for _, err := range errs {
		t.Error(err)
	}
	for _, p := range points {
		values = append(values, p.Value)
	}
	return values
}

// Append appends to a file, which it makes with its folders.
func Append(t testing.TB, path string, b []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.Write(b)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Put writes a file anew, and makes its folders.
func Put(t testing.TB, dir, path string, b []byte) {
	t.Helper()
	path = filepath.Join(dir, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

// Event returns the record of an event of TensorBoard with one value; an empty tag
// makes the first record of a file.
func Event(wall float64, step int64, tag string, v float64) []byte {
	data := protowire.AppendFixed64(protowire.AppendTag(nil, 1, protowire.Fixed64Type), math.Float64bits(wall))
	if tag == "" {
		return tensorboard.Record(protowire.AppendString(protowire.AppendTag(data, 3, protowire.BytesType), "brain.Event:2"))
	}
	value := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), tag)
	value = protowire.AppendFixed32(protowire.AppendTag(value, 2, protowire.Fixed32Type), math.Float32bits(float32(v)))
	data = protowire.AppendVarint(protowire.AppendTag(data, 2, protowire.VarintType), uint64(step))
	summary := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), value)
	return tensorboard.Record(protowire.AppendBytes(protowire.AppendTag(data, 5, protowire.BytesType), summary))
}

// EventFile returns an event file with values such as "loss=1", at steps 0, 1, ...
func EventFile(wall float64, values ...string) []byte {
	b := Event(wall, 0, "", 0)
	for i, s := range values {
		tag, v, _ := strings.Cut(s, "=")
		var f float64
		if _, err := fmt.Sscan(v, &f); err != nil {
			panic(err)
		}
		b = append(b, Event(wall+float64(i), int64(i), tag, f)...)
	}
	return b
}

// WandbHeader begins each of W&B's files.
const WandbHeader = ":W&B\xe1\xbe\x00"

// WandbLog is one call of run.log as W&B writes it, where it fits into a block.
func WandbLog(step int, metric string, value float64) []byte {
	item := protowire.AppendString(protowire.AppendTag(nil, 2, protowire.BytesType), metric)
	item = protowire.AppendString(protowire.AppendTag(item, 16, protowire.BytesType), fmt.Sprint(value))
	number := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), uint64(step))
	history := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), item)
	history = protowire.AppendBytes(protowire.AppendTag(history, 2, protowire.BytesType), number)
	data := append([]byte{1}, protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), history)...)
	b := binary.LittleEndian.AppendUint32(nil, crc32.ChecksumIEEE(data))
	return append(binary.LittleEndian.AppendUint16(b, uint16(len(data)-1)), data...)
}
