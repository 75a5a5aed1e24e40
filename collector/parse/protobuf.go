package parse

import (
	"encoding/binary"
	"errors"
	"math"
)

// The wire types of protobuf.
const (
	wireVarint  = 0
	wireFixed64 = 1
	wireBytes   = 2
	wireFixed32 = 5
)

var errProtobuf = errors.New("its data is not a protobuf message")

// field is one field of a message. Value holds numbers, bytes the rest.
type field struct {
	number uint64
	wire   int
	value  uint64
	bytes  []byte
}

// key is the field's number and wire type as they are written, but for their
// length.
func (f field) key() uint64 { return f.number<<3 | uint64(f.wire) }

// nextField reads the field that b begins with.
func nextField(b []byte) (f field, rest []byte, err error) {
	key, n := binary.Uvarint(b)
	if n <= 0 || key>>3 == 0 {
		return f, nil, errProtobuf
	}
	f.number, f.wire = key>>3, int(key&7)
	b = b[n:]
	switch f.wire {
	case wireVarint:
		if f.value, n = binary.Uvarint(b); n <= 0 {
			return f, nil, errProtobuf
		}
		return f, b[n:], nil
	case wireFixed64:
		if len(b) < 8 {
			return f, nil, errProtobuf
		}
		f.value = binary.LittleEndian.Uint64(b)
		return f, b[8:], nil
	case wireFixed32:
		if len(b) < 4 {
			return f, nil, errProtobuf
		}
		f.value = uint64(binary.LittleEndian.Uint32(b))
		return f, b[4:], nil
	case wireBytes:
		size, n := binary.Uvarint(b)
		if n <= 0 || size > uint64(len(b)-n) {
			return f, nil, errProtobuf
		}
		b = b[n:]
		f.bytes = b[:size]
		return f, b[size:], nil
	default:
		return f, nil, errProtobuf
	}
}

// The values of tensorflow.DataType that hold one number.
const (
	dtFloat  = 1
	dtDouble = 2
	dtInt32  = 3
	dtUint8  = 4
	dtInt16  = 5
	dtInt8   = 6
	dtInt64  = 9
	dtBool   = 10
	dtBF16   = 14
	dtUint16 = 17
	dtHalf   = 19
	dtUint32 = 22
	dtUint64 = 23
)

// valueField returns the field of TensorProto that holds the values of a type
// when they are not in tensor_content; 0 for a type that is no number.
func valueField(dtype uint64) uint64 {
	switch dtype {
	case dtFloat:
		return 5
	case dtDouble:
		return 6
	case dtInt32, dtUint8, dtInt16, dtInt8, dtUint16:
		return 7
	case dtInt64:
		return 10
	case dtBool:
		return 11
	case dtHalf, dtBF16:
		return 13
	case dtUint32:
		return 16
	case dtUint64:
		return 17
	}
	return 0
}

// The fields of TensorProto that are read, with their wire types.
const (
	tensorType    = 1<<3 | wireVarint
	tensorShape   = 2<<3 | wireBytes
	tensorContent = 4<<3 | wireBytes
	tensorFloat   = 5<<3 | wireFixed32
)

// scalarTensor reads a TensorProto of rank 0, whose value is in tensor_content
// or in the field of its type. ok is false for any other.
func scalarTensor(b []byte) (v float64, ok bool, err error) {
	var dtype uint64
	var content []byte
	var inline field
	for i := 0; i < len(b); {
		switch {
		case b[i] == tensorType && i+1 < len(b) && b[i+1] < 0x80:
			dtype = uint64(b[i+1])
			i += 2
		case b[i] == tensorShape && i+1 < len(b) && b[i+1] == 0:
			i += 2
		case b[i] == tensorContent && i+1 < len(b) && b[i+1] <= 8 && i+2+int(b[i+1]) <= len(b):
			content = b[i+2 : i+2+int(b[i+1])]
			i += 2 + len(content)
		case b[i] == tensorFloat && i+5 <= len(b):
			inline = field{number: 5, wire: wireFixed32, value: uint64(binary.LittleEndian.Uint32(b[i+1:]))}
			i += 5
		default:
			f, rest, err := nextField(b[i:])
			if err != nil {
				return 0, false, err
			}
			switch {
			case f.number == 1 && f.wire == wireVarint:
				dtype = f.value
			case f.number == 2 && f.wire == wireBytes && len(f.bytes) > 0:
				return 0, false, nil // it has dimensions, or an unknown rank
			case f.number == 4 && f.wire == wireBytes:
				content = f.bytes
			case f.number >= 5:
				inline = f
			}
			i = len(b) - len(rest)
		}
	}
	if len(content) > 0 {
		v, ok = contentValue(dtype, content)
		return v, ok, nil
	}
	switch want := valueField(dtype); {
	case want == 0 || inline.number != 0 && inline.number != want:
		return 0, false, nil
	case inline.number == 0:
		return 0, true, nil // protobuf leaves out what is zero
	}
	v, ok = inlineValue(dtype, inline)
	return v, ok, nil
}

