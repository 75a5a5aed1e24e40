package parse

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// seeds are events of all forms, and what goes wrong with them.
func seeds() [][]byte {
	at := fixed64(1, math.Float64bits(1.7e9))
	content := submessage(4, make([]byte, 8))
	return [][]byte{
		bytes.Join([][]byte{at, varint(2, 9), submessage(5, simple("t", 2))}, nil),
		bytes.Join([][]byte{at, varint(2, 300), submessage(5, tensorValue("u", varint(1, 2), content))}, nil),
		bytes.Join([][]byte{varint(2, 70_000), submessage(5, simple("t", 2)), submessage(5, simple("u", 3)), at}, nil),
		bytes.Join([][]byte{at, submessage(7, varint(1, 1))}, nil),
		bytes.Join([][]byte{at, submessage(5, tensorValue("t", varint(1, 19), submessage(2), varint(13, 0x3555)))}, nil),
		bytes.Join([][]byte{at, submessage(5, submessage(1, submessage(1, []byte("t")), fixed32(2, 0), submessage(4, []byte("image"))))}, nil),
		bytes.Join([][]byte{at, submessage(5, sessionStart(numberEntry("lr", 0.1), textEntry("o", "adam"), entry("b", varint(4, 1))), simple("t", 1))}, nil),
		{0x09},
		nil,
	}
}

// Whatever a file holds, it is read to a place, without a crash, and a reader
// that sees a part of it first reads the same.
func FuzzRecords(f *testing.F) {
	file := version()
	for _, s := range seeds() {
		f.Add(append(bytes.Clone(file), framed(s)...), uint16(20))
		file = append(file, framed(s)...)
	}
	f.Add(file, uint16(100))
	f.Add(make([]byte, 100), uint16(50))
	f.Add(absurd(), uint16(3))
	e := NewEvents()
	f.Fuzz(func(t *testing.T, data []byte, cut uint16) {
		var want []Scalar
		var errs []error
		CheckMemory(t, len(data), func() { want, errs = readWith(e, data, "t", "u") })
		last := int64(-1)
		for _, s := range want {
			if s.Offset <= last || s.Offset > int64(len(data)) {
				t.Fatalf("offset %d after %d", s.Offset, last)
			}
			last = s.Offset
		}
		for _, err := range errs {
			if !errors.Is(err, ErrBroken) && !errors.Is(err, ErrRecord) && !errors.Is(err, ErrZeros) {
				t.Fatal(err)
			}
		}
		var got []Scalar
		w := NewWanted([]string{"t", "u"}, nil)
		offset := int64(0)
		for _, n := range []int{min(int(cut), len(data)), len(data)} {
			offset, _ = e.Read(readAtMost{data, n}, offset, w, func(s Scalar) bool { // errors are those of above
				got = append(got, s)
				return true
			})
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateNaNs()); diff != "" {
			t.Fatalf("in two parts (-at once +in parts):\n%s", diff)
		}
	})
}

// Whatever an event holds, it is decoded without a crash, and in the same way in
// each of three records.
func FuzzEvent(f *testing.F) {
	for _, s := range seeds() {
		f.Add(s)
	}
	r := NewEvents()
	f.Fuzz(func(t *testing.T, data []byte) {
		var told []Recorded
		w := NewWanted([]string{"t", "u"}, nil).Recording(func(p Recorded) { told = append(told, p) })
		file := framed(data)
		one := 0
		var err error
		CheckMemory(t, len(data), func() {
			_, err = r.Read(bytes.NewReader(file), 0, w, func(Scalar) bool { one++; return true })
		})
		for _, p := range told {
			if p.Name == "" || len(p.Name) > MaxRecordedText || len(p.Value) > MaxRecordedText || !utf8.ValidString(p.Name+p.Value) {
				t.Fatalf("recorded %q", p)
			}
		}
		if scalars, errs := readWith(r, bytes.Repeat(file, 3), "t", "u"); err == nil && (len(scalars) != 3*one || errs != nil) {
			t.Fatalf("%d scalars in three records, %d in one, errors %v", len(scalars), one, errs)
		}
	})
}

