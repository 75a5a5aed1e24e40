package collector

import (
	"context"
	"time"
)

// Store keeps points. Implementations are chosen by URL scheme and pass the
// contract suite of package store. All methods may be called concurrently. Returned
// values are copies. What is made of points (Reduce, Sample, ReadSeries) are
// functions over Scan.
type Store interface {
	Scanner

	// Append stores points; those already stored (same trial UID, attempt ID,
	// Source and Seq) are passed over, so that a batch may be sent again. It
	// is atomic: on error nothing of the batch was stored, unless the connection
	// to the engine broke while it committed; then all of it or nothing was.
	Append(ctx context.Context, trial TrialID, attempt Attempt, points []Point) error
	// Finish marks an attempt final. Calling it again is not an error.
	Finish(ctx context.Context, trial TrialID, attempt Attempt, note string) error
	// Note replaces what is said of an attempt while it is not final; "" is nothing. A
	// final attempt keeps the note of Finish.
	Note(ctx context.Context, trial TrialID, attempt Attempt, note string) error
	// Delete removes all rows of a trial. An unknown trial is not an error. Long
	// curves go in parts, so that others may write meanwhile; a reader may see a
	// part.
	Delete(ctx context.Context, trialUID string) error

	// Attempts returns the attempts of a trial, oldest first.
	Attempts(ctx context.Context, trialUID string) ([]AttemptState, error)
	// Metrics returns the names of the metrics that a trial reported, in order.
	// It is cheap: no point is read.
	Metrics(ctx context.Context, trialUID string) ([]string, error)

	// Inventory returns every trial that has rows, in order of UID. No point is
	// read.
	Inventory(ctx context.Context) ([]TrialInfo, error)
	// Stat measures the store. It may read all of it.
	Stat(ctx context.Context) (Stat, error)
	Close() error
}

// TrialInfo is a trial in the store.
type TrialInfo struct {
	TrialID
	// Touched is when the trial reported last, by the clock of the process that
	// wrote to the store; it may be up to an hour late.
	Touched time.Time
	// Points is how many points the trial has, of all attempts. A point that two
	// processes stored at the same time may count twice.
	Points int64
	// TextBytes is the size of the values that are kept as text beside the number.
	TextBytes int64
	// Names is how many names of attempts, sources and metrics the trial has.
	Names int64
}

// Stat is the size of a store.
type Stat struct {
	// Engine names the engine and its version, for people.
	Engine string
	// Schema is the version of the schema; zero where there is none.
	Schema int
	// Bytes that the points take up with all indexes, as the engine counts them,
	// free space included; zero where it is not known.
	Bytes                       int64
	Points, Trials, Experiments int64
}
