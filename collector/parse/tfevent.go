package parse

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"slices"
	"strconv"
	"time"
)

// The TFRecord framing of TensorBoard's event files: a record is its length
// (8 bytes, little endian), the masked CRC-32C of these, the data, and the
// masked CRC-32C of the data. The data is a tensorflow.Event in protobuf form.
const (
	recordHeader = 12
	recordFooter = 4
	// MaxRecord bounds the records that are read, in bytes. Larger ones are
	// passed over without being held in memory.
	MaxRecord = 8 << 20
	// eventWindow is how much is read at a time; it grows for one record when
	// that is larger.
	eventWindow = 256 << 10
)

var (
	// ErrBroken says that a file cannot be read beyond some place: the length
	// of a record is damaged, and there is no way to find the next one.
	ErrBroken = errors.New("the event file is damaged")
	// ErrRecord says that one record was passed over.
	ErrRecord = errors.New("a record of the event file was passed over")
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func maskedCRC(b []byte) uint32 {
	c := crc32.Checksum(b, castagnoli)
	return (c>>15 | c<<17) + 0xa282ead8
}

// Scalar is one scalar value of an event file.
type Scalar struct {
	// Tag is the wanted tag.
	Tag string
	// Value is the number. A 32-bit float is read as the decimal that it
	// prints as: 0.1 stays 0.1.
	Value float64
	// Step is the step that the event states.
	Step int64
	// Time is the event's wall time.
	Time time.Time
	// Offset is the place of the value in the file, in bytes.
	Offset int64
}

// Events reads scalars from event files: those of TensorFlow 1 (simple_value)
// and of TensorFlow 2 and PyTorch (tensors of rank 0, of any numeric type). One
// Events may read many files in turn; it is not safe for concurrent use.
type Events struct {
	buf []byte
}

// NewEvents returns a reader. It needs 256 KiB, and up to MaxRecord while it
// reads a record of that size.
func NewEvents() *Events { return &Events{buf: make([]byte, eventWindow)} }

// Read reads the complete records of r from offset on, which must be the
// beginning of a record, and calls emit for each scalar with one of the tags,
// until emit returns false. It returns the offset to go on from. An incomplete
// record at the end is no error: call again when the file has grown. After
// ErrRecord the caller may go on at next; after ErrBroken there is nothing to
// go on with.
func (e *Events) Read(r io.ReaderAt, offset int64, tags []string, emit func(Scalar) bool) (next int64, err error) {
	defer func() {
		if len(e.buf) > eventWindow {
			e.buf = make([]byte, eventWindow)
		}
	}()
	for {
		n, err := r.ReadAt(e.buf, offset)
		if err != nil && !errors.Is(err, io.EOF) {
			return offset, fmt.Errorf("reading at byte %d: %w", offset, err)
		}
		used, need, err := e.records(e.buf[:n], offset, tags, emit)
		offset += int64(used)
		switch {
		case errors.Is(err, errStopped):
			return offset, nil
		case err != nil:
			return offset, err
		case need > int64(len(e.buf)):
			there, err := holds(r, offset+need)
			if !there {
				return offset, err
			}
			if need > MaxRecord {
				return offset + need, fmt.Errorf("%w: at byte %d, it has %d bytes, the limit is %d", ErrRecord, offset, need, MaxRecord)
			}
			e.buf = make([]byte, need)
		case used == 0:
			return offset, nil
		}
	}
}

var errStopped = errors.New("stopped")

// records reads the complete records in b, which lies at offset in the file.
// need is the full size of the record that follows them, 0 if unknown.
func (e *Events) records(b []byte, offset int64, tags []string, emit func(Scalar) bool) (used int, need int64, err error) {
	for {
		rest := b[used:]
		if len(rest) < recordHeader {
			return used, 0, nil
		}
		at := offset + int64(used)
		if binary.LittleEndian.Uint32(rest[8:]) != maskedCRC(rest[:8]) {
			return used, 0, fmt.Errorf("%w at byte %d: the checksum of a record's length does not match", ErrBroken, at)
		}
		size := binary.LittleEndian.Uint64(rest)
		if size > math.MaxInt64/2 {
			return used, 0, fmt.Errorf("%w at byte %d: a record of %d bytes", ErrBroken, at, size)
		}
		need = int64(size) + recordHeader + recordFooter
		if need > int64(len(rest)) {
			return used, need, nil
		}
		data := rest[recordHeader : recordHeader+int(size)]
		used += int(need)
		if binary.LittleEndian.Uint32(rest[recordHeader+int(size):]) != maskedCRC(data) {
			return used, 0, fmt.Errorf("%w: at byte %d, its checksum does not match", ErrRecord, at)
		}
		if err := event(data, at+recordHeader, tags, emit); err != nil {
			if errors.Is(err, errStopped) {
				return used, 0, err
			}
			return used, 0, fmt.Errorf("%w: at byte %d: %w", ErrRecord, at, err)
		}
	}
}

// holds reports whether r has at least size bytes.
func holds(r io.ReaderAt, size int64) (bool, error) {
	var last [1]byte
	_, err := r.ReadAt(last[:], size-1)
	if err == io.EOF {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading at byte %d: %w", size-1, err)
	}
	return true, nil
}

// FirstTime returns the wall time of the first record, and false while it is
// not there.
func FirstTime(r io.ReaderAt) (time.Time, bool) {
	var b [recordHeader + 9]byte
	if _, err := r.ReadAt(b[:], 0); err != nil {
		return time.Time{}, false
	}
	for data := b[recordHeader:]; len(data) > 0; {
		f, rest, err := nextField(data)
		if err != nil {
			break
		}
		if f.number == 1 && f.wire == wireFixed64 {
			return wallTime(math.Float64frombits(f.value)), true
		}
		data = rest
	}
	return time.Time{}, true
}

func wallTime(s float64) time.Time {
	t, _ := epochTime(nil, s)
	return t
}

// event reads one tensorflow.Event: 1 wall_time, 2 step, 5 summary.
func event(b []byte, offset int64, tags []string, emit func(Scalar) bool) error {
	s := Scalar{}
	var summary []byte
	var summaryAt int64
	end := offset + int64(len(b))
	for len(b) > 0 {
		f, rest, err := nextField(b)
		if err != nil {
			return err
		}
		switch {
		case f.number == 1 && f.wire == wireFixed64:
			s.Time = wallTime(math.Float64frombits(f.value))
		case f.number == 2 && f.wire == wireVarint:
			s.Step = int64(f.value)
		case f.number == 5 && f.wire == wireBytes:
			summary, summaryAt = f.bytes, end-int64(len(rest))-int64(len(f.bytes))
		}
		b = rest
	}
	end = summaryAt + int64(len(summary))
	for len(summary) > 0 {
		f, rest, err := nextField(summary)
		if err != nil {
			return err
		}
		if f.number == 1 && f.wire == wireBytes {
			s.Offset = end - int64(len(rest)) - int64(len(f.bytes))
			ok, err := summaryValue(f.bytes, tags, &s)
			if err != nil {
				return err
			}
			if ok && !emit(s) {
				return errStopped
			}
		}
		summary = rest
	}
	return nil
}

// summaryValue reads one Summary.Value: 1 tag, 2 simple_value, 8 tensor. ok is
// false when the tag is not wanted or the value is no scalar.
func summaryValue(b []byte, tags []string, s *Scalar) (ok bool, err error) {
	wanted := -1
	var tensor []byte
	for len(b) > 0 {
		f, rest, err := nextField(b)
		if err != nil {
			return false, err
		}
		switch {
		case f.number == 1 && f.wire == wireBytes:
			if wanted = slices.IndexFunc(tags, func(t string) bool { return t == string(f.bytes) }); wanted < 0 {
				return false, nil
			}
		case f.number == 2 && f.wire == wireFixed32:
			s.Value, ok = decimal(math.Float32frombits(uint32(f.value))), true
		case f.number == 8 && f.wire == wireBytes:
			tensor = f.bytes
		}
		b = rest
	}
	if wanted < 0 {
		return false, nil
	}
	s.Tag = tags[wanted]
	if tensor != nil && !ok {
		s.Value, ok, err = scalarTensor(tensor)
	}
	return ok, err
}

// decimal widens a float by way of its shortest decimal.
func decimal(f float32) float64 {
	if w := float64(f); w == math.Trunc(w) || w != w {
		return w
	}
	var buf [32]byte
	v, _ := strconv.ParseFloat(string(strconv.AppendFloat(buf[:0], float64(f), 'g', -1, 32)), 64)
	return v
}
