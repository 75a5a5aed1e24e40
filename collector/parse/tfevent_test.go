package parse

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// What follows writes event files, apart from the code under test.

func varint(n uint64, v uint64) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(nil, n<<3), v)
}

func fixed64(n uint64, v uint64) []byte {
	return binary.LittleEndian.AppendUint64(binary.AppendUvarint(nil, n<<3|1), v)
}

func fixed32(n uint64, v uint32) []byte {
	return binary.LittleEndian.AppendUint32(binary.AppendUvarint(nil, n<<3|5), v)
}

func submessage(n uint64, parts ...[]byte) []byte {
	body := bytes.Join(parts, nil)
	return append(binary.AppendUvarint(binary.AppendUvarint(nil, n<<3|2), uint64(len(body))), body...)
}

func testCRC(b []byte) uint32 {
	c := crc32.Checksum(b, crc32.MakeTable(0x82f63b78))
	return (c>>15 | c<<17) + 0xa282ead8
}

// crcOf goes on with a checksum.
func crcOf(crc uint32, b []byte) uint32 { return crc32.Update(crc, crc32.MakeTable(0x82f63b78), b) }

func framed(parts ...[]byte) []byte {
	data := bytes.Join(parts, nil)
	out := binary.LittleEndian.AppendUint64(nil, uint64(len(data)))
	out = binary.LittleEndian.AppendUint32(out, testCRC(out))
	out = append(out, data...)
	return binary.LittleEndian.AppendUint32(out, testCRC(data))
}

func eventAt(step uint64, values ...[]byte) []byte {
	return framed(fixed64(1, math.Float64bits(1600000000.25+float64(step))), varint(2, step), submessage(5, values...))
}

func version() []byte {
	return framed(fixed64(1, math.Float64bits(1600000000)), submessage(3, []byte("brain.Event:2")))
}

func simple(tag string, v float32) []byte {
	return submessage(1, submessage(1, []byte(tag)), fixed32(2, math.Float32bits(v)))
}

func tensorValue(tag string, parts ...[]byte) []byte {
	plugin := submessage(9, submessage(1, submessage(1, []byte("scalars"))))
	return submessage(1, submessage(1, []byte(tag)), plugin, submessage(8, parts...))
}

// readEvents reads a file to its end, going on after records that are passed
// over.
func readEvents(b []byte, tags ...string) (out []Scalar, errs []error) {
	return readWith(NewEvents(), b, tags...)
}

func readWith(e *Events, b []byte, tags ...string) (out []Scalar, errs []error) {
	for offset := int64(0); ; {
		var err error
		before := offset
		offset, err = e.Read(bytes.NewReader(b), offset, NewWanted(tags, nil), func(s Scalar) bool {
			out = append(out, s)
			return true
		})
		if err != nil {
			errs = append(errs, err)
		}
		if offset == before || err != nil && !errors.Is(err, ErrRecord) || errors.Is(err, ErrBroken) {
			return out, errs
		}
	}
}

