package events

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vernier-ml/vernier/collector/source"
	"github.com/vernier-ml/vernier/collector/source/sourcetest"
	"github.com/vernier-ml/vernier/collector/tensorboard"
)

// tensorEvent is a record of an event with a value as TensorFlow 2 writes it.
func tensorEvent(wall float64, step int64, tag string, v float32) []byte {
	part := func(b []byte, n byte, message []byte) []byte {
		return append(binary.AppendUvarint(append(b, n<<3|2), uint64(len(message))), message...)
	}
	tensor := part([]byte{1 << 3, 1}, 2, nil)
	tensor = part(tensor, 4, binary.LittleEndian.AppendUint32(nil, math.Float32bits(v)))
	value := part(nil, 1, []byte(tag))
	value = part(value, 8, tensor)
	if step == 0 {
		value = part(value, 9, part(nil, 1, part(nil, 1, []byte("scalars"))))
	}
	data := binary.LittleEndian.AppendUint64([]byte{1<<3 | 1}, math.Float64bits(wall))
	data = binary.AppendUvarint(append(data, 2<<3), uint64(step))
	return tensorboard.Record(part(data, 5, part(nil, 1, value)))
}

// The time from a file to the points that the source yields. What is said of a
// second of processor time holds on a busy machine too.
func BenchmarkEventDir(b *testing.B) {
	const values = 500_000
	kinds := map[string]func(step int64) []byte{
		"v1": func(step int64) []byte {
			return sourcetest.Event(1.7e9+float64(step)/8, step, "loss", 1/float64(step+1))
		},
		"v2": func(step int64) []byte { return tensorEvent(1.7e9+float64(step)/8, step, "loss", 1/float32(step+1)) },
		"images": func(step int64) []byte {
			if step%100 != 0 {
				return sourcetest.Event(1.7e9+float64(step), step, "loss", 1)
			}
			return sourcetest.Event(1.7e9, step, strings.Repeat("x", 100<<10), 1)
		},
	}
	for _, name := range []string{"v1", "v2", "images"} {
		b.Run(name, func(b *testing.B) {
			dir := b.TempDir()
			file := sourcetest.Event(1.7e9, 0, "", 0)
			for step := range int64(values) {
				if name == "images" && step == values/10 {
					break
				}
				file = append(file, kinds[name](step)...)
			}
			sourcetest.Put(b, dir, "tfevents", file)
			b.SetBytes(int64(len(file)))
			b.ReportAllocs()
			points, before := 0, processorTime(b)
			for b.Loop() {
				for _, err := range newEvents(b, dir, sourcetest.Closed(), "loss").Points(b.Context()) {
					if err != nil {
						b.Fatal(err)
					}
					points++
				}
			}
			used := (processorTime(b) - before).Seconds()
			b.ReportMetric(float64(points)/used/1e6, "Mpoints/cpu-s")
			b.ReportMetric(float64(len(file))*float64(b.N)/used/1e6, "MB/cpu-s")
		})
	}
}

// The processor time of a second in which nothing is written, by the number of
// files; a second has as many polls as a source makes that sees nothing new.
func BenchmarkEventDirIdleSecond(b *testing.B) {
	for _, files := range []int{1, 100, 10_000} {
		b.Run(fmt.Sprintf("%d files", files), func(b *testing.B) {
			dir := b.TempDir()
			for i := range files {
				sourcetest.Put(b, dir, fmt.Sprintf("run-%d/events.out.tfevents.%d", i, i), stepsOf(float64(i+1), "loss", 1))
			}
			settle := time.Now().Add(-time.Hour)
			for i := range files {
				if err := os.Chtimes(filepath.Join(dir, fmt.Sprintf("run-%d", i)), settle, settle); err != nil {
					b.Fatal(err)
				}
			}
			ctx, cancel := context.WithCancel(b.Context())
			defer cancel()
			now := time.Now()
			polled := make(chan time.Time)
			clock := source.Clock{
				Now: func() time.Time { return now },
				After: func(d time.Duration) <-chan time.Time {
					now = now.Add(d)
					return polled
				},
			}
			src, err := New(Config{Dir: dir, Metrics: []string{"loss"}, Clock: clock})
			if err != nil {
				b.Fatal(err)
			}
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				for range src.Points(ctx) {
				}
			}()
			for range 130 { // until the files have settled
				polled <- time.Time{}
			}
			before, from := processorTime(b), now
			for b.Loop() {
				polled <- time.Time{}
			}
			used, passed := processorTime(b)-before, now.Sub(from)
			b.ReportMetric(100*float64(used)/float64(passed), "%core")
			cancel()
			<-ended
		})
	}
}

func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
