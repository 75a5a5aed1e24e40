package source

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
)

// wandbHeader begins each of W&B's files.
const wandbHeader = ":W&B\xe1\xbe\x00"

// wandbLog is one call of run.log as W&B writes it, where it fits into a block.
func wandbLog(step int, metric string, value float64) []byte {
	item := protowire.AppendString(protowire.AppendTag(nil, 2, protowire.BytesType), metric)
	item = protowire.AppendString(protowire.AppendTag(item, 16, protowire.BytesType), fmt.Sprint(value))
	number := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), uint64(step))
	history := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), item)
	history = protowire.AppendBytes(protowire.AppendTag(history, 2, protowire.BytesType), number)
	data := append([]byte{1}, protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), history)...)
	b := binary.LittleEndian.AppendUint32(nil, crc32.ChecksumIEEE(data))
	return append(binary.LittleEndian.AppendUint16(b, uint16(len(data)-1)), data...)
}

// appendFile appends to a file, which it makes with its folders.
func appendFile(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// wandbAll reads a directory to its end. Before each poll but the last, the next
// of steps is done.
func wandbAll(t *testing.T, dir string, metrics []string, steps ...func()) (points, errs []string) {
	t.Helper()
	drain := make(chan struct{})
	next := func() {
		if len(steps) == 0 {
			close(drain)
			return
		}
		steps[0]()
		steps = steps[1:]
	}
	next()
	now := time.Unix(0, 0)
	clock := Clock{
		Now:   func() time.Time { now = now.Add(time.Second); return now },
		After: func(time.Duration) <-chan time.Time { next(); return quick.After(0) },
	}
	src, err := NewWandbDir(WandbDirConfig{Dir: dir, Metrics: metrics, Drain: drain, Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	seq := map[string]int64{}
	read, errs := collected(t, src)
	for _, p := range read {
		if last, seen := seq[p.Source]; seen && p.Seq <= last {
			t.Errorf("%s: Seq %d after %d", p.Source, p.Seq, last)
		}
		seq[p.Source] = p.Seq
		points = append(points, fmt.Sprintf("%s %s=%v at %d", p.Source, p.Metric, p.Value, p.Step))
	}
	return points, errs
}

func TestWandbDir(t *testing.T) {
	dir := t.TempDir()
	first, second := filepath.Join(dir, "wandb/offline-run-1-a/run-a.wandb"), filepath.Join(dir, "wandb/offline-run-2-b/run-b.wandb")
	late := wandbLog(1, "loss", 2)
	points, errs := wandbAll(t, filepath.Join(dir, "wandb"), []string{"loss"},
		func() {}, // there is nothing yet
		func() { appendFile(t, first, []byte(wandbHeader[:3])) },
		func() { appendFile(t, first, append([]byte(wandbHeader[3:]), wandbLog(0, "loss", 3)...)) },
		func() { appendFile(t, first, append(wandbLog(1, "acc", 9), late[:10]...)) },
		func() { appendFile(t, first, late[10:]) },
		func() { appendFile(t, second, append([]byte(wandbHeader), wandbLog(0, "loss", 4)...)) },
		func() { appendFile(t, second, wandbLog(1, "loss", 1)) },
		func() { appendFile(t, filepath.Join(dir, "wandb/offline-run-2-b/files/notes.txt"), []byte("x")) },
		func() {
			if err := os.Symlink("offline-run-2-b", filepath.Join(dir, "wandb/latest-run")); err != nil {
				t.Error(err)
			}
			if err := os.Symlink(second, filepath.Join(dir, "wandb/link.wandb")); err != nil {
				t.Error(err)
			}
			if err := syscall.Mkfifo(filepath.Join(dir, "wandb/pipe.wandb"), 0o600); err != nil {
				t.Error(err)
			}
		},
	)
	want := []string{
		"wandb:offline-run-1-a/run-a.wandb loss=3 at 0", "wandb:offline-run-1-a/run-a.wandb loss=2 at 1",
		"wandb:offline-run-2-b/run-b.wandb loss=4 at 0", "wandb:offline-run-2-b/run-b.wandb loss=1 at 1",
	}
	if diff := cmp.Diff(want, points); diff != "" {
		t.Errorf("points (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{"wandb: the metric loss is in several runs, offline-run-1-a/run-a.wandb and offline-run-2-b/run-b.wandb; all are read"}, errs); diff != "" {
		t.Errorf("errors (-want +got)\n%s", diff)
	}
}

func TestWandbDirSaysWhatIsWrong(t *testing.T) {
	good := append([]byte(wandbHeader), wandbLog(0, "val_loss", 3)...)
	broken := append(append([]byte{}, good...), good[7:]...)
	broken[len(broken)-1] ^= 1
	tests := map[string]struct {
		file  []byte // nil: none
		steps func(path string) []func()
		want  string
	}{
		"no file":            {want: "no file *.wandb was written below"},
		"some other file":    {file: []byte("hello world"), want: "run-a.wandb: the file is not a W&B log of a known version"},
		"a mistyped metric":  {file: good, want: `the metric val_los was never logged: did you mean val_loss?; there is "val_loss"`},
		"a broken last line": {file: broken, want: "a part of the W&B log was passed over: at byte "},
		"a file that shrinks": {file: good, want: "has shrunk from", steps: func(path string) []func() {
			return []func(){func() {}, func() {
				if err := os.Truncate(path, 3); err != nil {
					t.Error(err)
				}
			}}
		}},
		"a record that breaks off": {file: good[:len(good)-2], want: "the metric val_los was never logged"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "run-a.wandb")
			if test.file != nil {
				appendFile(t, path, test.file)
			}
			var steps []func()
			if test.steps != nil {
				steps = test.steps(path)
			}
			points, errs := wandbAll(t, dir, []string{"val_los"}, steps...)
			if len(points) > 0 || !strings.Contains(strings.Join(errs, "\n"), test.want) {
				t.Errorf("points %q, errors %q; want one with %q", points, errs, test.want)
			}
		})
	}
}

func TestWandbDirEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	dir := t.TempDir()
	appendFile(t, filepath.Join(dir, "run-a.wandb"), append([]byte(wandbHeader), wandbLog(0, "loss", 3)...))
	src, err := NewWandbDir(WandbDirConfig{Dir: dir, Metrics: []string{"loss"}, Clock: quick})
	if err != nil {
		t.Fatal(err)
	}
	var last error
	for _, last = range src.Points(ctx) {
		cancel()
	}
	if !errors.Is(last, context.Canceled) {
		t.Errorf("ended with %v", last)
	}
}
