package parse

import (
	"encoding/binary"
	"math"
)

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

// event reads one tensorflow.Event, which lies at offset in the file. Fields
// may come in any order, and summaries may be many.
func event(b []byte, offset int64, w *Wanted, emit func(Scalar) bool) error {
	var s Scalar
	summary, summaries, began := []byte(nil), 0, false
	at := 0 // of summary
	for i := 0; i < len(b); {
		switch key := b[i]; {
		case key == eventTime && i+9 <= len(b):
			s.Time = wallTime(binary.LittleEndian.Uint64(b[i+1:]))
			i += 9
		case key == eventStep && i+1 < len(b) && b[i+1] < 0x80:
			s.Step = int64(b[i+1])
			i += 2
		case key == eventStep && i+2 < len(b) && b[i+2] < 0x80:
			s.Step = int64(b[i+1]&0x7f) | int64(b[i+2])<<7
			i += 3
		case key == eventStep && i+3 < len(b) && b[i+3] < 0x80:
			s.Step = int64(b[i+1]&0x7f) | int64(b[i+2]&0x7f)<<7 | int64(b[i+3])<<14
			i += 4
		case key == eventSummary && i+1 < len(b) && b[i+1] < 0x80 && i+2+int(b[i+1]) <= len(b):
			at = i + 2
			i = at + int(b[i+1])
			summary = b[at:i]
			summaries++
		default:
			f, rest, err := nextField(b[i:])
			if err != nil {
				return err
			}
			i = len(b) - len(rest)
			switch f.key() {
			case eventTime:
				s.Time = wallTime(f.value)
			case eventStep:
				s.Step = int64(f.value)
			case eventSummary:
				at, summary = i-len(f.bytes), f.bytes
				summaries++
			case eventSession:
				if began, err = sessionStarts(f.bytes); err != nil {
					return err
				}
			}
		}
	}
	if began {
		s.Tag, s.Offset = SessionStart, offset
		if !emit(s) {
			return errStopped
		}
	}
	if summaries > 1 {
		return everySummary(b, offset, s, w, emit)
	}
	return values(summary, offset+int64(at), s, w, emit)
}

// everySummary reads the values of an event that has several summaries. The
// event is well formed.
func everySummary(b []byte, offset int64, s Scalar, w *Wanted, emit func(Scalar) bool) error {
	end := offset + int64(len(b))
	for len(b) > 0 {
		f, rest, err := nextField(b)
		if err != nil {
			return err
		}
		if f.key() == eventSummary {
			if err := values(f.bytes, end-int64(len(rest))-int64(len(f.bytes)), s, w, emit); err != nil {
				return err
			}
		}
		b = rest
	}
	return nil
}

// values reads a tensorflow.Summary, which lies at offset in the file.
func values(b []byte, offset int64, s Scalar, w *Wanted, emit func(Scalar) bool) error {
	for i := 0; i < len(b); {
		key := b[i]
		var one []byte
		if i+1 < len(b) && b[i+1] < 0x80 && key == summaryOne && i+2+int(b[i+1]) <= len(b) {
			one = b[i+2 : i+2+int(b[i+1])]
			i += 2 + len(one)
		} else {
			f, rest, err := nextField(b[i:])
			if err != nil {
				return err
			}
			i = len(b) - len(rest)
			if f.key() != summaryOne {
				continue
			}
			one = f.bytes
		}
		s.Offset = offset + int64(i-len(one))
		ok, err := value(one, w, &s)
		if err != nil {
			return err
		}
		if ok && !emit(s) {
			return errStopped
		}
	}
	return nil
}

// value reads one tensorflow.Summary.Value into s. ok is false when the tag is
// not wanted or the value is no scalar.
func value(b []byte, w *Wanted, s *Scalar) (ok bool, err error) {
	var tag, tensor []byte
	tagged, simple := false, false
	var bits uint32
	for i := 0; i < len(b); {
		key := uint64(b[i])
		var part []byte
		switch {
		case key == valueSimple && i+5 <= len(b):
			bits, simple, tensor = binary.LittleEndian.Uint32(b[i+1:]), true, nil
			i += 5
			continue
		case key&7 == wireBytes && key < 0x80 && i+1 < len(b) && b[i+1] < 0x80 && i+2+int(b[i+1]) <= len(b):
			part = b[i+2 : i+2+int(b[i+1])]
			i += 2 + len(part)
		default:
			f, rest, err := nextField(b[i:])
			if err != nil {
				return false, err
			}
			if key, part = f.key(), f.bytes; key == valueSimple {
				bits, simple, tensor = uint32(f.value), true, nil
			}
			i = len(b) - len(rest)
		}
		switch key {
		case valueTag:
			tag, tagged = part, true
			if s.Tag = w.find(tag); s.Tag < 0 && w.settles(tag, b) {
				return false, nil
			}
		case valueTensor:
			tensor, simple = part, false
		case valueOld, valueImage, valueHisto, valueAudio: // a message has one kind of value, the last
			tensor, simple = nil, false
		}
	}
	switch {
	case !tagged || !simple && tensor == nil:
		return false, nil
	case simple:
		s.Value, ok = decimal(math.Float32frombits(bits)), true
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

// sessionStarts reads a tensorflow.SessionLog.
func sessionStarts(b []byte) (bool, error) {
	began := false
	for len(b) > 0 {
		f, rest, err := nextField(b)
		if err != nil {
			return false, err
		}
		if f.key() == sessionStatus {
			began = f.value == sessionBegan
		}
		b = rest
	}
	return began, nil
}