func TestEventsValues(t *testing.T) {
	le := binary.LittleEndian
	dtype := func(v uint64) []byte { return varint(1, v) }
	content := func(b []byte) []byte { return submessage(4, b) }
	negative := func(v int64) uint64 { return uint64(v) }
	tests := map[string]struct {
		value []byte
		want  []float64
	}{
		"simple_value":                         {simple("t", 0.1), []float64{0.1}},
		"simple_value NaN":                     {simple("t", float32(math.NaN())), []float64{math.NaN()}},
		"simple_value -Inf":                    {simple("t", float32(math.Inf(-1))), []float64{math.Inf(-1)}},
		"float content":                        {tensorValue("t", dtype(1), content(le.AppendUint32(nil, math.Float32bits(0.99)))), []float64{0.99}},
		"float in its field":                   {tensorValue("t", dtype(1), submessage(2), fixed32(5, math.Float32bits(0.25))), []float64{0.25}},
		"float in its field, packed":           {tensorValue("t", dtype(1), submessage(5, le.AppendUint32(nil, math.Float32bits(0.25)))), []float64{0.25}},
		"double content":                       {tensorValue("t", dtype(2), content(le.AppendUint64(nil, math.Float64bits(1.0/3)))), []float64{1.0 / 3}},
		"double in its field":                  {tensorValue("t", dtype(2), fixed64(6, math.Float64bits(1.0/3))), []float64{1.0 / 3}},
		"double in its field, packed":          {tensorValue("t", dtype(2), submessage(6, le.AppendUint64(nil, math.Float64bits(1.0/3)))), []float64{1.0 / 3}},
		"int32":                                {tensorValue("t", dtype(3), varint(7, negative(-5))), []float64{-5}},
		"int32 packed":                         {tensorValue("t", dtype(3), submessage(7, binary.AppendUvarint(nil, negative(-5)))), []float64{-5}},
		"int32 content":                        {tensorValue("t", dtype(3), content(le.AppendUint32(nil, uint32(0xfffffffb)))), []float64{-5}},
		"uint8 content":                        {tensorValue("t", dtype(4), content([]byte{200})), []float64{200}},
		"int16 content":                        {tensorValue("t", dtype(5), content([]byte{0xfe, 0xff})), []float64{-2}},
		"int8 content":                         {tensorValue("t", dtype(6), content([]byte{0xff})), []float64{-1}},
		"int64":                                {tensorValue("t", dtype(9), varint(10, 1<<40)), []float64{1 << 40}},
		"bfloat16":                             {tensorValue("t", dtype(14), varint(13, 0x3f80)), []float64{1}},
		"bfloat16 content":                     {tensorValue("t", dtype(14), content([]byte{0x20, 0xc0})), []float64{-2.5}},
		"half":                                 {tensorValue("t", dtype(19), varint(13, 0x3555)), []float64{0.333251953125}},
		"half content":                         {tensorValue("t", dtype(19), content([]byte{0x00, 0xc1})), []float64{-2.5}},
		"half infinity":                        {tensorValue("t", dtype(19), varint(13, 0xfc00)), []float64{math.Inf(-1)}},
		"half NaN":                             {tensorValue("t", dtype(19), varint(13, 0x7e00)), []float64{math.NaN()}},
		"half subnormal":                       {tensorValue("t", dtype(19), varint(13, 1)), []float64{math.Ldexp(1, -24)}},
		"uint16 content":                       {tensorValue("t", dtype(17), content([]byte{0xff, 0xff})), []float64{65535}},
		"uint32":                               {tensorValue("t", dtype(22), varint(16, 1<<32-1)), []float64{1<<32 - 1}},
		"uint64":                               {tensorValue("t", dtype(23), varint(17, 1<<50)), []float64{1 << 50}},
		"true":                                 {tensorValue("t", dtype(10), varint(11, 1)), []float64{1}},
		"false":                                {tensorValue("t", dtype(10), varint(11, 0)), []float64{0}},
		"true content":                         {tensorValue("t", dtype(10), content([]byte{1})), []float64{1}},
		"int64 content":                        {tensorValue("t", dtype(9), content(le.AppendUint64(nil, negative(-7)))), []float64{-7}},
		"uint64 content":                       {tensorValue("t", dtype(23), content(le.AppendUint64(nil, 1<<63))), []float64{1 << 63}},
		"uint32 content":                       {tensorValue("t", dtype(22), content(le.AppendUint32(nil, 1<<31))), []float64{1 << 31}},
		"a float after an unused field":        {tensorValue("t", varint(3, 7), dtype(1), fixed32(5, math.Float32bits(0.25))), []float64{0.25}},
		"a tensor of unknown rank":             {tensorValue("t", dtype(1), submessage(2, varint(3, 1)), fixed32(5, 0)), nil},
		"a complex number":                     {tensorValue("t", dtype(8), content(make([]byte, 8))), nil},
		"a value that a later image replaces":  {submessage(1, submessage(1, []byte("t")), fixed32(2, 0), submessage(4, []byte{})), nil},
		"zero is left out":                     {tensorValue("t", dtype(1), submessage(2)), []float64{0}},
		"a tensor with a dimension":            {tensorValue("t", dtype(1), submessage(2, submessage(2, varint(1, 1))), fixed32(5, 0)), nil},
		"a tensor of strings":                  {tensorValue("t", dtype(7), submessage(8, []byte("x"))), nil},
		"two floats":                           {tensorValue("t", dtype(1), content(make([]byte, 8))), nil},
		"an image":                             {submessage(1, submessage(1, []byte("t")), submessage(4, make([]byte, 1000))), nil},
		"another tag":                          {simple("t2", 1), nil},
		"a tag that the wanted one begins":     {simple("t/x", 1), nil},
		"two values in an event, one wanted":   {append(simple("x", 1), simple("t", 2)...), []float64{2}},
		"two values in an event, both wanted":  {append(simple("t", 1), simple("t", 2)...), []float64{1, 2}},
		"a value whose tag comes after it":     {submessage(1, fixed32(2, math.Float32bits(3)), submessage(1, []byte("t"))), []float64{3}},
		"a value without metadata, as usual":   {submessage(1, submessage(1, []byte("t")), submessage(8, dtype(1), fixed32(5, math.Float32bits(0.5)))), []float64{0.5}},
		"a value without a tag is none wanted": {submessage(1, fixed32(2, 0)), nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			file := append(version(), eventAt(77, tc.value)...)
			scalars, errs := readEvents(file, "t")
			var values []float64
			last := int64(len(version()))
			for _, s := range scalars {
				values = append(values, s.Value)
				if s.Tag != 0 || s.Step != 77 || s.Time.UnixMilli() != 1600000077250 {
					t.Errorf("got %+v", s)
				}
				if s.Offset <= last || s.Offset >= int64(len(file)) {
					t.Errorf("offset %d after %d", s.Offset, last)
				}
				last = s.Offset
			}
			if diff := cmp.Diff(tc.want, values, cmpopts.EquateNaNs()); diff != "" || errs != nil {
				t.Errorf("errors %v; values (-want +got):\n%s", errs, diff)
			}
		})
	}
}

