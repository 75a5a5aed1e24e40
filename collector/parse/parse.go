// Package parse turns what a program wrote into samples: lines of text, lines of
// JSON, and the records of TensorBoard event files. It holds no state between
// lines and reads no files. It imports the standard library only.
package parse

import "time"

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
