package probe_test

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/vernier-ml/vernier/collector/tensorboard"
)

// put writes a file with its folders.
func put(t *testing.T, path string, b []byte) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// eventFile is an event file that began at a time, with values of one tag, one
// second after the other, from a step on.
func eventFile(wall float64, tag string, step int64, values ...float32) []byte {
	event := func(wall float64) []byte {
		return protowire.AppendFixed64(protowire.AppendTag(nil, 1, protowire.Fixed64Type), math.Float64bits(wall))
	}
	part := func(to []byte, field protowire.Number, message []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(to, field, protowire.BytesType), message)
	}
	file := tensorboard.Record(part(event(wall), 3, []byte("brain.Event:2")))
	for i, v := range values {
		value := part(nil, 1, []byte(tag))
		value = protowire.AppendFixed32(protowire.AppendTag(value, 2, protowire.Fixed32Type), math.Float32bits(v))
		one := protowire.AppendVarint(protowire.AppendTag(event(wall+float64(i+1)), 2, protowire.VarintType), uint64(step+int64(i)))
		file = append(file, tensorboard.Record(part(one, 5, part(nil, 1, value)))...)
	}
	return file
}

// wandbFile is a file of W&B with values of one metric.
func wandbFile(metric string, values ...float64) []byte {
	file := []byte(":W&B\xe1\xbe\x00")
	for step, v := range values {
		item := protowire.AppendString(protowire.AppendTag(nil, 2, protowire.BytesType), metric)
		item = protowire.AppendString(protowire.AppendTag(item, 16, protowire.BytesType), fmt.Sprint(v))
		number := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), uint64(step))
		history := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), item)
		history = protowire.AppendBytes(protowire.AppendTag(history, 2, protowire.BytesType), number)
		data := append([]byte{1}, protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), history)...)
		file = binary.LittleEndian.AppendUint32(file, crc32.ChecksumIEEE(data))
		file = append(binary.LittleEndian.AppendUint16(file, uint16(len(data)-1)), data...)
	}
	return file
}
