package store

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/collector"
)

func TestRetentionChooses(t *testing.T) {
	now := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	info := func(experiment, name string, age time.Duration) collector.TrialInfo {
		return collector.TrialInfo{TrialID: collector.TrialID{Namespace: "ns", Experiment: experiment, Name: name, UID: name}, Touched: now.Add(-age)}
	}
	const day = 24 * time.Hour
	infos := []collector.TrialInfo{
		info("old", "old-0", 30*day), info("old", "old-1", 20*day),
		info("mixed", "mixed-0", 30*day), info("mixed", "mixed-1", time.Hour),
		info("new", "new-0", 3*time.Hour),
		info("", "lone-0", 25*day), info("", "lone-1", time.Minute),
	}
	foreign := info("new", "foreign-0", 40*day)
	foreign.Namespace = "other"
	infos = append(infos, foreign)
	tests := map[string]struct {
		retention Retention
		want      []string
	}{
		"nothing is asked for":                         {Retention{}, nil},
		"by age, experiments whole, the oldest first":  {Retention{MaxAge: 7 * day}, []string{"foreign-0", "lone-0", "old-0", "old-1"}},
		"an age that is just not reached":              {Retention{MaxAge: 20 * day}, []string{"foreign-0", "lone-0"}},
		"an age below what is known":                   {Retention{MaxAge: time.Second}, []string{"foreign-0", "lone-0", "old-0", "old-1", "new-0"}},
		"by count":                                     {Retention{MaxExperiments: 3}, []string{"foreign-0", "lone-0", "old-0", "old-1"}},
		"more than there are":                          {Retention{MaxExperiments: 100}, nil},
		"by both, what either deletes":                 {Retention{MaxAge: 7 * day, MaxExperiments: 2}, []string{"foreign-0", "lone-0", "old-0", "old-1", "new-0"}},
		"what must be kept stays, its experiment goes": {Retention{MaxAge: 7 * day, Keep: func(id collector.TrialID) bool { return id.Name == "old-1" }}, []string{"foreign-0", "lone-0", "old-0"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			if !tc.retention.Zero() {
				for _, id := range tc.retention.victims(infos, now) {
					got = append(got, id.Name)
				}
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("deleted (-want +got):\n%s", d)
			}
		})
	}
}

func TestPruneDeletesInBoundedParts(t *testing.T) {
	s, err := openMemory(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	const most, n = 50, 55
	for i := range n {
		id := collector.TrialID{Namespace: "ns", Experiment: fmt.Sprint(i % 3), UID: fmt.Sprint(i)}
		if err := s.Append(t.Context(), id, testAttempt, testPoints(0, 1)); err != nil {
			t.Fatal(err)
		}
	}
	later := time.Now().Add(3 * time.Hour)
	for _, want := range []struct {
		trials int
		more   bool
	}{{most, true}, {5, false}, {0, false}} {
		got, err := Retention{MaxAge: time.Hour}.prune(t.Context(), s, later, most)
		if err != nil || len(got.Trials) != want.trials || got.More != want.more {
			t.Errorf("%d trials, more %v, %v; want %v", len(got.Trials), got.More, err, want)
		}
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Prune(cancelled, s, Retention{MaxAge: time.Hour}, later); err == nil {
		t.Error("a cancelled context is no error")
	}
	if got, err := Prune(cancelled, s, Retention{}, later); err != nil || len(got.Trials) > 0 {
		t.Errorf("nothing to do: %v, %v", got, err)
	}
}
