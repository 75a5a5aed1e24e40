package parse_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/parse"
)

const wandbBlock = 32 << 10

// wandbLog writes a transaction log as W&B does.
type wandbLog struct{ b []byte }

func newWandbLog() *wandbLog { return &wandbLog{[]byte(":W&B\xe1\xbe\x00")} }

// fragment appends one fragment.
func (l *wandbLog) fragment(kind byte, data []byte) {
	crc := crc32.NewIEEE()
	crc.Write([]byte{kind})
	crc.Write(data)
	l.b = binary.LittleEndian.AppendUint32(l.b, crc.Sum32())
	l.b = binary.LittleEndian.AppendUint16(l.b, uint16(len(data)))
	l.b = append(append(l.b, kind), data...)
}

// record appends one record, in as many fragments as it needs.
func (l *wandbLog) record(data []byte) {
	for first := true; ; first = false {
		if left := wandbBlock - len(l.b)%wandbBlock; left < 7 {
			l.b = append(l.b, make([]byte, left)...)
		}
		room := wandbBlock - len(l.b)%wandbBlock - 7
		last := len(data) <= room
		n := min(room, len(data))
		kind := byte(3) // middle
		switch {
		case first && last:
			kind = 1
		case first:
			kind = 2
		case last:
			kind = 4
		}
		l.fragment(kind, data[:n])
		if data = data[n:]; last {
			return
		}
	}
}

// logged is one call of run.log: pairs of a key, whose parts are parted by "/",
// and its JSON.
func logged(num, step int64, pairs ...string) []byte {
	var history []byte
	add := func(value string, keys ...string) {
		var item []byte
		for _, k := range keys {
			item = protowire.AppendString(protowire.AppendTag(item, 2, protowire.BytesType), k)
		}
		item = protowire.AppendString(protowire.AppendTag(item, 16, protowire.BytesType), value)
		history = protowire.AppendBytes(protowire.AppendTag(history, 1, protowire.BytesType), item)
	}
	add(fmt.Sprintf("%d.25", 1700000000+step), "_timestamp")
	for i := 0; i < len(pairs); i += 2 {
		add(pairs[i+1], strings.Split(pairs[i], "/")...)
	}
	number := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), uint64(step))
	history = protowire.AppendBytes(protowire.AppendTag(history, 2, protowire.BytesType), number)
	return wandbRecord(num, 2, history)
}

// wandbRecord is a record of some type: 2 is history, 7 system metrics.
func wandbRecord(num int64, kind protowire.Number, message []byte) []byte {
	b := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), uint64(num))
	b = protowire.AppendBytes(protowire.AppendTag(b, kind, protowire.BytesType), message)
	return protowire.AppendBytes(protowire.AppendTag(b, 200, protowire.BytesType), []byte("\x0a\x08abcdefgh"))
}

// wandbRead is what was read.
type wandbRead struct {
	Points []string
	Errors []string
}

// readWandb reads from an offset until there is nothing more to read.
func readWandb(t *testing.T, w *parse.Wandb, file []byte, offset int64, ended bool) (wandbRead, int64) {
	t.Helper()
	var got wandbRead
	last := int64(-1)
	for {
		before := offset
		next, err := w.Read(bytes.NewReader(file), offset, ended, func(s collector.Point) bool {
			if s.Seq <= last || s.Seq < before || s.Seq >= int64(len(file)) {
				t.Fatalf("a sample at %d after one at %d, of records from %d in %d bytes", s.Seq, last, before, len(file))
			}
			last = s.Seq
			got.Points = append(got.Points, fmt.Sprintf("%s=%v at %d", s.Metric, s.Value, s.Step))
			return true
		})
		offset = next
		if err == nil {
			return got, offset
		}
		got.Errors = append(got.Errors, err.Error())
		if !errors.Is(err, parse.ErrWandbRecord) {
			return got, offset
		}
		if next <= before {
			t.Fatalf("no way forward from %d: %v", before, err)
		}
	}
}

func wandbReader(t testing.TB, metrics ...string) *parse.Wandb {
	t.Helper()
	return parse.NewWandb(metrics)
}

