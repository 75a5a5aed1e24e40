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

// decoder reads the scalars of a tensorflow.Event.
type decoder struct {
	w    *Wanted
	emit func(Scalar) bool
	last int // the place of the last wanted tag, which most often comes again
}

// find returns the place of a tag, -1 when it is not wanted.
func (d *decoder) find(tag []byte) int {
	if d.last < len(d.w.tags) && string(tag) == d.w.tags[d.last] {
		return d.last
	}
	i, ok := d.w.index[string(tag)]
	if !ok {
		return -1
	}
	d.last = i
	return i
}

// event reads one tensorflow.Event that lies at a place of the file. Fields may come
// in any order, and summaries may be many.
func (d *decoder) event(b []byte, at int64) error {
	var s Scalar
	began := false
	first, size := 0, uint64(0) // the end and the length of the first summary
	m := message{whole: b}
	for m.next() {
		switch m.key {
		case eventTime:
			s.Time = wallTime(m.value)
		case eventStep:
			s.Step = int64(m.value)
		case eventSummary:
			if first == 0 {
				first, size = m.at, m.value
			}
		case eventSession:
			session := message{whole: m.bytes()}
			for session.next() {
				if session.key == sessionStatus {
					began = session.value == sessionBegan
				}
			}
			if session.err != nil {
				return session.err
			}
		}
	}
	if m.err != nil {
		return m.err
	}
	if began {
		s.Tag, s.Offset = SessionStart, at
		if !d.emit(s) {
			return errStopped
		}
	}
	m.key, m.value, m.at = eventSummary, size, first // which most often is the last field
	for more := first > 0; more; more = m.next() {
		if m.key == eventSummary {
			if err := d.summary(m.bytes(), at+int64(m.begins()), s); err != nil {
				return err
			}
		}
	}
	return nil
}

// summary reads a tensorflow.Summary that lies at a place of the file.
func (d *decoder) summary(b []byte, at int64, s Scalar) error {
	m := message{whole: b}
	for m.next() {
		if m.key != summaryOne {
			continue
		}
		s.Offset = at + int64(m.begins())
		ok, err := d.one(m.bytes(), &s)
		if err != nil {
			return err
		}
		if ok && !d.emit(s) {
			return errStopped
		}
	}
	return m.err
}

// one reads one tensorflow.Summary.Value into s. ok is false when the tag is not
// wanted or the value is no scalar.
func (d *decoder) one(b []byte, s *Scalar) (ok bool, err error) {
	var tag, tensor []byte
	tagged, simple := false, false
	var bits uint64
	m := message{whole: b}
	for m.next() {
		switch m.key {
		case valueTag:
			tag, tagged = m.bytes(), true
			if s.Tag = d.find(tag); s.Tag < 0 && d.w.settles(tag, b) {
				return false, nil
			}
		case valueSimple: // a message has one kind of value, the last
			bits, simple, tensor = m.value, true, nil
		case valueTensor:
			tensor, simple = m.bytes(), false
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
			d.w.unknown(tag)
		}
		return false, nil
	}
	return ok, err
}