// contentValue reads a number as it lies in memory, little endian.
func contentValue(dtype uint64, b []byte) (v float64, ok bool) {
	le := binary.LittleEndian
	switch len(b) {
	case 1:
		return byteValue(dtype, b[0])
	case 2:
		return shortValue(dtype, le.Uint16(b))
	case 4:
		switch dtype {
		case dtFloat:
			return decimal(math.Float32frombits(le.Uint32(b))), true
		case dtInt32:
			return float64(int32(le.Uint32(b))), true
		case dtUint32:
			return float64(le.Uint32(b)), true
		}
	case 8:
		switch dtype {
		case dtDouble:
			return math.Float64frombits(le.Uint64(b)), true
		case dtInt64:
			return float64(int64(le.Uint64(b))), true
		case dtUint64:
			return float64(le.Uint64(b)), true
		}
	}
	return 0, false
}

func byteValue(dtype uint64, b byte) (v float64, ok bool) {
	switch dtype {
	case dtInt8:
		return float64(int8(b)), true
	case dtUint8:
		return float64(b), true
	case dtBool:
		return truth(uint64(b)), true
	}
	return 0, false
}

func shortValue(dtype uint64, bits uint16) (v float64, ok bool) {
	switch dtype {
	case dtInt16:
		return float64(int16(bits)), true
	case dtUint16:
		return float64(bits), true
	case dtHalf:
		return half(bits), true
	case dtBF16:
		return bfloat(bits), true
	}
	return 0, false
}

// truth reads a bool: true is 1.
func truth(bits uint64) float64 {
	if bits != 0 {
		return 1
	}
	return 0
}

// inlineValue reads a number from a repeated field of one element, packed or
// not.
func inlineValue(dtype uint64, f field) (v float64, ok bool) {
	bits := f.value
	if f.wire == wireBytes {
		if dtype == dtFloat || dtype == dtDouble {
			return contentValue(dtype, f.bytes)
		}
		n := 0
		if bits, n = binary.Uvarint(f.bytes); n <= 0 || n != len(f.bytes) {
			return 0, false
		}
	}
	switch dtype {
	case dtFloat:
		return decimal(math.Float32frombits(uint32(bits))), f.wire == wireFixed32
	case dtDouble:
		return math.Float64frombits(bits), f.wire == wireFixed64
	case dtHalf:
		return half(uint16(bits)), true
	case dtBF16:
		return bfloat(uint16(bits)), true
	case dtBool:
		return truth(bits), true
	case dtUint32, dtUint64:
		return float64(bits), true
	}
	return float64(int64(bits)), true
}

// half reads an IEEE 754 binary16.
func half(bits uint16) float64 {
	sign := 1.0
	if bits>>15 == 1 {
		sign = -1
	}
	exp, frac := int(bits>>10&0x1f), float64(bits&0x3ff)
	switch exp {
	case 0:
		return sign * math.Ldexp(frac, -24)
	case 0x1f:
		if frac != 0 {
			return math.NaN()
		}
		return math.Inf(int(sign))
	default:
		return sign * math.Ldexp(1024+frac, exp-25)
	}
}

// bfloat reads the upper half of a binary32.
func bfloat(bits uint16) float64 { return decimal(math.Float32frombits(uint32(bits) << 16)) }
