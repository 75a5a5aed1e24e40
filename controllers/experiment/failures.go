package experiment

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

const (
	addMost = 100
	// patientFailures is how many trials may fail in a row before new ones wait.
	patientFailures = 3
	// failuresMost is how many trials may fail in a row before the first success,
	// where maxFailedTrialCount is not given. After a success it is
	// provenFactor times as many: the program works, and parts of the space do not.
	failuresMost = 12
	provenFactor = 5
	longestPause = time.Minute
)

// failures are the newest trials that have ended, all of them without a result.
type failures struct {
	n      int
	proven bool // a trial had a result before
	ended  time.Time
	last   string    // the name and message of the newest
	newest time.Time // when the newest trial that has not ended was made
}

// failuresInARow looks at trials, which are in order of number. Trials that were
// killed say nothing.
func failuresInARow(trials []*v1beta1.Trial) (run failures) {
	for _, t := range slices.Backward(trials) {
		switch t.State() {
		case v1beta1.TrialFailed, v1beta1.TrialMetricsUnavailable:
			newest := t.Name + ": " + t.LastCondition().Message
			if ranElsewhere(t) { // which says nothing of the program that runs now
				run.last = cmp.Or(run.last, newest)
				continue
			}
			if run.n++; run.n == 1 {
				run.last = newest
			}
			if at := t.Status.CompletionTime; at != nil && at.After(run.ended) {
				run.ended = at.Time
			}
		case v1beta1.TrialSucceeded, v1beta1.TrialEarlyStopped:
			run.proven = true
			return run
		case v1beta1.TrialKilled:
		default:
			if at := t.CreationTimestamp.Time; at.After(run.newest) {
				run.newest = at
			}
		}
	}
	return run
}

// limit is how many failures in a row end the experiment. As many as run at once
// may fail before any of them is looked at.
func (f failures) limit(spec *v1beta1.ExperimentSpec) int {
	limit := max(failuresMost, int(ptr.Deref(spec.ParallelTrialCount, v1beta1.DefaultParallelTrialCount)))
	if f.proven {
		limit *= provenFactor
	}
	return limit
}

// pause is how long no new trial is made: after three failures in a row 1 s after
// the last, then twice as long after each, up to a minute.
func (f failures) pause(now time.Time) time.Duration {
	if f.n < patientFailures {
		return 0
	}
	backoff := wait.Backoff{Duration: time.Second, Factor: 2, Steps: f.n, Cap: longestPause}
	pause := backoff.Duration
	for range f.n - patientFailures + 1 {
		pause = backoff.Step()
	}
	return max(0, f.ended.Add(pause).Sub(now))
}

// atOnce bounds how many of n trials are made now: after three failures in a row one,
// and no other before it has ended or run for a minute, as one that works may for
// hours. wait is how long that still takes.
func (f failures) atOnce(n int, now time.Time) (most int, wait time.Duration) {
	if f.n < patientFailures {
		return n, 0
	}
	if left := f.newest.Add(longestPause).Sub(now); f.newest.After(f.ended) && left > 0 {
		return 0, left
	}
	return min(n, 1), 0
}

// message says that new trials wait; empty when they do not.
func (f failures) message() string {
	if f.n < patientFailures {
		return ""
	}
	return fmt.Sprintf(messageSlow, f.n, f.last)
}