// Large files of records at every size around the window.
func TestEventsAroundTheWindow(t *testing.T) {
	for _, size := range []int{eventWindow - 200, eventWindow - 100, eventWindow - 60, eventWindow - 1, eventWindow, eventWindow + 100, 3*eventWindow + 7} {
		image := submessage(1, submessage(1, []byte("x")), submessage(4, make([]byte, size)))
		file := append(version(), eventAt(1, simple("t", 1), image, simple("t", 2))...)
		file = append(file, eventAt(2, simple("t", 3))...)
		scalars, errs := readEvents(file, "t")
		if len(scalars) != 3 || errs != nil || scalars[0].Value != 1 || scalars[1].Value != 2 || scalars[2].Value != 3 {
			t.Errorf("an image of %d bytes: %v, errors %v", size, scalars, errs)
		}
		for _, s := range scalars {
			tag := file[s.Offset : s.Offset+3]
			if !bytes.Equal(tag, submessage(1, []byte("t"))) {
				t.Errorf("an image of %d bytes: at offset %d there is %q", size, s.Offset, tag)
			}
		}
	}
}

// hole is a file with an image of zeros that takes no memory.
type hole struct {
	head, tail []byte
	size       int64 // of the zeros
}

func (h hole) ReadAt(p []byte, off int64) (n int, err error) {
	for n < len(p) {
		at := off + int64(n)
		switch {
		case at < int64(len(h.head)):
			n += copy(p[n:], h.head[at:])
		case at < int64(len(h.head))+h.size:
			end := min(len(p), n+int(min(h.size+int64(len(h.head))-at, 1<<30)))
			clear(p[n:end])
			n = end
		default:
			at -= int64(len(h.head)) + h.size
			m := bytes.NewReader(h.tail)
			k, err := m.ReadAt(p[n:], at)
			return n + k, err
		}
	}
	return n, nil
}

// holed frames an event that ends in an image of size zeros after a scalar.
func holed(size int64) hole {
	prefix := submessage(5, submessage(1, submessage(1, []byte("t")), fixed32(2, math.Float32bits(7))))
	image := binary.AppendUvarint([]byte{4<<3 | 2}, uint64(size))
	value := append(submessage(1, []byte("x")), image...)
	summary := binary.AppendUvarint([]byte{1<<3 | 2}, uint64(int64(len(value))+size))
	summary = append(summary, value...)
	body := binary.AppendUvarint([]byte{5<<3 | 2}, uint64(int64(len(summary))+size))
	data := slices.Concat(prefix, body, summary)
	head := binary.LittleEndian.AppendUint64(nil, uint64(int64(len(data))+size))
	head = binary.LittleEndian.AppendUint32(head, testCRC(head))
	return hole{head: append(head, data...), size: size}
}

func (h *hole) sum() {
	crc := uint32(0)
	data := h.head[recordHeader:]
	crc = crcOf(crc, data)
	zeros := make([]byte, 1<<20)
	for left := h.size; left > 0; left -= int64(len(zeros)) {
		crc = crcOf(crc, zeros[:min(left, int64(len(zeros)))])
	}
	h.tail = binary.LittleEndian.AppendUint32(h.tail, (crc>>15|crc<<17)+0xa282ead8)
}

// An image of 30 MB is passed over, and what stands beside it is read. The memory for
// it is given back.
func TestEventsReadBesideALargeImage(t *testing.T) {
	h := holed(30 << 20)
	h.sum()
	h.tail = append(h.tail, eventAt(2, simple("t", 8))...)
	e, w := NewEvents(), NewWanted([]string{"t"}, nil)
	var got []float64
	for offset, before := int64(0), int64(-1); offset != before; {
		before = offset
		var err error
		if offset, err = e.Read(h, offset, w, func(s Scalar) bool { got = append(got, s.Value); return true }); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]float64{7, 8}, got); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
	CheckHeld(t, e)
}

func TestEventsPassOverWhatIsTooLarge(t *testing.T) {
	h := holed(MaxRecord) // with what stands beside it; its checksum is not looked at
	h.tail = append(make([]byte, 4), eventAt(2, simple("t", 8))...)
	e, w := NewEvents(), NewWanted([]string{"t"}, nil)
	var got []float64
	var errs []error
	for offset, before := int64(0), int64(-1); offset != before; {
		var err error
		before = offset
		if offset, err = e.Read(h, offset, w, func(s Scalar) bool { got = append(got, s.Value); return true }); err != nil {
			errs = append(errs, err)
		}
	}
	if len(got) != 1 || got[0] != 8 || len(errs) != 1 || !errors.Is(errs[0], ErrRecord) || !errors.Is(errs[0], errTooLarge) {
		t.Errorf("values %v, errors %v", got, errs)
	}
}
