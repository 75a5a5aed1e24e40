package parse

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// large reads a record that does not fit the window: once for its checksum, and
// once, passing over what is large in it, for its scalars. there is false when
// the file does not hold all of it yet.
func (e *Events) large(r io.ReaderAt, offset, need int64, w *Wanted, emit func(Scalar) bool) (there bool, err error) {
	if there, err := holds(r, offset+need); !there {
		return false, err
	}
	if need > MaxRecord {
		e.skipped.add(offset, fmt.Errorf("it has %d bytes, the limit is %d", need, MaxRecord))
		return true, nil
	}
	p := pages{r: r, buf: e.buf}
	data, end := offset+recordHeader, offset+need-recordFooter
	crc := uint32(0)
	for at := data; at < end; {
		b, err := p.at(at, 1)
		if err != nil {
			return false, err
		}
		b = b[:min(int64(len(b)), end-at)]
		crc = crc32.Update(crc, castagnoli, b)
		at += int64(len(b))
	}
	footer, err := p.at(end, recordFooter)
	if err != nil {
		return false, err
	}
	if binary.LittleEndian.Uint32(footer) != mask(crc) {
		e.skipped.add(offset, errChecksum)
		return true, nil
	}
	d := largeEvent{pages: p, w: w, emit: emit}
	err = d.event(extent{data, end})
	if errors.Is(err, errProtobuf) {
		e.skipped.add(offset, err)
		err = nil
	}
	return err == nil || errors.Is(err, errStopped), err
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

// pages shows a file through a window.
type pages struct {
	r    io.ReaderAt
	buf  []byte
	base int64 // of the window
	n    int
}

// at returns what the window shows from a place on, need bytes at least.
func (p *pages) at(place int64, need int) ([]byte, error) {
	if place < p.base || place+int64(need) > p.base+int64(p.n) {
		n, err := p.r.ReadAt(p.buf, place)
		p.base, p.n = place, n
		if n < need {
			p.n = 0
			return nil, fmt.Errorf("reading at byte %d: %w", place, err)
		}
	}
	return p.buf[place-p.base : p.n], nil
}

// extent is a part of a file.
type extent struct{ from, to int64 }

func (x extent) size() int64 { return x.to - x.from }

// largeField is a field of a message in a file. Its bytes are not held.
type largeField struct {
	key   uint64
	value uint64
	extent
}

// largeEvent reads one event out of a file.
type largeEvent struct {
	pages
	w    *Wanted
	emit func(Scalar) bool
}

// maxFieldHead is the most bytes before the bytes of a field: a key and a size.
const maxFieldHead = 2 * binary.MaxVarintLen64

// fields calls visit for each field of the message in x.
func (d *largeEvent) fields(x extent, visit func(largeField) error) error {
	for at := x.from; at < x.to; {
		b, err := d.at(at, int(min(maxFieldHead, x.to-at)))
		if err != nil {
			return err
		}
		b = b[:min(int64(len(b)), x.to-at)]
		f, n, err := fieldHead(b)
		if err != nil {
			return err
		}
		f.from, f.to = at+int64(n), at+int64(n)
		if f.key&7 == wireBytes {
			if f.value > uint64(x.to-f.from) {
				return errProtobuf
			}
			f.to += int64(f.value)
		}
		if err := visit(f); err != nil {
			return err
		}
		at = f.to
	}
	return nil
}

// fieldHead reads a field but for its bytes, of which value is the number.
func fieldHead(b []byte) (f largeField, n int, err error) {
	key, n := binary.Uvarint(b)
	if n <= 0 || key>>3 == 0 {
		return f, 0, errProtobuf
	}
	f.key = key
	if key&7 == wireBytes {
		size, m := binary.Uvarint(b[n:])
		if m <= 0 {
			return f, 0, errProtobuf
		}
		f.value = size
		return f, n + m, nil
	}
	whole, rest, err := nextField(b)
	f.value = whole.value
	return f, len(b) - len(rest), err
}

func (d *largeEvent) event(x extent) error {
	var s Scalar
	var first extent // summary
	summaries, began := 0, false
	err := d.fields(x, func(f largeField) error {
		switch f.key {
		case eventTime:
			s.Time = wallTime(f.value)
		case eventStep:
			s.Step = int64(f.value)
		case eventSummary:
			if summaries++; summaries == 1 {
				first = f.extent
			}
		case eventSession:
			if f.size() > eventWindow {
				return errProtobuf // it holds two numbers and a path
			}
			b, err := d.at(f.from, int(f.size()))
			if err != nil {
				return err
			}
			began, err = sessionStarts(b[:f.size()])
			return err
		}
		return nil
	})
	if err != nil {
		return err
	}
	if began {
		s.Tag, s.Offset = SessionStart, x.from
		if !d.emit(s) {
			return errStopped
		}
	}
	if summaries <= 1 {
		return d.summary(first, s)
	}
	// They are looked for again, since there may be more than memory holds.
	return d.fields(x, func(f largeField) error {
		if f.key != eventSummary {
			return nil
		}
		return d.summary(f.extent, s)
	})
}

func (d *largeEvent) summary(x extent, s Scalar) error {
	return d.fields(x, func(f largeField) error {
		if f.key != summaryOne {
			return nil
		}
		s.Offset = f.from
		return d.value(f.extent, s)
	})
}

// value reads a value. One that does not fit the window is no scalar with a
// reasonable tag, whatever its fields.
func (d *largeEvent) value(x extent, s Scalar) error {
	if x.size() > eventWindow {
		return nil
	}
	b, err := d.at(x.from, int(x.size()))
	if err != nil {
		return err
	}
	ok, err := value(b[:x.size()], d.w, &s)
	if ok && err == nil && !d.emit(s) {
		return errStopped
	}
	return err
}
