package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/parse"
	"github.com/vernier-ml/vernier/collector/source/events"
	"github.com/vernier-ml/vernier/collector/source/file"
)

// reading is one pass over the data. Seconds are of CPU time, all threads
// together, so that waiting for the machine does not count.
type reading struct {
	seconds float64
	points  int
	mallocs uint64
}

// ownCPU is the CPU time that this process has used.
func ownCPU() time.Duration {
	var use unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &use); err != nil {
		panic(err) // it cannot fail with these arguments
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

// measure runs pass on one processor, after a collection of garbage.
func measure(pass func() (points int, err error)) (reading, error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	begin := ownCPU()
	points, err := pass()
	r := reading{seconds: (ownCPU() - begin).Seconds(), points: points}
	runtime.ReadMemStats(&after)
	r.mallocs = after.Mallocs - before.Mallocs
	return r, err
}

// read measures each workload through its parser and through its source.
func (cfg config) read(ctx context.Context) (rows table, remark string, err error) {
	rows.add("data", "read by", "MB/s of a core", "million points/s", "allocations a record")
	for _, w := range workloads() {
		d, err := w.create(cfg.dir, cfg.mb*1e6)
		if err != nil {
			return rows, "", err
		}
		text, err := os.ReadFile(d.path)
		if err != nil {
			return rows, "", err
		}
		for _, way := range []struct {
			name string
			pass func() (int, error)
		}{
			{"parser, in memory", func() (int, error) { return parserPass(d, text) }},
			{"source, from the file", func() (int, error) { return sourcePass(ctx, d) }},
		} {
			var rates, points, mallocs sample
			for range cfg.rounds + 1 { // the first fills the page cache
				r, err := measure(way.pass)
				if err == nil && r.points != d.points {
					err = fmt.Errorf("%s by the %s: %d points of %d", w.name, way.name, r.points, d.points)
				}
				if err != nil {
					return rows, "", err
				}
				rates = append(rates, float64(d.bytes)/1e6/r.seconds)
				points = append(points, float64(r.points)/1e6/r.seconds)
				mallocs = append(mallocs, float64(r.mallocs)/float64(d.records))
			}
			rows.add(w.name, way.name, rates[1:].spread(0), points[1:].spread(1), fmt.Sprintf("%.3f", mallocs[1:].median()))
		}
		if err := os.RemoveAll(d.dir); err != nil {
			return rows, "", err
		}
	}
	return rows, "", nil
}

// parserPass hands what is in memory to the parser.
func parserPass(d data, text []byte) (points int, err error) {
	if d.format == "events" {
		return eventsPass(bytes.NewReader(text))
	}
	parser, err := lineParser(d.format)
	if err != nil {
		return 0, err
	}
	skipper, _ := parser.(*parse.Text)
	var samples []collector.Point
	for {
		if skipper != nil && len(samples) == 0 { // as the sources do
			text = text[skipper.Skip(text):]
		}
		end := bytes.IndexByte(text, '\n')
		if end < 0 {
			return points, nil
		}
		if samples, err = parser.Parse(samples[:0], text[:end]); err != nil {
			return points, err
		}
		points += len(samples)
		text = text[end+1:]
	}
}

func eventsPass(r io.ReaderAt) (points int, err error) {
	events, wanted := parse.NewEvents(), parse.NewWanted(tags, nil)
	for at := int64(0); ; {
		next, err := events.Read(r, at, wanted, func(parse.Scalar) bool { points++; return true })
		if err != nil || next == at {
			return points, err
		}
		at = next
	}
}

func lineParser(format string) (parse.Line, error) {
	if format == "json" {
		return parse.NewJSON(tags), nil
	}
	return parse.NewText(tags, nil)
}

// sourcePass reads the file as the sidecar does.
func sourcePass(ctx context.Context, d data) (points int, err error) {
	drain := make(chan struct{})
	close(drain)
	var s collector.Source
	if d.format == "events" {
		s, err = events.New(events.Config{Dir: d.dir, Metrics: tags, Drain: drain})
	} else {
		s, err = file.Open(file.Config{Path: d.path, Format: strings.ToUpper(d.format), Metrics: tags, Drain: drain})
	}
	if err != nil {
		return 0, err
	}
	for _, err := range s.Points(ctx) {
		if err != nil {
			return points, err
		}
		points++
	}
	return points, nil
}