// readAtMost hides what lies behind the first n bytes.
type readAtMost struct {
	b []byte
	n int
}

func (r readAtMost) ReadAt(p []byte, off int64) (int, error) {
	return bytes.NewReader(r.b[:r.n]).ReadAt(p, off)
}

// A file is read to the same end wherever the writer pauses.
func TestEventsResumeAtEveryByte(t *testing.T) {
	var file []byte
	file = append(file, version()...)
	for step := range uint64(5) {
		file = append(file, eventAt(step, simple("loss", float32(step)), simple("other", 1))...)
	}
	want, errs := readEvents(file, "loss")
	if len(want) != 5 || errs != nil {
		t.Fatalf("got %d scalars, errors %v", len(want), errs)
	}
	for cut := range file {
		e := NewEvents()
		var got []Scalar
		offset := int64(0)
		for _, n := range []int{cut, cut, len(file)} {
			var err error
			offset, err = e.Read(readAtMost{file, n}, offset, NewWanted([]string{"loss"}, nil), func(s Scalar) bool {
				got = append(got, s)
				return true
			})
			if err != nil {
				t.Fatalf("cut at %d: %v", cut, err)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" || offset != int64(len(file)) {
			t.Fatalf("cut at %d, ended at %d: scalars (-want +got):\n%s", cut, offset, diff)
		}
	}
}

func TestEventsDamage(t *testing.T) {
	first, second, third := eventAt(1, simple("t", 1)), eventAt(2, simple("t", 2)), eventAt(3, simple("t", 3))
	flip := func(b []byte, at int) []byte {
		b = bytes.Clone(b)
		b[at] ^= 1
		return b
	}
	pixels := make([]byte, 3*eventWindow)
	image := submessage(1, submessage(1, []byte("x")), submessage(4, pixels))
	large := framed(submessage(5, image, simple("t", 9)))
	tests := map[string]struct {
		middle  []byte
		want    []float64
		wantErr error
	}{
		"none":                               {second, []float64{1, 2, 3}, nil},
		"in a length":                        {flip(second, 0), []float64{1}, ErrBroken},
		"in the checksum of a length":        {flip(second, 9), []float64{1}, ErrBroken},
		"in the data":                        {flip(second, 20), []float64{1, 3}, ErrRecord},
		"in the checksum of the data":        {flip(second, len(second)-1), []float64{1, 3}, ErrRecord},
		"data that is no message":            {framed([]byte{0xff, 0xff}), []float64{1, 3}, ErrRecord},
		"a summary that is no message":       {framed(submessage(5, []byte{0x0a, 0x7f})), []float64{1, 3}, ErrRecord},
		"none, in a large record":            {large, []float64{1, 9, 3}, nil},
		"in the data of a large record":      {flip(large, len(large)/2), []float64{1, 3}, ErrRecord},
		"a large record that is no message":  {framed(append(submessage(5, image), 0x0a, 0x7f)), []float64{1, 3}, ErrRecord},
		"an empty record, which is harmless": {framed(), []float64{1, 3}, nil},
		"an absurd length":                   {absurd(), []float64{1}, ErrBroken},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			scalars, errs := readEvents(bytes.Join([][]byte{first, tc.middle, third}, nil), "t")
			var values []float64
			for _, s := range scalars {
				values = append(values, s.Value)
			}
			if diff := cmp.Diff(tc.want, values); diff != "" {
				t.Errorf("values (-want +got):\n%s", diff)
			}
			if tc.wantErr == nil && errs != nil || tc.wantErr != nil && (len(errs) != 1 || !errors.Is(errs[0], tc.wantErr)) {
				t.Errorf("errors %v, want %v", errs, tc.wantErr)
			}
		})
	}
}

