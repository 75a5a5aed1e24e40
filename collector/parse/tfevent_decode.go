package parse

import "math"

// The fields of the messages that are read, with their wire types, as they are
// written in one byte.
const (
	eventTime    = 1<<3 | wireFixed64 // tensorflow.Event.wall_time
	eventStep    = 2<<3 | wireVarint  // .step
	eventSummary = 5<<3 | wireBytes   // .summary
	eventSession = 7<<3 | wireBytes   // .session_log

	summaryOne = 1<<3 | wireBytes // tensorflow.Summary.value

	valueTag    = 1<<3 | wireBytes   // tensorflow.Summary.Value.tag
	valueSimple = 2<<3 | wireFixed32 // .simple_value
	valueTensor = 8<<3 | wireBytes   // .tensor
	valueOld    = 3<<3 | wireBytes   // .obsolete_old_style_histogram
	valueImage  = 4<<3 | wireBytes   // .image
	valueHisto  = 5<<3 | wireBytes   // .histo
	valueAudio  = 6<<3 | wireBytes   // .audio

	sessionStatus = 1<<3 | wireVarint // tensorflow.SessionLog.status
	sessionBegan  = 1                 // SessionLog.START
)

// span is a part of a file.
type span struct{ from, to int64 }

func (s span) size() int64 { return s.to - s.from }

// cursor walks over the fields of a message that lies in a file. It holds no more
// of it than the window does.
type cursor struct {
	key   uint64
	value uint64 // of a number
	body  span   // of the field's bytes

	w    *window
	rest span   // what comes after the field
	b    []byte // the beginning of rest
	base int64  // of the window when b was taken
	err  error
}

// maxFieldHead is the most bytes before the bytes of a field: a key and a size.
const maxFieldHead = 20

// next goes to the next field and reports whether there is one. At the end, err
// says what is wrong.
func (c *cursor) next() bool {
	if c.rest.from >= c.rest.to || c.err != nil {
		return false
	}
	if need := int(min(maxFieldHead, c.rest.size())); len(c.b) < need || c.base != c.w.base {
		b, err := c.w.at(c.rest.from, need)
		if err != nil {
			c.err = err
			return false
		}
		c.b, c.base = b[:min(int64(len(b)), c.rest.size())], c.w.base
	}
	key, value, n := fieldHead(c.b)
	if n < 0 {
		c.err = errProtobuf
		return false
	}
	c.key, c.value = key, value
	size := uint64(0)
	if key&wireMask == wireBytes {
		size = value
	}
	c.rest.from += int64(n)
	if size > uint64(c.rest.size()) {
		c.err = errProtobuf
		return false
	}
	c.body = span{c.rest.from, c.rest.from + int64(size)}
	c.rest.from = c.body.to
	c.b = c.b[min(uint64(n)+size, uint64(len(c.b))):]
	return true
}

// decoder reads the scalars of a tensorflow.Event that lies in a file.
type decoder struct {
	window *window
	w      *Wanted
	emit   func(Scalar) bool
}

func (d *decoder) fields(s span) cursor { return cursor{w: d.window, rest: s} }

// event reads one tensorflow.Event. Fields may come in any order, and summaries
// may be many.
func (d *decoder) event(whole span) error {
	var s Scalar
	var summary span
	summaries, began := 0, false
	c := d.fields(whole)
	for c.next() {
		switch c.key {
		case eventTime:
			s.Time = wallTime(c.value)
		case eventStep:
			s.Step = int64(c.value)
		case eventSummary:
			summary, summaries = c.body, summaries+1
		case eventSession:
			session := d.fields(c.body)
			for session.next() {
				if session.key == sessionStatus {
					began = session.value == sessionBegan
				}
			}
			c.err = session.err
		}
	}
	if c.err != nil {
		return c.err
	}
	if began {
		s.Tag, s.Offset = SessionStart, whole.from
		if !d.emit(s) {
			return errStopped
		}
	}
	if summaries <= 1 {
		return d.summary(summary, s)
	}
	// They are looked for again, since there may be more than memory holds.
	c = d.fields(whole)
	for c.next() {
		if c.key == eventSummary {
			c.err = d.summary(c.body, s)
		}
	}
	return c.err
}

// summary reads a tensorflow.Summary. A value that does not fit the window is no
// scalar with a reasonable tag, whatever its fields.
func (d *decoder) summary(whole span, s Scalar) error {
	c := d.fields(whole)
	for c.next() {
		if c.key != summaryOne || c.body.size() > eventWindow {
			continue
		}
		b, err := d.window.at(c.body.from, int(c.body.size()))
		if err != nil {
			return err
		}
		s.Offset = c.body.from
		ok, err := value(b[:c.body.size()], d.w, &s)
		if err != nil {
			return err
		}
		if ok && !d.emit(s) {
			return errStopped
		}
	}
	return c.err
}

// value reads one tensorflow.Summary.Value into s. ok is false when the tag is
// not wanted or the value is no scalar.
func value(b []byte, w *Wanted, s *Scalar) (ok bool, err error) {
	var tag, tensor []byte
	tagged, simple := false, false
	var bits uint64
	m := message{rest: b}
	for m.next() {
		switch m.key {
		case valueTag:
			tag, tagged = m.bytes, true
			if s.Tag = w.find(tag); s.Tag < 0 && w.settles(tag, b) {
				return false, nil
			}
		case valueSimple: // a message has one kind of value, the last
			bits, simple, tensor = m.value, true, nil
		case valueTensor:
			tensor, simple = m.bytes, false
		case valueOld, valueImage, valueHisto, valueAudio:
			tensor, simple = nil, false
		}
	}
	switch {
	case m.err != nil:
		return false, m.err
	case !tagged || !simple && tensor == nil:
		return false, nil
	case simple:
		s.Value, ok = decimal(math.Float32frombits(uint32(bits))), true
	default:
		s.Value, ok, err = scalarTensor(tensor)
	}
	if s.Tag < 0 {
		if ok {
			w.unknown(tag)
		}
		return false, nil
	}
	return ok, err
}
