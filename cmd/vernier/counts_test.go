package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

// get reads the status of an experiment, and describe its trials.
func TestTheStatusAndTheTrialsAreCountedAlike(t *testing.T) {
	tests := map[string]struct {
		trials []v1beta1.TrialConditionType
		status v1beta1.ExperimentStatus
		want   counts
		line   string
		row    []string // DONE, RUNNING, FAILED
	}{
		"none": {want: counts{}, line: "0/24 done, 0 running", row: []string{"0/24", "0", "0"}},
		"one in each state": {
			trials: []v1beta1.TrialConditionType{
				v1beta1.TrialCreated, v1beta1.TrialRunning, v1beta1.TrialSucceeded, v1beta1.TrialKilled,
				v1beta1.TrialFailed, v1beta1.TrialMetricsUnavailable, v1beta1.TrialEarlyStopped,
			},
			status: v1beta1.ExperimentStatus{
				TrialsPending: 1, TrialsRunning: 1, TrialsSucceeded: 1, TrialsKilled: 1,
				TrialsFailed: 1, TrialMetricsUnavailable: 1, TrialsEarlyStopped: 1,
			},
			want: counts{Running: 2, Succeeded: 1, Stopped: 2, Failed: 2},
			line: "5/24 done, 2 running, 2 stopped, 2 failed", row: []string{"5/24", "2", "2"}},
		"failed ones alone": {
			trials: []v1beta1.TrialConditionType{v1beta1.TrialFailed, v1beta1.TrialFailed},
			status: v1beta1.ExperimentStatus{TrialsFailed: 2},
			want:   counts{Failed: 2}, line: "2/24 done, 0 running, 2 failed", row: []string{"2/24", "0", "2"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			e := anExperiment()
			tc.status.Conditions = e.Status.Conditions
			e.Status = tc.status
			var trials []v1beta1.Trial
			for i, state := range tc.trials {
				trials = append(trials, aTrial(i, state, ""))
			}
			v := newExperimentView(e, trials)
			if diff := cmp.Diff([]counts{tc.want, tc.want}, []counts{v.counts(), statusCounts(&e.Status)}); diff != "" {
				t.Errorf("by trials, by status (-want +got):\n%s", diff)
			}
			if got := countsLine(v); got != tc.line {
				t.Errorf("described as %q, want %q", got, tc.line)
			}
			var out bytes.Buffer
			if err := experimentTable([]v1beta1.Experiment{*e}, false, noon).write(&out, true); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.row, strings.Fields(out.String())[2:5]); diff != "" {
				t.Errorf("listed (-want +got):\n%s", diff)
			}
		})
	}
}