func absurd() []byte {
	b := binary.LittleEndian.AppendUint64(nil, math.MaxUint64)
	return binary.LittleEndian.AppendUint32(b, testCRC(b))
}

func TestEventsStopsWhenTold(t *testing.T) {
	file := append(eventAt(1, simple("t", 1)), eventAt(2, simple("t", 2))...)
	n := 0
	offset, err := NewEvents().Read(bytes.NewReader(file), 0, NewWanted([]string{"t"}, nil), func(Scalar) bool { n++; return false })
	if n != 1 || err != nil || offset != int64(len(file)/2) {
		t.Errorf("%d scalars, offset %d, error %v", n, offset, err)
	}
}

type failing struct{}

func (failing) ReadAt([]byte, int64) (int, error) { return 0, io.ErrClosedPipe }

func TestEventsReportsReadErrors(t *testing.T) {
	if _, err := NewEvents().Read(failing{}, 0, NewWanted(nil, nil), nil); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("error %v", err)
	}
}

// testdata/README says how the file was written.
func TestEventsOfARealWriter(t *testing.T) {
	file, err := os.ReadFile("testdata/tensorboard.tfevents")
	if err != nil {
		t.Fatal(err)
	}
	if at, ok := FirstTime(bytes.NewReader(file)); !ok || at.Year() < 2020 {
		t.Errorf("the file began at %v", at)
	}
	tags := []string{"loss", "val/accuracy", "double", "half"}
	scalars, errs := readEvents(file, tags...)
	var got []string
	for _, s := range scalars {
		got = append(got, fmt.Sprintf("%s %d %v", tags[s.Tag], s.Step, s.Value))
	}
	want := []string{
		"loss 0 0.5", "val/accuracy 0 0.1", "loss 1 0.25", "val/accuracy 1 0.2", "loss 2 NaN", "val/accuracy 2 0.3",
		"double 3 0.3333333333333333", "half 3 0.333251953125",
	}
	if diff := cmp.Diff(want, got); diff != "" || errs != nil {
		t.Errorf("errors %v; scalars (-want +got):\n%s", errs, diff)
	}
}

func TestFirstTime(t *testing.T) {
	for n := range recordHeader + 9 {
		if _, ok := FirstTime(readAtMost{version(), n}); ok {
			t.Errorf("there is a time in %d bytes", n)
		}
	}
	if at, ok := FirstTime(bytes.NewReader(version())); !ok || at.Unix() != 1600000000 {
		t.Errorf("got %v", at)
	}
}

func BenchmarkEventsV1(b *testing.B) {
	benchmarkEvents(b, func(step uint64) []byte { return eventAt(step, simple("loss", float32(step)/7)) })
}

func BenchmarkEventsV2(b *testing.B) {
	benchmarkEvents(b, func(step uint64) []byte {
		bits := math.Float32bits(float32(step) / 7)
		return eventAt(step, tensorValue("loss", varint(1, 1), submessage(4, binary.LittleEndian.AppendUint32(nil, bits))))
	})
}

func BenchmarkEventsUnwanted(b *testing.B) {
	benchmarkEvents(b, func(step uint64) []byte { return eventAt(step, simple("gradient/norm", 1)) })
}

func BenchmarkEventsImages(b *testing.B) {
	image := submessage(1, submessage(1, []byte("image")), submessage(4, []byte(strings.Repeat("x", 100<<10))))
	benchmarkEvents(b, func(step uint64) []byte {
		if step%100 == 0 {
			return eventAt(step, image)
		}
		return eventAt(step, simple("loss", float32(step)))
	})
}

func benchmarkEvents(b *testing.B, record func(step uint64) []byte) {
	var file []byte
	for step := range uint64(20000) {
		file = append(file, record(step)...)
	}
	e := NewEvents()
	b.SetBytes(int64(len(file)))
	b.ReportAllocs()
	w := NewWanted([]string{"loss"}, nil)
	scalars, before := 0, processorTime(b)
	for b.Loop() {
		r := bytes.NewReader(file)
		for offset := int64(0); offset < int64(len(file)); {
			next, err := e.Read(r, offset, w, func(Scalar) bool { scalars++; return true })
			if err != nil || next == offset {
				b.Fatal(next, err)
			}
			offset = next
		}
	}
	used := (processorTime(b) - before).Seconds()
	b.ReportMetric(float64(scalars)/used/1e6, "Mscalars/cpu-s")
	b.ReportMetric(float64(len(file))*float64(b.N)/used/1e6, "MB/cpu-s")
}

// processorTime does not grow while others have the machine.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