func TestWandb(t *testing.T) {
	pad := strings.Repeat("x", 100<<10)
	tests := map[string]struct {
		records [][]byte
		want    []string
	}{
		"numbers": {
			[][]byte{logged(1, 0, "loss", "1"), logged(2, 1, "loss", "0.5", "acc", "0.25"), logged(3, 7, "acc", "1e-3")},
			[]string{"loss=1 at 0", "loss=0.5 at 1", "acc=0.25 at 1", "acc=0.001 at 7"},
		},
		"nested keys": {
			[][]byte{logged(1, 3, "val/loss", "2", "a/b/c", "3", "val", "9")},
			[]string{"val.loss=2 at 3", "a.b.c=3 at 3"},
		},
		"what JSON does not have": {
			[][]byte{logged(1, 0, "loss", "NaN"), logged(2, 1, "loss", "Infinity"), logged(3, 2, "loss", "-Infinity")},
			[]string{"loss=NaN at 0", "loss=+Inf at 1", "loss=-Inf at 2"},
		},
		"what is no number": {
			[][]byte{logged(1, 0, "loss", "true", "acc", "[1]", "val/loss", `{"_type":"histogram"}`, "a/b/c", "null"), logged(2, 1, "loss", `"0.50"`, "acc", `""`)},
			[]string{"loss=0.5 at 1"},
		},
		"system metrics and other records": {
			[][]byte{
				wandbRecord(1, 7, logged(1, 0, "loss", "9")), wandbRecord(2, 17, []byte(pad)), logged(3, 1, "loss", "1"),
				wandbRecord(4, 100, nil), nil, logged(5, 2, "loss", "2"),
			},
			[]string{"loss=1 at 1", "loss=2 at 2"},
		},
		"records over many blocks": {
			[][]byte{logged(1, 0, "pad", `"`+pad+`"`, "loss", "1"), logged(2, 1, "loss", "2", "pad", `"`+pad+`"`), logged(3, 2, "loss", "3")},
			[]string{"loss=1 at 0", "loss=2 at 1", "loss=3 at 2"},
		},
		"W&B's own step counts": {
			[][]byte{logged(1, 4, "_step", "12", "loss", "1")},
			[]string{"loss=1 at 12"},
		},
		"a history that says nothing of a step": {
			[][]byte{wandbRecord(1, 2, protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType),
				protowire.AppendString(protowire.AppendTag(protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), "loss"), 16, protowire.BytesType), "4")))},
			[]string{"loss=4 at -1"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			log := newWandbLog()
			for _, r := range test.records {
				log.record(r)
			}
			w := wandbReader(t, "loss", "acc", "val.loss", "a.b.c")
			got, end := readWandb(t, w, log.b, 0, false)
			if diff := cmp.Diff(wandbRead{Points: test.want}, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if end != int64(len(log.b)) {
				t.Errorf("read up to %d of %d bytes", end, len(log.b))
			}
		})
	}
}

func TestWandbTellsTimes(t *testing.T) {
	log := newWandbLog()
	log.record(logged(1, 5, "loss", "0.10"))
	_, err := wandbReader(t, "loss").Read(bytes.NewReader(log.b), 0, false, func(s collector.Point) bool {
		want := collector.Point{Metric: "loss", Value: 0.1, Text: "0.10", Step: 5, Time: time.Unix(1700000005, 25e7).UTC(), Seq: s.Seq}
		if diff := cmp.Diff(want, s); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		return true
	})
	if err != nil {
		t.Error(err)
	}
}

func TestAnyWandbFindsAllNumbers(t *testing.T) {
	log := newWandbLog()
	log.record(logged(1, 5, "loss", "1", "val/acc", "2", "_runtime", "3", "text", `"4"`))
	got, _ := readWandb(t, parse.NewAnyWandb(), log.b, 0, false)
	if diff := cmp.Diff(wandbRead{Points: []string{"loss=1 at 5", "val.acc=2 at 5"}}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// manyRecords is a log with records of sizes that put fragments at every kind of
// place in a block.
func manyRecords(seed uint64, n int) (file []byte, want []string) {
	rng := rand.New(rand.NewPCG(seed, 1))
	log := newWandbLog()
	for i := range n {
		pad := rng.IntN(300)
		switch rng.IntN(8) {
		case 0:
			pad = wandbBlock - len(log.b)%wandbBlock - 60 + rng.IntN(30) // ends near the end of the block
		case 1:
			pad = rng.IntN(3 * wandbBlock)
		case 2:
			log.record(wandbRecord(int64(i), 7, make([]byte, rng.IntN(2*wandbBlock))))
		}
		log.record(logged(int64(i), int64(i), "loss", fmt.Sprint(i), "pad", `"`+strings.Repeat("x", max(pad, 0))+`"`))
		want = append(want, fmt.Sprintf("loss=%d at %d", i, i))
	}
	return log.b, want
}

func TestWandbOfSomethingElse(t *testing.T) {
	for name, file := range map[string]string{"text": "loss=1\nloss=2\n", "another version": ":W&B\xe1\xbe\x01", "zeros": string(make([]byte, 100))} {
		t.Run(name, func(t *testing.T) {
			_, err := wandbReader(t, "loss").Read(strings.NewReader(file), 0, true, nil)
			if !errors.Is(err, parse.ErrNotWandb) {
				t.Errorf("error %v, want ErrNotWandb", err)
			}
		})
	}
	for _, file := range []string{"", ":W", ":W&B\xe1\xbe\x00"} {
		if got, _ := readWandb(t, wandbReader(t, "loss"), []byte(file), 0, false); len(got.Errors) > 0 {
			t.Errorf("%q: %q", file, got.Errors)
		}
	}
}

func TestWandbStops(t *testing.T) {
	log := newWandbLog()
	log.record(logged(1, 1, "loss", "1", "acc", "2"))
	n := 0
	if _, err := wandbReader(t, "loss", "acc").Read(bytes.NewReader(log.b), 0, false, func(collector.Point) bool { n++; return false }); err != nil || n != 1 {
		t.Errorf("%d samples after the first was refused, error %v", n, err)
	}
}

func BenchmarkWandb(b *testing.B) {
	log := newWandbLog()
	for i := range 20000 {
		log.record(logged(int64(i), int64(i), "loss", "0.12345", "val/acc", "0.5", "lr", "0.001"))
	}
	w := wandbReader(b, "loss", "val.acc")
	r := bytes.NewReader(log.b)
	b.SetBytes(int64(len(log.b)))
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		if _, err := w.Read(r, 0, false, func(collector.Point) bool { n++; return true }); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "samples/s")
}
