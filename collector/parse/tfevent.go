package parse

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"time"
)

// The TFRecord framing of TensorBoard's event files: a record is its length
// (8 bytes, little endian), the masked CRC-32C of these, the data, and the
// masked CRC-32C of the data. The data is a tensorflow.Event in protobuf form.
const (
	recordHeader = 12
	recordFooter = 4
	// eventWindow is how much is read at a time, in bytes. A record that is
	// larger is looked through window by window.
	eventWindow = 256 << 10
	// eventTurn is about how much one call of Read reads, in bytes.
	eventTurn = 16 << 20
	// MaxRecord is the size of the largest record that is looked into, in bytes:
	// the largest that protobuf allows. What is larger is passed over unread.
	MaxRecord = 1<<31 - 1
)

var (
	// ErrBroken says that a file cannot be read beyond some place: the length
	// of a record is damaged, and there is no way to find the next one.
	ErrBroken = errors.New("the event file is damaged")
	// ErrRecord says that records were passed over.
	ErrRecord = errors.New("passed over")
	// ErrZeros says that there are zeros where a record should begin. Some file
	// systems show them for a moment before the data, so this is an end of file
	// that may move; of a file that grows no more it is damage.
	ErrZeros = errors.New("the event file has zeros where a record should begin")
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func maskedCRC(b []byte) uint32 { return mask(crc32.Checksum(b, castagnoli)) }

func mask(crc uint32) uint32 { return (crc>>15 | crc<<17) + 0xa282ead8 }

// SessionStart is the Tag of a Scalar that is no value: the writer said that
// the program began again at Step, so that what was written before for this and
// later steps is void.
const SessionStart = -1

// Scalar is one scalar value of an event file.
type Scalar struct {
	// Tag is the place of the tag among the wanted ones, or SessionStart.
	Tag int
	// Value is the number. Floats of 32 bits and less are read as the decimal
	// that they print as: 0.1 stays 0.1. Whole numbers beyond 2^53 are rounded.
	Value float64
	// Step is the step that the event states.
	Step int64
	// Time is the event's wall time; the zero time when there is none.
	Time time.Time
	// Offset is the place of the value in the file, in bytes.
	Offset int64
}

// manyTags is from how many tags on a map finds one sooner than a look at each.
const manyTags = 9

// Wanted says which tags are read. It may be shared and is not changed by use.
type Wanted struct {
	tags  []string
	index map[string]int // nil when there are few
	// unknown, if set, is told of each other value that is a scalar. The tag is
	// the callee's only during the call.
	unknown func(tag []byte)
	// recorded, if set, is told of the program's own parameters.
	recorded func(Recorded)
}

// NewWanted returns the set of the tags, which are exact. If unknown is not
// nil, it is called for every value with another tag.
func NewWanted(tags []string, unknown func(tag []byte)) *Wanted {
	w := &Wanted{tags: tags, unknown: unknown}
	if len(tags) >= manyTags {
		w.index = make(map[string]int, len(tags))
		for i, t := range tags {
			w.index[t] = i
		}
	}
	return w
}

// find returns the place of a tag, -1 when it is not wanted.
func (w *Wanted) find(tag []byte) int {
	if w.index != nil {
		if i, ok := w.index[string(tag)]; ok {
			return i
		}
		return -1
	}
	for i, t := range w.tags {
		if t == string(tag) {
			return i
		}
	}
	return -1
}

// lengths is for how many lengths of records the checksums are kept.
const lengths = 512

// Events reads scalars from event files: those of TensorFlow 1 (simple_value)
// and of TensorFlow 2 and PyTorch (tensors of rank 0, of any numeric type). One
// Events may read many files in turn; it is not safe for concurrent use. It
// takes 256 KiB, however large a record is, and allocates nothing per event.
type Events struct {
	buf     []byte
	lengths [lengths]uint32 // masked checksums of lengths
	skipped skipped
}

// NewEvents returns a reader.
func NewEvents() *Events {
	e := &Events{buf: make([]byte, eventWindow)}
	var b [8]byte
	for n := range e.lengths {
		binary.LittleEndian.PutUint64(b[:], uint64(n))
		e.lengths[n] = maskedCRC(b[:])
	}
	return e
}

// skipped counts the records that one call of Read passed over.
type skipped struct {
	records int
	at      int64 // of the first
	why     error
}

func (s *skipped) add(at int64, why error) {
	if s.records == 0 {
		s.at, s.why = at, why
	}
	s.records++
}

func (s *skipped) err() error {
	switch s.records {
	case 0:
		return nil
	case 1:
		return fmt.Errorf("1 record was %w, at byte %d: %w", ErrRecord, s.at, s.why)
	}
	return fmt.Errorf("%d records were %w, the first at byte %d: %w", s.records, ErrRecord, s.at, s.why)
}

// Read reads complete records of r from offset on, which must be the beginning
// of a record, and calls emit for each scalar that is wanted, in the order of
// the file, until emit returns false. It returns after about 16 MiB, so that
// other files have their turn, with the offset to go on from; that is the given
// one when no complete record follows. An incomplete record at the end is no
// error: call again when the file has grown.
//
// Records with a wrong checksum, or that cannot be understood, are passed over,
// and an error that wraps ErrRecord counts them; go on at next. After ErrBroken
// there is nothing to go on with. See ErrZeros for the third.
func (e *Events) Read(r io.ReaderAt, offset int64, w *Wanted, emit func(Scalar) bool) (next int64, err error) {
	e.skipped = skipped{}
	begin := offset
	for offset-begin < eventTurn {
		n, err := r.ReadAt(e.buf, offset)
		if err != nil && !errors.Is(err, io.EOF) {
			return offset, errors.Join(e.skipped.err(), fmt.Errorf("reading at byte %d: %w", offset, err))
		}
		used, need, err := e.records(e.buf[:n], offset, w, emit)
		offset += int64(used)
		switch {
		case errors.Is(err, errStopped):
			return offset, e.skipped.err()
		case err != nil:
			return offset, errors.Join(e.skipped.err(), err)
		case need > int64(len(e.buf)):
			there, err := e.large(r, offset, need, w, emit)
			if there {
				offset += need
			}
			if errors.Is(err, errStopped) {
				err = nil
			}
			if !there || err != nil {
				return offset, errors.Join(e.skipped.err(), err)
			}
		case used == 0:
			return offset, e.skipped.err()
		}
	}
	return offset, e.skipped.err()
}

var (
	errStopped  = errors.New("stopped")
	errChecksum = errors.New("its checksum does not match")
)

// records reads the complete records in b, which lies at offset in the file.
// need is the full size of the record that follows them, 0 if unknown.
func (e *Events) records(b []byte, offset int64, w *Wanted, emit func(Scalar) bool) (used int, need int64, err error) {
	for {
		rest := b[used:]
		if len(rest) < recordHeader {
			return used, 0, nil
		}
		at := offset + int64(used)
		size, crc := binary.LittleEndian.Uint64(rest), binary.LittleEndian.Uint32(rest[8:])
		if err := e.checkLength(rest[:8], size, crc); err != nil {
			return used, 0, fmt.Errorf("%w, at byte %d", err, at)
		}
		need = int64(size) + recordHeader + recordFooter
		if need > int64(len(rest)) {
			return used, need, nil
		}
		data := rest[recordHeader : recordHeader+int(size)]
		used += int(need)
		if binary.LittleEndian.Uint32(rest[recordHeader+int(size):]) != maskedCRC(data) {
			e.skipped.add(at, errChecksum)
			continue
		}
		if err := event(data, at+recordHeader, w, emit); err != nil {
			if errors.Is(err, errStopped) {
				return used, 0, err
			}
			e.skipped.add(at, err)
		}
	}
}

// checkLength verifies the length of a record.
func (e *Events) checkLength(b []byte, size uint64, crc uint32) error {
	want := uint32(0)
	if size < lengths {
		want = e.lengths[size]
	} else {
		want = maskedCRC(b)
	}
	switch {
	case crc == want && size <= math.MaxInt64/2:
		return nil
	case crc == want:
		return fmt.Errorf("%w: it has a record of %d bytes", ErrBroken, size)
	case crc == 0 && size == 0:
		return ErrZeros
	}
	return fmt.Errorf("%w: the checksum of a record's length does not match", ErrBroken)
}

// FirstTime returns the wall time of the first record, and false while it is
// not there. It is the zero time when the record states none.
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
			return wallTime(f.value), true
		}
		data = rest
	}
	return time.Time{}, true
}

// wallTime reads the bits of a time in seconds.
func wallTime(bits uint64) time.Time {
	v := math.Float64frombits(bits)
	if v > 0 && v < 1<<38 {
		s := int64(v)
		return time.Unix(s, int64((v-float64(s))*1e9+0.5)).UTC()
	}
	t, _ := epochTime(nil, v)
	return t
}
