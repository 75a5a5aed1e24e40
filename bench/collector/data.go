package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"strconv"
)

// tags are the metrics of all data, in turn.
var tags = []string{"loss", "accuracy", "val_loss", "val_accuracy"}

// workload is a kind of data.
type workload struct {
	name   string
	format string // events, text or json
	// record appends the nth record and returns how many points it has.
	record func(b []byte, n int) ([]byte, int)
}

func workloads() []workload {
	return []workload{
		{"TFEvent v1, dense", "events", func(b []byte, n int) ([]byte, int) {
			return appendEvent(b, n, false), 1
		}},
		{"TFEvent v2, dense", "events", func(b []byte, n int) ([]byte, int) {
			return appendEvent(b, n, true), 1
		}},
		{"text, every line matches", "text", func(b []byte, n int) ([]byte, int) {
			b = append(strconv.AppendInt(append(b, "epoch="...), int64(n/100), 10), " step="...)
			b = append(strconv.AppendInt(b, int64(n), 10), ' ')
			return append(appendPair(b, n, "="), '\n'), 1
		}},
		{"text, 1 line in 100 matches", "text", func(b []byte, n int) ([]byte, int) {
			if n%100 == 0 {
				return append(appendPair(b, n, "="), '\n'), 1
			}
			return append(b, "2026-11-21 10:00:00,123 INFO trainer: moved batch of 64 samples to the device and ran the forward pass\n"...), 0
		}},
		{"JSON lines", "json", func(b []byte, n int) ([]byte, int) {
			b = append(strconv.AppendInt(append(b, `{"step": `...), int64(n), 10), `, "`...)
			b = append(append(b, tags[n%len(tags)]...), `": `...)
			return append(appendValue(b, n), "}\n"...), 1
		}},
	}
}

func appendPair(b []byte, n int, between string) []byte {
	return appendValue(append(append(b, tags[n%len(tags)]...), between...), n)
}

// appendValue writes a number of the usual length.
func appendValue(b []byte, n int) []byte { return strconv.AppendFloat(b, value(n), 'f', 6, 64) }

func value(n int) float64 { return 2 + math.Sin(float64(n)/1000) }

// appendEvent appends a record of an event file: a simple_value, as TensorFlow 1
// and PyTorch write it, or a tensor with the metadata of the scalars plugin, as
// TensorFlow 2 does. No package writes these millions in seconds.
func appendEvent(b []byte, n int, v2 bool) []byte {
	tag := tags[n%len(tags)]
	var v [96]byte
	val := append(append(v[:0], 0x0a, byte(len(tag))), tag...)
	if v2 {
		const metadata = "\x4a\x0b\x0a\x09\x0a\x07scalars"
		val = append(val, metadata...)
		val = append(val, 0x42, 10, 0x08, 0x01, 0x12, 0x00, 0x22, 4)
	} else {
		val = append(val, 0x15)
	}
	val = binary.LittleEndian.AppendUint32(val, math.Float32bits(float32(value(n))))
	start := len(b)
	b = append(b, make([]byte, 12)...)
	b = binary.LittleEndian.AppendUint64(append(b, 0x09), math.Float64bits(1.79e9+float64(n)/100))
	b = binary.AppendUvarint(append(b, 0x10), uint64(n))
	b = append(append(b, 0x2a, byte(len(val)+2), 0x0a, byte(len(val))), val...)
	binary.LittleEndian.PutUint64(b[start:], uint64(len(b)-start-12))
	binary.LittleEndian.PutUint32(b[start+8:], maskedCRC(b[start:start+8]))
	return binary.LittleEndian.AppendUint32(b, maskedCRC(b[start+12:]))
}

func maskedCRC(b []byte) uint32 {
	crc := crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))
	return (crc>>15 | crc<<17) + 0xa282ead8
}

// write writes records from the nth on until there are size bytes.
func (w workload) write(to io.Writer, n int, size int64) (next, points int, bytes int64, err error) {
	out := bufio.NewWriterSize(to, 1<<20)
	var b []byte
	for bytes < size {
		var more int
		b, more = w.record(b[:0], n)
		n, points, bytes = n+1, points+more, bytes+int64(len(b))
		if _, err := out.Write(b); err != nil {
			return n, points, bytes, err
		}
	}
	return n, points, bytes, out.Flush()
}

// data is a file of a workload.
type data struct {
	workload
	dir, path string
	bytes     int64
	points    int
	records   int
}

// create writes a file of about size bytes in a directory of its own in dir.
func (w workload) create(dir string, size int64) (d data, err error) {
	d = data{workload: w}
	if d.dir, err = os.MkdirTemp(dir, "data-*"); err != nil {
		return d, err
	}
	d.path = d.dir + "/metrics.log"
	if w.format == "events" {
		d.path = d.dir + "/events.out.tfevents.1790000000.host"
	}
	f, err := os.Create(d.path)
	if err != nil {
		return d, err
	}
	d.records, d.points, d.bytes, err = w.write(f, 0, size)
	if err != nil {
		return d, fmt.Errorf("write %s: %w", d.path, err)
	}
	return d, f.Close()
}
