package main

import (
	"fmt"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

// counts are the numbers of trials by what a person asks about.
type counts struct {
	// Running are those that have not ended, Stopped those that were stopped early
	// or killed, Failed also those without a value of an objective.
	Running, Succeeded, Stopped, Failed int
}

func (c *counts) add(state v1beta1.TrialConditionType, n int) {
	switch state {
	case v1beta1.TrialSucceeded:
		c.Succeeded += n
	case v1beta1.TrialEarlyStopped, v1beta1.TrialKilled:
		c.Stopped += n
	case v1beta1.TrialFailed, v1beta1.TrialMetricsUnavailable:
		c.Failed += n
	default:
		c.Running += n
	}
}

// done are the trials that have ended in any way, which is what maxTrialCount is
// compared with.
func (c counts) done() int { return c.Succeeded + c.Stopped + c.Failed }

// progress is "12/24", or "12" without a limit.
func (c counts) progress(e *v1beta1.Experiment) string {
	if limit := e.Spec.MaxTrialCount; limit != nil {
		return fmt.Sprintf("%d/%d", c.done(), *limit)
	}
	return fmt.Sprint(c.done())
}

func (v experimentView) counts() (c counts) {
	for _, t := range v.Trials {
		c.add(v1beta1.TrialConditionType(t.State), 1)
	}
	return c
}

// statusCounts are the counts by the status of an experiment, whose trials were
// not read.
func statusCounts(s *v1beta1.ExperimentStatus) (c counts) {
	for state, n := range map[v1beta1.TrialConditionType]int32{
		v1beta1.TrialCreated: s.TrialsPending, v1beta1.TrialRunning: s.TrialsRunning,
		v1beta1.TrialSucceeded: s.TrialsSucceeded, v1beta1.TrialEarlyStopped: s.TrialsEarlyStopped, v1beta1.TrialKilled: s.TrialsKilled,
		v1beta1.TrialFailed: s.TrialsFailed, v1beta1.TrialMetricsUnavailable: s.TrialMetricsUnavailable,
	} {
		c.add(state, int(n))
	}
	return c
}

// countsLine is "12/24 done, 4 running, 1 failed".
func countsLine(v experimentView) string {
	c := v.counts()
	line := fmt.Sprintf("%s done, %d running", c.progress(v.Experiment), c.Running)
	if c.Stopped > 0 {
		line += fmt.Sprintf(", %d stopped", c.Stopped)
	}
	if c.Failed > 0 {
		line += fmt.Sprintf(", %d failed", c.Failed)
	}
	return line
}
