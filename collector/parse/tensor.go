package parse

import (
	"encoding/binary"
	"math"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
)

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

// numeric is how a type of tensors that holds numbers is stored: the field of
// TensorProto that has its values when they are not in tensor_content, its size
// in bytes, and what its bits mean.
type numeric struct {
	field uint64
	size  int
	value func(bits uint64) float64
}

// numerics are these types, by their numbers; the others have no value.
var numerics = [...]numeric{
	dtFloat:  {5, 4, func(bits uint64) float64 { return decimal(math.Float32frombits(uint32(bits))) }},
	dtDouble: {6, 8, math.Float64frombits},
	dtInt32:  {7, 4, func(bits uint64) float64 { return float64(int32(bits)) }},
	dtUint8:  {7, 1, func(bits uint64) float64 { return float64(uint8(bits)) }},
	dtInt16:  {7, 2, func(bits uint64) float64 { return float64(int16(bits)) }},
	dtInt8:   {7, 1, func(bits uint64) float64 { return float64(int8(bits)) }},
	dtUint16: {7, 2, func(bits uint64) float64 { return float64(uint16(bits)) }},
	dtInt64:  {10, 8, func(bits uint64) float64 { return float64(int64(bits)) }},
	dtBool:   {11, 1, func(bits uint64) float64 { return min(float64(bits), 1) }},
	dtHalf:   {13, 2, half},
	dtBF16:   {13, 2, func(bits uint64) float64 { return decimal(math.Float32frombits(uint32(bits) << 16)) }},
	dtUint32: {16, 4, func(bits uint64) float64 { return float64(uint32(bits)) }},
	dtUint64: {17, 8, func(bits uint64) float64 { return float64(bits) }},
}

// The fields of TensorProto that are read.
const (
	tensorType    = 1<<3 | wireVarint
	tensorShape   = 2<<3 | wireBytes
	tensorContent = 4<<3 | wireBytes
)

// scalarTensor reads a TensorProto of rank 0, whose value is in tensor_content
// or in the field of its type. ok is false for any other.
func scalarTensor(b []byte) (v float64, ok bool, err error) {
	var dtype uint64
	var content []byte
	inline := message{}
	m := message{whole: b}
	for m.next() {
		switch {
		case m.key == tensorType:
			dtype = m.value
		case m.key == tensorShape && len(m.bytes()) > 0:
			return 0, false, nil // it has dimensions, or an unknown rank
		case m.key == tensorContent:
			content = m.bytes()
		case m.key>>3 >= 5:
			inline = m
		}
	}
	if m.err != nil {
		return 0, false, m.err
	}
	if dtype >= uint64(len(numerics)) || numerics[dtype].value == nil {
		return 0, false, nil
	}
	kind := &numerics[dtype]
	switch {
	case len(content) > 0:
		v, ok = kind.content(content)
	case inline.key == 0:
		v, ok = 0, true // protobuf leaves out what is zero
	case inline.key>>3 == kind.field:
		v, ok = kind.inline(inline)
	}
	return v, ok, nil
}

// content reads a number as it lies in memory, little endian.
func (k *numeric) content(b []byte) (v float64, ok bool) {
	if len(b) != k.size {
		return 0, false
	}
	if k.size == 4 { // most are floats
		return k.value(uint64(binary.LittleEndian.Uint32(b))), true
	}
	var bits [8]byte
	copy(bits[:], b)
	return k.value(binary.LittleEndian.Uint64(bits[:])), true
}

// inline reads a number from a repeated field of one element, packed or not.
func (k *numeric) inline(m message) (v float64, ok bool) {
	wire := wireVarint
	switch k.field {
	case 5:
		wire = wireFixed32
	case 6:
		wire = wireFixed64
	}
	switch {
	case m.key&wireMask == wire:
		return k.value(m.value), true
	case m.key&wireMask != wireBytes:
		return 0, false
	case wire != wireVarint:
		return k.content(m.bytes())
	}
	bits, n := protowire.ConsumeVarint(m.bytes())
	return k.value(bits), n > 0 && n == len(m.bytes())
}

// half reads an IEEE 754 binary16.
func half(bits uint64) float64 {
	sign := 1 - 2*float64(bits>>15&1)
	exponent, fraction := int(bits>>10&0x1f), float64(bits&0x3ff)
	switch {
	case exponent == 0x1f && fraction != 0:
		return math.NaN()
	case exponent == 0x1f:
		return math.Inf(int(sign))
	case exponent == 0:
		return sign * math.Ldexp(fraction, -24)
	}
	return sign * math.Ldexp(1024+fraction, exponent-25)
}

// tens are the powers of ten that a float64 holds exactly.
var tens = [...]float64{
	1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12,
	1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
}

// decimal widens a float by way of its shortest decimal, so that 0.1 stays 0.1. It
// tries decimals of six to nine digits, one of which is always the same float; shorter
// ones are among those of six.
func decimal(f float32) float64 {
	w := float64(f)
	a := math.Abs(w)
	if a < 1<<24 && a == math.Trunc(a) {
		return w
	}
	power := 5 - (int(math.Float32bits(f)>>23&0xff)-127)*1233>>12 // of six digits, or seven
	if math.Float32bits(f)<<9 != 0 && power-1 > -len(tens) && power+4 < len(tens) {
		if scaled(a, power) >= 1e6 {
			power--
		}
		for end := power + 4; power < end; power++ {
			if v := scaled(math.RoundToEven(scaled(w, power)), -power); float32(v) == f {
				return v
			}
		}
	}
	if math.IsNaN(w) || math.IsInf(w, 0) {
		return w
	}
	v, _ := strconv.ParseFloat(strconv.FormatFloat(w, 'g', -1, 32), 64) // a float32 is in range
	return v
}

// scaled returns v times ten to the n, rounded once.
func scaled(v float64, n int) float64 {
	if n < 0 {
		return v / tens[-n]
	}
	return v * tens[n]
}
