// Package parse turns what a program wrote into samples: lines of text, of JSON
// and of logfmt, tables of comma-separated values, expositions, and the records
// of TensorBoard event files and W&B logs. It opens no files.
package parse

import (
	"slices"
	"time"

	"github.com/vernier-ml/vernier/collector"
)

// Line reads one line. Implementations may be used by one goroutine at a time.
//
// Samples are points without a Source, whose Time is zero where the line states none.
// Their Seq tells those of a line apart: it grows from sample to sample and is less
// than the line's length. It is the place of the name in text (without escape
// sequences), and a number from 0 on in other formats.
type Line interface {
	// Parse appends the samples of a line (without its end-of-line bytes) to
	// dst, in order of Seq. A line without samples is not an error; a line
	// that should have held one but cannot be read is. Samples found in a line
	// that also gives an error are returned with it. The returned samples do
	// not refer to line.
	Parse(dst []collector.Point, line []byte) ([]collector.Point, error)
	// Reset forgets what is remembered of earlier lines (an epoch, the columns of a
	// table). It is called at the beginning of a text.
	Reset()
}

// byteOrderMark begins a text that some editors and programs on Windows write.
var byteOrderMark = []byte("\ufeff")

// wanted returns the metrics without repeats. One without a name is never found.
func wanted(metrics []string) []string {
	names := slices.Sorted(slices.Values(metrics))
	return slices.DeleteFunc(slices.Compact(names), func(n string) bool { return n == "" })
}

// record collects the samples of one line in which a name has one value: the
// last that the line states.
type record struct {
	index map[string]int    // of the names
	found []collector.Point // by index; those without a metric were not found
	steps stepFinder
	time  stamp
	epochs
}

// newRecord returns a record of the named metrics.
func newRecord(metrics []string) record {
	names := wanted(metrics)
	r := record{index: make(map[string]int, len(names)), found: make([]collector.Point, len(names)), epochs: newEpochs()}
	for i, n := range names {
		r.index[n] = i
	}
	return r
}

// begin starts the next line.
func (r *record) begin() {
	clear(r.found)
	r.steps, r.time = newStepFinder(), stamp{}
}

// key takes the value of a key that may say the step or the time, and reports
// whether it can mean nothing else.
func (r *record) key(name, value string) (reserved bool) {
	if isTime(name) {
		return r.time.offer(name, value)
	}
	rank := rankOf([]byte(name))
	if rank == epochRank && r.steps.epoch == collector.NoStep {
		r.steps.epoch = wholeStep(value)
	}
	if rank <= r.steps.rank && rank != noRank {
		r.steps.set(rank, value)
	}
	return rank != noRank
}

// end appends what was found.
func (r *record) end(dst []collector.Point) []collector.Point {
	seq, step := int64(0), collector.NoStep
	for _, s := range r.found {
		if s.Metric == "" {
			continue
		}
		if seq == 0 {
			step = r.epochs.step(&r.steps)
		}
		s.Step, s.Time, s.Seq = step, r.time.at, seq
		dst = append(dst, s)
		seq++
	}
	return dst
}

// Reset implements Line.
func (r *record) Reset() { r.epochs = newEpochs() }

// stamp keeps the time of a record.
type stamp struct {
	at   time.Time
	sure bool // from "timestamp", which is better than the others
}

// isTime reports whether a key may say the time of its record.
func isTime(key string) bool { return key == "timestamp" || key == "time" || key == "ts" }

// offer takes the value of a key if that says the time, and reports whether the
// key can mean nothing else.
func (s *stamp) offer(key, value string) bool {
	switch key {
	case "timestamp":
		if t, ok := timeOf(value); ok {
			s.at, s.sure = t, true
		}
		return true
	case "time", "ts":
		if t, ok := stampOf(value); ok && !s.sure {
			s.at = t
			return true
		}
	}
	return false
}
