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
	dtBF16   = 14
	dtUint16 = 17
	dtHalf   = 19
	dtUint32 = 22
	dtUint64 = 23
)

// valueField is the field of TensorProto that holds the values of a type when
// they are not in tensor_content.
var valueField = map[uint64]uint64{
	dtFloat: 5, dtDouble: 6, dtInt32: 7, dtUint8: 7, dtInt16: 7, dtInt8: 7, dtUint16: 7,
	dtInt64: 10, dtHalf: 13, dtBF16: 13, dtUint32: 16, dtUint64: 17,
}

// scalarTensor reads a TensorProto of rank 0: 1 dtype, 2 shape, 4
// tensor_content, and the fields of valueField. ok is false for any other.
func scalarTensor(b []byte) (v float64, ok bool, err error) {
	var dtype uint64
	var content []byte
	var inline field
	for len(b) > 0 {
		f, rest, err := nextField(b)
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
		b = rest
	}
	if len(content) > 0 {
		v, ok = contentValue(dtype, content)
		return v, ok, nil
	}
	want, known := valueField[dtype]
	switch {
	case !known:
		return 0, false, nil
	case inline.number == 0:
		return 0, true, nil // protobuf leaves out what is zero
	case inline.number != want:
		return 0, false, nil
	}
	v, ok = inlineValue(dtype, inline)
	return v, ok, nil
}

// contentValue reads a number as it lies in memory, little endian.
func contentValue(dtype uint64, b []byte) (float64, bool) {
	le := binary.LittleEndian
	switch {
	case dtype == dtFloat && len(b) == 4:
		return decimal(math.Float32frombits(le.Uint32(b))), true
	case dtype == dtDouble && len(b) == 8:
		return math.Float64frombits(le.Uint64(b)), true
	case dtype == dtInt32 && len(b) == 4:
		return float64(int32(le.Uint32(b))), true
	case dtype == dtUint32 && len(b) == 4:
		return float64(le.Uint32(b)), true
	case dtype == dtInt64 && len(b) == 8:
		return float64(int64(le.Uint64(b))), true
	case dtype == dtUint64 && len(b) == 8:
		return float64(le.Uint64(b)), true
	case dtype == dtInt16 && len(b) == 2:
		return float64(int16(le.Uint16(b))), true
	case dtype == dtUint16 && len(b) == 2:
		return float64(le.Uint16(b)), true
	case dtype == dtHalf && len(b) == 2:
		return half(le.Uint16(b)), true
	case dtype == dtBF16 && len(b) == 2:
		return bfloat(le.Uint16(b)), true
	case dtype == dtInt8 && len(b) == 1:
		return float64(int8(b[0])), true
	case dtype == dtUint8 && len(b) == 1:
		return float64(b[0]), true
	}
	return 0, false
}

// inlineValue reads a number from a repeated field of one element, packed or
// not.
func inlineValue(dtype uint64, f field) (float64, bool) {
	bits := f.value
	if f.wire == wireBytes {
		switch dtype {
		case dtFloat, dtDouble:
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
	case dtUint32, dtUint64:
		return float64(bits), true
	default:
		return float64(int64(bits)), true
	}
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
