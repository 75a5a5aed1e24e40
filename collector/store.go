package collector

import (
	"context"
	"time"
)

// Store keeps points. Implementations are chosen by URL scheme and pass the
// contract suite in storetest. All methods may be called concurrently. Returned
// values are copies.
type Store interface {
	Writer
	Reader
	Sampled
	Keeper
	Close() error
}

// Writer takes in what trials report.
type Writer interface {
	// Append stores points; those already stored (same trial UID, attempt ID,
	// Source and Seq) are passed over, so that a batch may be sent again. It
	// is atomic: on error nothing of the batch was stored, unless the connection
	// to the engine broke while it committed; then all of it or nothing was.
	Append(ctx context.Context, trial TrialID, attempt Attempt, points []Point) error
	// Finish marks an attempt final. Calling it again is not an error.
	Finish(ctx context.Context, trial TrialID, attempt Attempt, note string) error
	// Delete removes all rows of a trial. An unknown trial is not an error. Long
	// curves go in parts, so that others may write meanwhile; who reads meanwhile
	// may see a part.
	Delete(ctx context.Context, trialUID string) error
}

// Reader reads the curves of one trial.
type Reader interface {
	// Attempts returns the attempts of a trial, oldest first.
	Attempts(ctx context.Context, trialUID string) ([]AttemptState, error)
	// Points returns the series of the named metrics (all when none is named),
	// ordered by attempt start, then metric.
	Points(ctx context.Context, trialUID string, metrics ...string) ([]Series, error)
	// Scan hands over the points of the named metrics (all when none is named) one
	// by one, in the order that Condenser.Add needs and in memory that does not
	// grow with their number, and ends with the first error of yield, or when ctx
	// ends. yield must not call the store.
	Scan(ctx context.Context, trialUID string, metrics []string, yield func(Attempt, Point) error) error
	// Reduce answers asks, each with one observation, in their order. The result
	// is that of the function Reduce over Points, in memory that does not grow
	// with the number of points where the store is not itself in memory.
	Reduce(ctx context.Context, trialUID string, asks ...Ask) ([]Observation, error)
	// Observe is Reduce without strategies: the named metrics (all when none is
	// named, in order of name), one observation for each name, in their order.
	Observe(ctx context.Context, trialUID string, metrics ...string) ([]Observation, error)
}

// Limits of the number of buckets of a sampled series.
const (
	MinBuckets = 2
	MaxBuckets = 1 << 16
)

// Sampled reads curves with few points, for eyes and for models. Buckets are
// those of Sampler; their number lies in [MinBuckets, MaxBuckets].
type Sampled interface {
	// Sampled returns the curves of the named metrics (all when none is named) of
	// one trial, ordered by attempt start, then metric.
	Sampled(ctx context.Context, trialUID string, buckets int, metrics ...string) ([]SampledSeries, error)
	// SampledExperiment does so for every trial of an experiment, in order of the
	// trials' names, then UIDs. Trials that reported none of the metrics are left
	// out.
	SampledExperiment(ctx context.Context, namespace, experiment string, buckets int, metrics ...string) ([]SampledTrial, error)
}

// SampledTrial is the sampled curves of a trial.
type SampledTrial struct {
	Trial  TrialID
	Series []SampledSeries
}

// Keeper looks after the store as a whole.
type Keeper interface {
	// Metrics returns the names of the metrics that a trial reported, in order.
	// It is cheap: no point is read.
	Metrics(ctx context.Context, trialUID string) ([]string, error)
	// Count returns how many points a trial has, of all attempts. It may read all
	// of them.
	Count(ctx context.Context, trialUID string) (int64, error)
	// Trials returns every trial that has rows, in order of UID.
	Trials(ctx context.Context) ([]TrialID, error)
	// Inventory returns what Trials does, with the time of the last report.
	Inventory(ctx context.Context) ([]TrialInfo, error)
	// Stat measures the store. It may read all of it.
	Stat(ctx context.Context) (Stat, error)
}

// TrialInfo is a trial in the store.
type TrialInfo struct {
	TrialID
	// Touched is when the trial reported last, by the clock of whoever wrote to
	// the store; it may be up to an hour late.
	Touched time.Time
}

// Stat is the size of a store.
type Stat struct {
	// Engine names the engine and its version, for people.
	Engine string
	// Schema is the version of the schema; zero where there is none.
	Schema int
	// Bytes that the points take up with all indexes, as the engine counts them,
	// room for more included; zero where it is not known.
	Bytes                       int64
	Points, Trials, Experiments int64
}
