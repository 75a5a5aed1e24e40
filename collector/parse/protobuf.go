package parse

import (
	"encoding/binary"
	"errors"

	"google.golang.org/protobuf/encoding/protowire"
)

// The wire types of protobuf. A field's key is its number, shifted by three, and
// its wire type.
const (
	wireVarint  = uint64(protowire.VarintType)
	wireFixed64 = uint64(protowire.Fixed64Type)
	wireBytes   = uint64(protowire.BytesType)
	wireFixed32 = uint64(protowire.Fixed32Type)
	wireMask    = 7
)

var errProtobuf = errors.New("its data is not a protobuf message")

// fieldHead reads a field but for its bytes, of which value is the number, and
// returns the length of what it has read; negative when it cannot be read. A
// group, which no message here has, cannot.
func fieldHead(b []byte) (key, value uint64, n int) {
	if len(b) >= 2 && b[0] >= 1<<3 && b[0] < 1<<7 { // most fields are read here
		switch key = uint64(b[0]); {
		case key&wireMask == wireFixed64 && len(b) >= 9:
			return key, binary.LittleEndian.Uint64(b[1:]), 9
		case key&wireMask == wireFixed32 && len(b) >= 5:
			return key, uint64(binary.LittleEndian.Uint32(b[1:])), 5
		case key&wireMask != wireVarint && key&wireMask != wireBytes:
		case b[1] < 1<<7:
			return key, uint64(b[1]), 2
		case len(b) < 4:
		case b[2] < 1<<7:
			return key, uint64(b[1]&0x7f) | uint64(b[2])<<7, 3
		case b[3] < 1<<7: // steps up to two million
			return key, uint64(b[1]&0x7f) | uint64(b[2]&0x7f)<<7 | uint64(b[3])<<14, 4
		}
	}
	key, n = protowire.ConsumeVarint(b)
	if n < 0 || key>>3 == 0 || key>>3 > uint64(protowire.MaxValidNumber) {
		return 0, 0, -1
	}
	m := -1
	switch b = b[n:]; key & wireMask {
	case wireVarint, wireBytes:
		value, m = protowire.ConsumeVarint(b)
	case wireFixed64:
		value, m = protowire.ConsumeFixed64(b)
	case wireFixed32:
		var v uint32
		v, m = protowire.ConsumeFixed32(b)
		value = uint64(v)
	}
	if m < 0 {
		return 0, 0, -1
	}
	return key, value, n + m
}

// message walks over the fields of a message in memory. It holds places and no parts of
// it, since pointers cost more to write.
type message struct {
	whole []byte
	at    int // what comes after the field begins here
	key   uint64
	value uint64 // of a number; the length of other fields
	err   error  // why there is no next one, if the message is not whole
}

// next goes to the next field and reports whether there is one.
func (m *message) next() bool {
	if m.at >= len(m.whole) {
		return false
	}
	key, value, n := fieldHead(m.whole[m.at:])
	end := m.at + n
	if n >= 0 && key&wireMask == wireBytes {
		if value > uint64(len(m.whole)-end) {
			n = -1
		}
		end += int(value)
	}
	if n < 0 {
		m.at, m.err = len(m.whole), errProtobuf
		return false
	}
	m.key, m.value, m.at = key, value, end
	return true
}

// begins returns where the bytes of a field that is no number begin.
func (m *message) begins() int { return m.at - int(m.value) }

// bytes returns those of a field that is no number.
func (m *message) bytes() []byte { return m.whole[m.begins():m.at] }

// within returns the last field of that key in a message; nil when there is none,
// or the message is not whole.
func within(b []byte, key uint64) (found []byte) {
	m := message{whole: b}
	for m.next() {
		if m.key == key {
			found = m.bytes()
		}
	}
	if m.err != nil {
		return nil
	}
	return found
}
