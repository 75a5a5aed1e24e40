// Package tensorboard writes what TensorBoard shows of a trial: an event file of the
// hparams plugin, so that the HPARAMS tab over the folder of an experiment lists its
// trials with their parameters, and curves. Everything is a value; the caller writes
// the bytes.
package tensorboard

import (
	"cmp"
	"encoding/binary"
	"hash/crc32"
	"math"
	"slices"
	"strconv"
	"time"
)

// Parameter is a parameter of a trial.
type Parameter struct{ Name, Value string }

// Session is one trial. TensorBoard names it by the directory of the file, and
// looks for its metrics in the runs at and below that directory.
type Session struct {
	// Group is the name under which TensorBoard joins several sessions of one
	// trial.
	Group string
	// Started is when the trial began.
	Started time.Time
	// Parameters of the trial, in any order. A value that is a finite decimal
	// number is shown on a numeric axis, others are text.
	Parameters []Parameter
}

// Status is how a session ended, as the plugin counts it.
type Status uint64

// How a session may end.
const (
	StatusUnknown Status = iota
	StatusSuccess
	StatusFailure
)

// Names and numbers of the hparams plugin.
const (
	plugin   = "hparams"
	tagStart = "_hparams_/session_start_info"
	tagEnd   = "_hparams_/session_end_info"

	infoStart = 3 // HParamsPluginData.session_start_info
	infoEnd   = 4 // .session_end_info
)

// Start returns an event file that says that the session began.
func Start(s Session) []byte {
	var info []byte
	sorted := slices.SortedFunc(slices.Values(s.Parameters), func(a, b Parameter) int { return cmp.Compare(a.Name, b.Name) })
	for _, p := range sorted {
		entry := text(nil, 1, p.Name)
		info = part(info, 1, part(entry, 2, value(p.Value)))
	}
	info = text(info, 4, s.Group)
	info = double(info, 5, seconds(s.Started))
	return append(Version(s.Started), event(s.Started, tagStart, infoStart, info)...)
}

// Version returns how an event file begins.
func Version(at time.Time) []byte {
	return Record(text(double(nil, 1, seconds(at)), 3, "brain.Event:2"))
}

// Scalar returns a record of one value of one tag.
func Scalar(at time.Time, step int64, tag string, value float64) []byte {
	v := binary.LittleEndian.AppendUint32(append(text(nil, 1, tag), 2<<3|5), math.Float32bits(float32(value)))
	return Record(part(number(double(nil, 1, seconds(at)), 2, uint64(step)), 5, part(nil, 1, v)))
}

// End returns what is appended to the file of Start when the session has ended.
func End(status Status, ended time.Time) []byte {
	var info []byte
	if status != StatusUnknown {
		info = number(info, 1, uint64(status))
	}
	return event(ended, tagEnd, infoEnd, double(info, 2, seconds(ended)))
}

// value is a google.protobuf.Value: 2 number_value, 3 string_value.
func value(s string) []byte {
	if v, err := strconv.ParseFloat(s, 64); err == nil && !math.IsInf(v, 0) && !math.IsNaN(v) {
		return double(nil, 2, v)
	}
	return text(nil, 3, s)
}

// event is a record with one value of the plugin: its data is in the metadata,
// and its tensor is empty.
func event(at time.Time, tag string, field byte, info []byte) []byte {
	data := part(nil, field, info) // its version, 0, is left out
	metadata := part(nil, 1, part(text(nil, 1, plugin), 2, data))
	tensor := part(number(nil, 1, 1), 2, part(nil, 2, nil)) // float, of shape (0)
	v := part(part(text(nil, 1, tag), 8, tensor), 9, metadata)
	return Record(part(double(nil, 1, seconds(at)), 5, part(nil, 1, v)))
}

func seconds(t time.Time) float64 { return float64(t.UnixMicro()) / 1e6 }

// The fields of protobuf messages, whose numbers are below 16.

func number(b []byte, field byte, v uint64) []byte {
	return binary.AppendUvarint(append(b, field<<3), v)
}

func double(b []byte, field byte, v float64) []byte {
	return binary.LittleEndian.AppendUint64(append(b, field<<3|1), math.Float64bits(v))
}

func part(b []byte, field byte, message []byte) []byte {
	return append(binary.AppendUvarint(append(b, field<<3|2), uint64(len(message))), message...)
}

func text(b []byte, field byte, s string) []byte { return part(b, field, []byte(s)) }

// Record is an event as it stands in an event file: framed as TFRecord does, by its
// length and by checksums of both.
func Record(data []byte) []byte {
	table := crc32.MakeTable(crc32.Castagnoli)
	masked := func(b []byte) uint32 {
		c := crc32.Checksum(b, table)
		return (c>>15 | c<<17) + 0xa282ead8
	}
	b := binary.LittleEndian.AppendUint64(make([]byte, 0, len(data)+16), uint64(len(data)))
	b = binary.LittleEndian.AppendUint32(b, masked(b))
	return binary.LittleEndian.AppendUint32(append(b, data...), masked(data))
}
