// Package parse turns what a program wrote into samples: lines of text, of JSON
// and of logfmt, tables of comma-separated values, and the records of
// TensorBoard event files. It reads no files. It imports the standard library
// only.
package parse

import (
	"errors"
	"slices"
	"time"
)

// NoStep is the Step of a sample whose line states none.
const NoStep int64 = -1

// Sample is one value of one metric, as found in one line.
type Sample struct {
	// Metric is the wanted name that was matched.
	Metric string
	// Value is the number. It is NaN when Text is not a number.
	Value float64
	// Text is what was written, when that differs from the shortest form of
	// Value. Empty otherwise.
	Text string
	// Step is the step, epoch or iteration that the line states, or NoStep.
	Step int64
	// Time is the time that the line states, or the zero time.
	Time time.Time
	// Offset is the place of the match in the line, in bytes. It grows from
	// sample to sample of a line; no two samples share one.
	Offset int
}

// Line reads one line. Implementations may be used by one goroutine at a time.
type Line interface {
	// Parse appends the samples of a line (without its end-of-line bytes) to
	// dst, in order of Offset. A line without samples is not an error; a line
	// that should have held one but cannot be read is. Samples found in a line
	// that also gives an error are returned with it. The returned samples do
	// not refer to line.
	Parse(dst []Sample, line []byte) ([]Sample, error)
}

// Skipper is implemented by lines that tell in many lines at once that there is
// nothing in them.
type Skipper interface {
	Line
	// Skip returns the length of lines at the beginning of b, each with its line
	// feed, that have neither samples nor errors, and that leave Parse as it is.
	// It may be 0. There is no carriage return in b, and its first byte begins a
	// line. It is worth calling where the line before had no sample.
	Skip(b []byte) int
}

// Resetter is implemented by lines that remember something of the lines before
// (an epoch, the columns of a table).
type Resetter interface {
	// Reset forgets it. Whoever begins a text at its beginning calls it.
	Reset()
}

// Peeker is implemented by those of them that can read a line as if they had not.
type Peeker interface {
	// Peek does what Parse does and remembers nothing of the line.
	Peek(dst []Sample, line []byte) ([]Sample, error)
}

// wanted returns the metrics without repeats.
func wanted(metrics []string) ([]string, error) {
	if len(metrics) == 0 {
		return nil, errors.New("no metric is named")
	}
	if slices.Contains(metrics, "") {
		return nil, errors.New("a metric has an empty name")
	}
	names := slices.Sorted(slices.Values(metrics))
	return slices.Compact(names), nil
}

// metricName is a wanted name, with the place of its sample in the record that
// is being read.
type metricName struct {
	name   string
	record uint64
	at     int
}

// wantedNames returns the metrics without repeats.
func wantedNames(metrics []string) ([]*metricName, error) {
	names, err := wanted(metrics)
	var out []*metricName
	for _, n := range names {
		out = append(out, &metricName{name: n})
	}
	return out, err
}

// picks collects the samples of one record after the other. A record has one
// value of a metric at most: the last.
type picks struct {
	texts  texts
	record uint64
	out    []Sample
	start  int
	owners []*metricName // of the samples from start on
	void   int           // samples whose metric came again
}

const (
	// maxVoid bounds the samples that are held though their metric came again,
	// beside as many as count.
	maxVoid = 64
	// keptItems and keptBytes bound the room that a parser keeps from one line to
	// the next; a line that needs more gets room of its own.
	keptItems = 4096
	keptBytes = 64 << 10
)

// begin starts the next record, whose samples go behind dst.
func (p *picks) begin(dst []Sample) {
	p.record++
	p.out, p.start, p.owners, p.void = dst, len(dst), p.owners[:0], 0
}

// number takes a number.
func (p *picks) number(m *metricName, raw []byte, v number, offset int) {
	p.add(m, Sample{Metric: m.name, Value: v.value, Text: p.texts.of(raw, v), Offset: offset})
}

// text takes a text whose extent is the value.
func (p *picks) text(m *metricName, text []byte, offset int) {
	s := wholeSample(&p.texts, text)
	s.Metric, s.Offset = m.name, offset
	p.add(m, s)
}

func (p *picks) add(m *metricName, s Sample) {
	if m.record == p.record {
		m.at = -1
		if p.void++; p.void > maxVoid+len(p.owners)/2 {
			p.compact()
		}
	}
	m.record, m.at = p.record, len(p.out)
	p.out, p.owners = append(p.out, s), append(p.owners, m)
}

// compact removes the samples whose metric came again.
func (p *picks) compact() {
	n := 0
	for i, m := range p.owners {
		if m.at == p.start+i {
			m.at = p.start + n
			p.out[m.at], p.owners[n] = p.out[p.start+i], m
			n++
		}
	}
	p.out, p.owners, p.void = p.out[:p.start+n], p.owners[:n], 0
}

// end gives the samples of the record their step and time.
func (p *picks) end(step int64, at time.Time) []Sample {
	if p.void > 0 {
		p.compact()
	}
	out := p.out
	p.out = nil
	if cap(p.owners) > keptItems {
		p.owners = nil
	}
	for i := p.start; i < len(out); i++ {
		out[i].Step, out[i].Time = step, at
	}
	return out
}
