package trial

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/trainer"
)

func TestEvents(t *testing.T) {
	outside := aTrial(unseen, func(t *v1beta1.Trial) {
		if err := t.SetLease(v1beta1.Lease{Attempt: 1, Started: noon}); err != nil {
			panic(err)
		}
	})
	inQueue := plan(seen{trial: aTrial(), job: jobIn(trainer.Pending)}, noon)
	queued := aTrial(func(t *v1beta1.Trial) { t.Status = *inQueue.status })
	tests := map[string]struct {
		before seen
		d      decision
		want   []string
	}{
		"a started trial has two events":  {seen{trial: aTrial(unseen)}, launched(aTrial(unseen), "", "", Limits{}, noon), []string{"JobCreated", "JobRunning"}},
		"trouble has one event":           {seen{trial: aTrial(unseen)}, launched(aTrial(unseen), "", "x", Limits{}, noon), []string{"ReconcileError"}},
		"a lack of room is none":          {seen{trial: aTrial(unseen)}, launched(aTrial(unseen), "", noRoom+"x", Limits{}, noon), []string{"JobQueued"}},
		"a trial that succeeds has one":   {seen{trial: aTrial()}, plan(seen{trial: aTrial(), job: jobIn(trainer.Succeeded), data: data{final: true, stored: stored(points("loss", 1))}}, noon), []string{"JobSucceeded"}},
		"a trial that fails has one":      {seen{trial: aTrial()}, plan(seen{trial: aTrial(), job: jobIn(trainer.Failed)}, noon), []string{"JobFailed"}},
		"a trial without metrics has one": {seen{trial: aTrial()}, plan(seen{trial: aTrial(), job: jobIn(trainer.Succeeded), data: data{final: true}}, noon), []string{"MetricsUnavailable"}},
		"a trial without a job has none":  {seen{trial: outside}, started(outside, noon), nil},
		"a job that is suspended has one": {seen{trial: aTrial()}, inQueue, []string{"JobQueued"}},
		"one that then runs has one":      {seen{trial: queued}, plan(seen{trial: queued, job: jobIn(trainer.Running)}, noon), []string{"JobRunning"}},
		"a job that is preempted has one": {seen{trial: aTrial()}, plan(seen{trial: aTrial(), job: jobIn(trainer.Pending), data: data{stored: stored(points("loss", 1))}}, noon), []string{"JobPreempted"}},
		"the live view has none":          {seen{trial: aTrial()}, plan(seen{trial: aTrial(), job: jobIn(trainer.Running), data: data{stored: stored(points("loss", 1))}}, noon), nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, e := range transitions(tc.before.trial, &tc.before.trial.Status, tc.d.status) {
				got = append(got, e.Reason)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNotesAreSaidOnce(t *testing.T) {
	tests := map[string]struct {
		notes []string
		want  []string
	}{
		"the same":                {[]string{"a b", "a b"}, []string{"a b"}},
		"the second is cut":       {[]string{"a b c", "a b…"}, []string{"a b c"}},
		"the first is cut":        {[]string{"a b…", "a b c"}, []string{"a b c"}},
		"different ones are kept": {[]string{"a", "b"}, []string{"a", "b"}},
		"none":                    {[]string{"", ""}, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var d data
			for _, n := range tc.notes {
				d.note(n)
			}
			if diff := cmp.Diff(tc.want, d.notes); diff != "" {
				t.Error(diff)
			}
		})
	}
}
