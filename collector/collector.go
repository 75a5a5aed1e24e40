// Package collector holds the words of measurement: what a point is, where
// points come from (Source), where they are kept (Store), and how a trial's
// points become one observation (Reduce).
//
// The package imports the standard library only.
package collector

import (
	"context"
	"iter"
	"time"
)

// NoStep is the Step of a point whose source states none.
const NoStep int64 = -1

// Point is one measured value of one metric.
type Point struct {
	// Metric is the name under which the value was reported.
	Metric string
	// Value is the number; NaN and the infinities are kept as what they are.
	Value float64
	// Text is the value as the source wrote it, when that differs from the
	// shortest form of Value (for instance "0.50", or a value that is not a
	// number; Value is then NaN). Empty otherwise.
	Text string
	// Step is the training step, epoch or iteration, or NoStep.
	Step int64
	// Time is the time that the source states, else the time of reading.
	Time time.Time
	// Source names where the point was read, stable across restarts of the
	// collector: "stdout", "file:/var/log/katib/metrics.log",
	// "tfevent:train/events.out.tfevents.1.host", "push".
	Source string
	// Seq is the point's position in its source: the byte offset of the match
	// or record for files, a counter for pushes. It grows within a source.
	Seq int64
}

// TrialID names a trial. UID is the identity; names may be used again.
type TrialID struct {
	Namespace string
	Name      string
	// Experiment is the name of the trial's experiment, in the same namespace.
	// Empty: not known.
	Experiment string
	UID        string
}

// Attempt is one start of the measured container of a trial.
type Attempt struct {
	// ID is "<pod UID>/<restart count>".
	ID string
	// Started orders the attempts of a trial.
	Started time.Time
}

// Source yields the points of one origin, from its beginning.
//
// Points blocks until there are new points, yields them in order of Seq, and
// ends after the origin was told to drain and everything was read. An error
// that is yielded does not end the sequence unless it is the last element: a
// line that cannot be read is reported and passed over. Cancelling ctx ends the
// sequence at once, with ctx's error.
type Source interface {
	Points(ctx context.Context) iter.Seq2[Point, error]
}

// Series is the points of one metric in one attempt, in order of (Step, Seq).
type Series struct {
	Attempt Attempt
	Metric  string
	Points  []Point
}

// AttemptState says how far the reports of an attempt have come.
type AttemptState struct {
	Attempt Attempt
	// Acked is, for each source, the largest Seq stored plus one.
	Acked map[string]int64
	// Final is true once the collector said that everything was sent.
	Final bool
	// Note is what the collector said at the end: lines it could not read,
	// points it had to drop. Empty when all is well.
	Note string
}
