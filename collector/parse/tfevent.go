package parse

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"slices"
	"time"
)

// The TFRecord framing of TensorBoard's event files: a record is its length
// (8 bytes, little endian), the masked CRC-32C of these, the data, and the
// masked CRC-32C of the data. The data is a tensorflow.Event in protobuf form.
const (
	recordHeader = 12
	recordFooter = 4
	// eventWindow is how much is read at a time, in bytes, unless a record is larger.
	eventWindow = 256 << 10
	// eventTurn is about how much one call of Read reads, in bytes.
	eventTurn = 16 << 20
	// MaxRecord is the size of the largest record that is looked into, in bytes: it
	// is held in memory. A larger one has an image or the like; writers of our time
	// give scalars records of their own. It is passed over unread.
	MaxRecord = 32 << 20
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

// mask is the form in which a checksum is stored.
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

// Wanted says which tags are read. It may be shared and is not changed by use.
type Wanted struct {
	tags  []string
	index map[string]int
	// unknown, if set, is told of each other value that is a scalar. The tag is
	// only valid during the call.
	unknown func(tag []byte)
	// recorded, if set, is told of the program's own parameters.
	recorded func(Recorded)
}

// NewWanted returns the set of the tags, which are exact. If unknown is not
// nil, it is called for every value with another tag.
func NewWanted(tags []string, unknown func(tag []byte)) *Wanted {
	w := &Wanted{tags: tags, index: make(map[string]int, len(tags)), unknown: unknown}
	for i, t := range slices.Backward(tags) { // the first of equal ones counts
		w.index[t] = i
	}
	return w
}

// Events reads scalars from event files: those of TensorFlow 1 (simple_value)
// and of TensorFlow 2 and PyTorch (tensors of rank 0, of any numeric type). One
// Events may read many files in turn; it is not safe for concurrent use. It
// takes 256 KiB, more only while it reads a record that is larger, and allocates
// nothing per event.
type Events struct {
	window  window
	skipped skipped
}

// NewEvents returns a reader.
func NewEvents() *Events { return &Events{window: window{buf: make([]byte, eventWindow)}} }

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
	e.skipped, e.window = skipped{}, window{r: r, buf: e.window.buf}
	d := decoder{w: w, emit: emit}
	for begin := offset; offset-begin < eventTurn && err == nil; {
		data, end, err2 := e.record(offset)
		if err2 == nil {
			err2 = d.event(data, offset+recordHeader)
		}
		switch {
		case err2 == nil:
		case errors.Is(err2, errChecksum), errors.Is(err2, errTooLarge), errors.Is(err2, errProtobuf):
			e.skipped.add(offset, err2)
		default:
			err = err2
		}
		if err == nil || errors.Is(err, errStopped) {
			offset = end
		}
	}
	if len(e.window.buf) > eventWindow { // what a large record needed
		e.window.buf = make([]byte, eventWindow)
	}
	if errors.Is(err, errStopped) || errors.Is(err, io.EOF) { // the last record is not complete
		err = nil
	}
	return offset, errors.Join(e.skipped.err(), err)
}

var (
	errStopped  = errors.New("stopped")
	errChecksum = errors.New("its checksum does not match")
	errTooLarge = errors.New("it is too large")
)

// record returns the data of the record at a place, and where it ends. The error is
// io.EOF when it is not complete, and errChecksum or errTooLarge when it cannot be
// used.
func (e *Events) record(at int64) (data []byte, end int64, err error) {
	whole, err := e.window.at(at, recordHeader)
	if err != nil {
		return nil, at, err
	}
	size, crc := binary.LittleEndian.Uint64(whole), binary.LittleEndian.Uint32(whole[8:])
	switch want := mask(crc32.Checksum(whole[:8], castagnoli)); {
	case crc == 0 && size == 0:
		return nil, at, ErrZeros
	case crc != want && whole[recordHeader-1] == 0 && e.zerosFrom(at+recordHeader):
		return nil, at, ErrZeros
	case crc != want:
		return nil, at, fmt.Errorf("%w: the checksum of a record's length does not match, at byte %d", ErrBroken, at)
	case size > math.MaxInt64/2:
		return nil, at, fmt.Errorf("%w: it has a record of %d bytes, at byte %d", ErrBroken, size, at)
	}
	end = at + recordHeader + int64(size) + recordFooter
	if end-at > eventWindow { // nothing is read before all of it is there
		if _, err := e.window.at(end-1, 1); err != nil {
			return nil, at, err
		}
	}
	if size > MaxRecord {
		return nil, end, fmt.Errorf("%w: it has %d bytes, the limit is %d", errTooLarge, size, MaxRecord)
	}
	if int64(len(whole)) < end-at {
		if whole, err = e.window.at(at, int(end-at)); err != nil {
			return nil, at, err
		}
	}
	data, footer := whole[recordHeader:recordHeader+size], whole[recordHeader+size:]
	if binary.LittleEndian.Uint32(footer) != mask(crc32.Checksum(data, castagnoli)) {
		if footer[recordFooter-1] == 0 && e.zerosFrom(end) {
			return nil, at, ErrZeros
		}
		err = errChecksum
	}
	return data, end, err
}

// zerosFrom reports whether the file ends at a place, or has zeros where a record would
// begin there: then zeros before that place may stand for data that is still to come.
func (e *Events) zerosFrom(at int64) bool {
	b, err := e.window.at(at, 1)
	return errors.Is(err, io.EOF) || err == nil && len(bytes.Trim(b[:min(len(b), recordHeader)], "\x00")) == 0
}

// window shows a part of a file.
type window struct {
	r    io.ReaderAt
	buf  []byte
	base int64 // the place in the file
	n    int
}

// at returns what the window shows from a place on, need bytes at least. The error is
// io.EOF when the file has not as many.
func (w *window) at(place int64, need int) ([]byte, error) {
	if place < w.base || place+int64(need) > w.base+int64(w.n) {
		if need > len(w.buf) {
			w.buf = make([]byte, need)
		}
		n, err := w.r.ReadAt(w.buf, place)
		if err != nil && !errors.Is(err, io.EOF) && n < need {
			w.n = 0
			return nil, fmt.Errorf("reading at byte %d: %w", place, err)
		}
		if w.base, w.n = place, n; n < need {
			return nil, io.EOF
		}
	}
	return w.buf[place-w.base : w.n], nil
}

// FirstTime returns the wall time of the first record, and false while it is
// not there. It is the zero time when the record states none.
func FirstTime(r io.ReaderAt) (time.Time, bool) {
	var b [recordHeader + 9]byte
	if _, err := r.ReadAt(b[:], 0); err != nil {
		return time.Time{}, false
	}
	m := message{whole: b[recordHeader:]}
	for m.next() {
		if m.key == eventTime {
			return wallTime(m.value), true
		}
	}
	return time.Time{}, true
}

// wallTime reads the bits of a time in seconds.
func wallTime(bits uint64) time.Time {
	t, _ := floatTime(math.Float64frombits(bits))
	return t
}
