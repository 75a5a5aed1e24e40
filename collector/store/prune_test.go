package store

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

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

func TestCurvesThatAreOldOrTakeTheLastRoomAreThinned(t *testing.T) {
	const points = 20_000
	for name, tc := range map[string]struct {
		retention Retention
		want      []string
		age       time.Duration // 0: 30 h
	}{
		"nothing is asked for":       {Retention{}, nil, 0},
		"by age":                     {Retention{ThinAfter: 24 * time.Hour}, []string{"best", "ended"}, 0},
		"an age that is not reached": {Retention{ThinAfter: 48 * time.Hour}, nil, 0},
		"not what must be kept":      {Retention{ThinAfter: 24 * time.Hour, Keep: func(id collector.TrialID) bool { return id.UID == "best" }}, []string{"ended"}, 0},
		"not what must stay whole":   {Retention{ThinAfter: 24 * time.Hour, Whole: func(id collector.TrialID) bool { return id.UID == "best" }}, []string{"ended"}, 0},
		"a namespace without room":   {Retention{Full: func(namespace string) bool { return namespace == "full" }}, []string{"best"}, 0},
		"what may still report":      {Retention{Full: func(namespace string) bool { return namespace == "full" }}, nil, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := openMemory(t.Context(), "")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.Close() }) //nolint:errcheck // the end of the test
			for uid, n := range map[string]int64{"ended": points, "best": points, "short": 200} {
				namespace := map[string]string{"best": "full"}[uid]
				if err := s.Append(t.Context(), collector.TrialID{UID: uid, Namespace: namespace}, testAttempt, testPoints(0, n)); err != nil {
					t.Fatal(err)
				}
			}
			ask := collector.Ask{Metric: "loss"}
			before, err := collector.Reduce(t.Context(), s, "ended", ask)
			if err != nil {
				t.Fatal(err)
			}
			age := tc.age
			if age == 0 {
				age = 30 * time.Hour
			}
			done, err := Prune(t.Context(), s, tc.retention, time.Now().Add(age))
			if err != nil {
				t.Fatal(err)
			}
			infos, err := s.Inventory(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var thinned []string
			left := int64(0)
			for _, info := range infos {
				if left += info.Points; info.Thinned {
					thinned = append(thinned, info.UID)
					if info.Points < thinStretches/2 || info.Points > 4*thinStretches+3 {
						t.Errorf("%d points of %s are kept", info.Points, info.UID)
					}
				}
			}
			if d := cmp.Diff(tc.want, thinned); d != "" {
				t.Errorf("thinned (-want +got):\n%s", d)
			}
			if done.Thinned != len(tc.want) || left+done.Points != 2*points+200 {
				t.Errorf("%+v; %d points are left", done, left)
			}
			after, err := collector.Reduce(t.Context(), s, "ended", ask)
			if err != nil {
				t.Fatal(err)
			}
			before[0].Points, after[0].Points = 0, 0
			if d := cmp.Diff(before, after, cmpopts.EquateNaNs()); d != "" {
				t.Errorf("result (-before +after):\n%s", d)
			}
			again, err := Prune(t.Context(), s, tc.retention, time.Now().Add(age))
			if err != nil || again.Thinned > 0 {
				t.Errorf("again: %+v, %v", again, err)
			}
		})
	}
}
