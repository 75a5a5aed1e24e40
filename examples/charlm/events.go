package main

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"os"
	"path/filepath"
	"time"
)

// scalar is one value under a tag.
type scalar struct {
	tag   string
	value float64
}

// eventWriter writes a TensorBoard event file: records of a length, the data
// and their checksums, where the data is a tensorflow.Event in protobuf form.
// Each event is written at once, so that it is visible while training runs.
type eventWriter struct{ file *os.File }

func newEventWriter(dir string, now time.Time) (*eventWriter, error) {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost" // only a part of the file name
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("making --logdir: %w", err)
	}
	name := fmt.Sprintf("events.out.tfevents.%010d.%s.%d", now.Unix(), host, os.Getpid())
	f, err := os.Create(filepath.Join(dir, name))
	if err != nil {
		return nil, fmt.Errorf("making an event file in --logdir: %w", err)
	}
	w := &eventWriter{f}
	return w, w.record(bytesField(wallTime(now), 3, []byte("brain.Event:2")))
}

// Scalars writes an event with some values.
func (w *eventWriter) Scalars(now time.Time, step int64, values ...scalar) error {
	var summary []byte
	for _, v := range values {
		value := bytesField(nil, 1, []byte(v.tag))
		value = append(value, 2<<3|5) // simple_value, a 32-bit number
		value = binary.LittleEndian.AppendUint32(value, math.Float32bits(float32(v.value)))
		summary = bytesField(summary, 1, value)
	}
	event := append(wallTime(now), 2<<3) // step, a varint
	event = binary.AppendUvarint(event, uint64(step))
	return w.record(bytesField(event, 5, summary))
}

// Close closes the file.
func (w *eventWriter) Close() error { return w.file.Close() }

func (w *eventWriter) record(data []byte) error {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(data)))
	b = binary.LittleEndian.AppendUint32(b, masked(b))
	b = append(b, data...)
	b = binary.LittleEndian.AppendUint32(b, masked(data))
	if _, err := w.file.Write(b); err != nil {
		return fmt.Errorf("writing TensorBoard events: %w", err)
	}
	return nil
}

// masked is the checksum of the format: CRC-32C, rotated and offset.
func masked(b []byte) uint32 {
	c := crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))
	return (c>>15 | c<<17) + 0xa282ead8
}

// wallTime starts an event with its time, a 64-bit float in field 1.
func wallTime(t time.Time) []byte {
	return binary.LittleEndian.AppendUint64([]byte{1<<3 | 1}, math.Float64bits(float64(t.UnixMicro())/1e6))
}

func bytesField(dst []byte, number byte, b []byte) []byte {
	dst = binary.AppendUvarint(append(dst, number<<3|2), uint64(len(b)))
	return append(dst, b...)
}
