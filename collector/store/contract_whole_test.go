package store_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vernier-ml/vernier/collector"
)

func testInventory(t *testing.T, s collector.Store) {
	before := time.Now().Add(-2 * time.Second) // whole seconds are kept
	unnamed, named := trialA, trialB
	named.Experiment = "random"
	mustAppend(t, s, unnamed, first)
	if err := s.Finish(t.Context(), named, first, ""); err != nil {
		t.Fatal(err)
	}
	list := func() (ids []collector.TrialID) {
		infos, err := s.Inventory(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, info := range infos {
			if info.Touched.Before(before) || info.Touched.After(time.Now()) {
				t.Errorf("%s was touched at %s", info.UID, info.Touched)
			}
			ids = append(ids, info.TrialID)
		}
		return ids
	}
	diff(t, "trials", []collector.TrialID{unnamed, named}, list())
	unnamed.Experiment = "late"
	mustAppend(t, s, unnamed, first, point("m", 0, 0, 1))
	named.Experiment = "another"
	mustAppend(t, s, named, first, point("m", 0, 0, 1))
	named.Experiment = "random"
	diff(t, "an experiment is added, and stays", []collector.TrialID{unnamed, named}, list())
}

func testStat(t *testing.T, s collector.Store) {
	stat := func() collector.Stat {
		got, err := s.Stat(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got.Engine == "" {
			t.Error("no engine is named")
		}
		return got
	}
	diff(t, "counts of an empty store", []int64{0, 0, 0}, counts(stat()))
	for i := range 3 {
		id := collector.TrialID{Namespace: "ns", Experiment: fmt.Sprint("e", i%2), UID: fmt.Sprint("uid", i)}
		mustAppend(t, s, id, first, point("m", 0, 0, 1), point("m", 1, 1, 1))
	}
	mustAppend(t, s, trialA, first, point("m", 0, 0, 1))
	diff(t, "counts", []int64{7, 4, 2}, counts(stat()))
}

func testCounts(t *testing.T, s collector.Store) {
	counts := func() (n []int64) {
		infos, err := s.Inventory(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, info := range infos {
			n = append(n, info.Points, info.TextBytes, info.Names)
		}
		return n
	}
	texts := point("m", 2, 2, 0.5)
	texts.Text = "0.50"
	mustAppend(t, s, trialA, first, point("m", 0, 0, 1), point("n", 1, 1, 1), texts)
	mustAppend(t, s, trialA, second, point("m", 0, 0, 1))
	mustAppend(t, s, trialB, first)
	diff(t, "points, bytes of text and names", []int64{4, 4, 6, 0, 0, 1}, counts())
	mustAppend(t, s, trialA, first, point("m", 0, 0, 1), point("n", 1, 1, 1), texts, point("m", 3, 3, 1))
	diff(t, "after some were sent again", []int64{5, 4, 6, 0, 0, 1}, counts())
	if err := s.Delete(t.Context(), trialA.UID); err != nil {
		t.Fatal(err)
	}
	diff(t, "after a delete", []int64{0, 0, 1}, counts())
}

func counts(s collector.Stat) []int64 { return []int64{s.Points, s.Trials, s.Experiments} }

// testDeleteLong deletes more than engines delete at once, while others write.
func testDeleteLong(t *testing.T, s collector.Store) {
	var points []collector.Point
	for i := range int64(45_000) {
		points = append(points, point("m", i, i, 1))
	}
	mustAppend(t, s, trialA, first, points...)
	mustAppend(t, s, trialA, second, points[:10]...)
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range int64(50) {
			if err := s.Append(t.Context(), trialB, first, []collector.Point{point("m", i, i, 1)}); err != nil {
				t.Errorf("append: %v", err)
			}
		}
	})
	if err := s.Delete(t.Context(), trialA.UID); err != nil {
		t.Errorf("delete: %v", err)
	}
	wg.Wait()
	stat, err := s.Stat(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	diff(t, "counts", []int64{50, 1, 0}, counts(stat))
}

// testTwoStores opens one place twice, as two managers do: what one deletes, the
// other may not remember.
func testTwoStores(t *testing.T, open opener) {
	a, b := open(t, "shared"), open(t, "shared")
	defer a.Close() //nolint:errcheck // the end of a test
	defer b.Close() //nolint:errcheck // likewise
	for round := range int64(3) {
		mustAppend(t, a, trialA, first, point("m", round, round, 1))
		mustAppend(t, b, trialA, first, point("m", round, round, 2), point("n", round, round+100, 2))
		diff(t, "points", []collector.Series{
			{Attempt: first, Metric: "m", Points: []collector.Point{point("m", round, round, 1)}},
			{Attempt: first, Metric: "n", Points: []collector.Point{point("n", round, round+100, 2)}},
		}, mustPoints(t, a, trialA.UID))
		if err := b.Delete(t.Context(), trialA.UID); err != nil {
			t.Fatal(err)
		}
		diff(t, "points after delete", []collector.Series(nil), mustPoints(t, a, trialA.UID))
	}
	var wg sync.WaitGroup
	for _, s := range []collector.Store{a, b} {
		wg.Go(func() {
			for i := range int64(100) {
				trial := trialA
				trial.UID = fmt.Sprint("uid-", i%7)
				if err := s.Append(t.Context(), trial, first, []collector.Point{point("m", i, i, float64(i)), point(fmt.Sprint("m", i), i, i+1000, 1)}); err != nil {
					t.Errorf("append: %v", err)
				}
				if i%10 == 9 {
					if err := s.Delete(t.Context(), fmt.Sprint("uid-", i%3)); err != nil {
						t.Errorf("delete: %v", err)
					}
				}
			}
		})
	}
	wg.Wait()
	// Rows that no trial leads to would be counted and not be found.
	found := int64(0)
	for i := range 7 {
		for _, series := range mustPoints(t, a, fmt.Sprint("uid-", i)) {
			found += int64(len(series.Points))
		}
	}
	stat, err := b.Stat(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	diff(t, "points of the store and of its trials", stat.Points, found)
}

// testNames: names that differ in case, accents, trailing blanks or zero bytes are
// different, and may be long.
func testNames(t *testing.T, s collector.Store) {
	names := []string{"m", "M", "m ", "m  ", " m", "m\x00", "m\t", "é", "e\u0301", "ß", "ss", "Σ", "σ", "ς", "\xff\xfe", "😀", "%", "_", "a\nb", "'; DROP TABLE point; --", `\`, "'", `"`, "`",
		strings.Repeat("n", 2048), strings.Repeat("n", 2047) + "N", strings.Repeat("é", 1024)}
	var batch []collector.Point
	for i, name := range names {
		p := point(name, int64(i), int64(i), float64(i))
		p.Source, p.Text = name, name+"?"
		batch = append(batch, p)
	}
	mustAppend(t, s, trialA, first, batch...)
	for i, name := range names {
		diff(t, name, []collector.Series{{Attempt: first, Metric: name, Points: batch[i : i+1]}}, mustPoints(t, s, trialA.UID, name))
	}
	states := mustAttempts(t, s, trialA.UID)
	if len(states) != 1 || len(states[0].Acked) != len(names) {
		t.Errorf("%d sources of %d", len(states[0].Acked), len(names))
	}
	for _, name := range names[:20] {
		id := collector.TrialID{Namespace: name, Name: name, Experiment: name, UID: name}
		mustAppend(t, s, id, collector.Attempt{ID: name, Started: base}, point("m", 0, 0, 1))
	}
	ids := mustTrials(t, s)
	for _, name := range names[:20] {
		diff(t, "attempt "+name, []collector.AttemptState{{Attempt: collector.Attempt{ID: name, Started: base}, Acked: map[string]int64{"stdout": 1}}},
			mustAttempts(t, s, name))
		if !slices.Contains(ids, collector.TrialID{Namespace: name, Name: name, Experiment: name, UID: name}) {
			t.Errorf("trial %q is not listed", name)
		}
	}
}

// testLimits: what no engine keeps is refused by all, and what is kept at most is.
func testLimits(t *testing.T, s collector.Store) {
	long := func(n int) string { return strings.Repeat("x", n) }
	good := point(long(2048), 0, 0, 1)
	good.Source, good.Text = long(2048), long(16384)
	id := collector.TrialID{Namespace: long(512), Name: long(512), Experiment: long(512), UID: long(512)}
	attempt := collector.Attempt{ID: long(512), Started: base}
	many := make([]collector.Point, 0, 100)
	for i := range int64(100) { // more than one packet takes
		p := good
		p.Seq = i
		many = append(many, p)
	}
	mustAppend(t, s, id, attempt, many...)
	if err := s.Finish(t.Context(), id, attempt, long(16384)); err != nil {
		t.Errorf("finish: %v", err)
	}
	diff(t, "points", []collector.Series{{Attempt: attempt, Metric: good.Metric, Points: many}}, mustPoints(t, s, id.UID))
	for name, change := range map[string]func(*collector.TrialID, *collector.Attempt, *collector.Point){
		"metric":     func(_ *collector.TrialID, _ *collector.Attempt, p *collector.Point) { p.Metric += "x" },
		"source":     func(_ *collector.TrialID, _ *collector.Attempt, p *collector.Point) { p.Source += "x" },
		"text":       func(_ *collector.TrialID, _ *collector.Attempt, p *collector.Point) { p.Text += "x" },
		"attempt":    func(_ *collector.TrialID, a *collector.Attempt, _ *collector.Point) { a.ID += "x" },
		"uid":        func(t *collector.TrialID, _ *collector.Attempt, _ *collector.Point) { t.UID += "x" },
		"namespace":  func(t *collector.TrialID, _ *collector.Attempt, _ *collector.Point) { t.Namespace += "x" },
		"experiment": func(t *collector.TrialID, _ *collector.Attempt, _ *collector.Point) { t.Experiment += "x" },
	} {
		id, attempt, p := id, attempt, good
		change(&id, &attempt, &p)
		if err := s.Append(t.Context(), id, attempt, []collector.Point{p}); err == nil {
			t.Errorf("a longer %s is no error", name)
		} else if len(err.Error()) > 2000 {
			t.Errorf("a longer %s is an error of %d bytes", name, len(err.Error()))
		}
	}
	if err := s.Finish(t.Context(), id, attempt, long(16385)); err == nil {
		t.Error("a longer note is no error")
	}
}
