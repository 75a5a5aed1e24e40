package experiment

import (
	"fmt"
	"strings"
	"time"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

// Shortage is why there are fewer trials than asked for. Its zero value is that there
// are not.
type Shortage struct {
	// Reason is for programs.
	Reason string
	// Why is in words for the user.
	Why string
	// After is when there may be more although nothing happens; 0: never.
	After time.Duration
}

// The reasons of a Shortage.
const (
	ReasonEnded     = "ENDED"
	ReasonHeldUp    = "HELD_UP"   // what the experiment refers to cannot be read
	ReasonStopping  = "STOPPING"  // it ends when the trials that run have ended
	ReasonSuspended = "SUSPENDED" // spec.suspend
	ReasonBudget    = "BUDGET"    // all trials of maxTrialCount exist
	ReasonParallel  = "PARALLEL"  // as many run as parallelTrialCount allows
	ReasonFailures  = "FAILURES"  // new trials wait after failures
	ReasonResults   = "RESULTS"   // the algorithm waits for results
	ReasonExhausted = "EXHAUSTED" // nothing is left to try
	ReasonService   = "SERVICE"   // the algorithm's service is asked, or cannot be
	ReasonMore      = "MORE"      // more than are made in one go: ask again
)

// shortage is why an experiment with these trials, of which added are not in c yet, makes
// no more now although the algorithm gave all that were asked of it.
func shortage(exp *v1beta1.Experiment, c tally, added int, f findings) Shortage {
	total, active, limit := c.total+added, c.active()+added, exp.Spec.MaxTrialCount
	switch {
	case over(&exp.Status):
		return Shortage{Reason: ReasonEnded, Why: exp.LastCondition().Message}
	case exp.DeletionTimestamp != nil:
		return Shortage{Reason: ReasonEnded, Why: "the experiment is being deleted"}
	case f.trouble != "":
		return Shortage{Reason: ReasonHeldUp, Why: f.trouble}
	case exp.Annotations[v1beta1.AnnotationEnd] != "":
		return Shortage{Reason: ReasonStopping, Why: messageStopping}
	case exp.Spec.Suspend:
		return Shortage{Reason: ReasonSuspended, Why: messageSuspended}
	case limit != nil && total >= int(*limit):
		return Shortage{Reason: ReasonBudget, Why: fmt.Sprintf("all %d trials of maxTrialCount exist, and %d of them have not ended: only one that loses its worker is handed out again", total, active)}
	case active >= atOnce(exp):
		return Shortage{Reason: ReasonParallel, Why: fmt.Sprintf("%d trials have not ended, and parallelTrialCount allows %d at once", active, atOnce(exp))}
	case c.run.message() != "":
		return Shortage{Reason: ReasonFailures, Why: strings.TrimPrefix(c.run.message(), messageRunning+". ")}
	}
	return Shortage{Reason: ReasonMore, Why: fmt.Sprintf("at most %d trials are made in one go: ask again", addMost)}
}
