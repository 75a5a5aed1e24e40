package events

import (
	"errors"
	"fmt"
	"github.com/vernier-ml/vernier/collector/source"
	"github.com/vernier-ml/vernier/collector/source/sourcetest"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// hurried is a clock by which every look at the tree is due.
func hurried() source.Clock {
	now := time.Unix(2000, 0)
	return source.Clock{
		Now:   func() time.Time { now = now.Add(3 * time.Second); return now },
		After: func(time.Duration) <-chan time.Time { return time.After(time.Microsecond) },
	}
}

// scene is what happens to a tree while it is read: change n comes after n points.
type scene struct {
	metrics  []string
	changes  map[int]map[string][]byte // files, as a whole
	sessions int                       // that the first collector sees
}

func (s scene) change(t *testing.T, dir string, n int) {
	t.Helper()
	for _, path := range slices.Sorted(maps.Keys(s.changes[n])) {
		sourcetest.Put(t, dir, path, s.changes[n][path])
	}
}

// sessionsOf reads a tree until n points have come and the changes up to there
// are made, or to the end. It returns the session of each point, by its
// identity, and the size of what is remembered after each.
func (s scene) sessionsOf(t *testing.T, cfg Config, n int) (got map[string]int, sizes []int64) {
	t.Helper()
	drain := make(chan struct{})
	cfg.Drain, cfg.Clock, cfg.Metrics = drain, hurried(), s.metrics
	if cfg.Metrics == nil {
		cfg.Metrics = []string{"loss"}
	}
	src, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	last := 0
	if n != 0 {
		last = slices.Max(slices.Collect(maps.Keys(s.changes)))
		s.change(t, cfg.Dir, 0)
	}
	got = map[string]int{}
	count := 0
	if count == last {
		close(drain)
	}
	for p, err := range src.Sessions(t.Context()) {
		if err != nil {
			continue // it says which places are used
		}
		if len(p.Began) != p.Session+1 || !slices.IsSortedFunc(p.Began, time.Time.Compare) {
			t.Errorf("sessions began at %v for a point of session %d", p.Began, p.Session)
		}
		id := fmt.Sprintf("%s of %s at %d", p.Metric, p.Source, p.Seq)
		if _, twice := got[id]; twice {
			t.Errorf("%s comes twice", id)
		}
		got[id] = p.Session
		sizes = append(sizes, sizeOf(t, cfg.State+sessionsName))
		if count++; count == n {
			break
		}
		if n != 0 {
			s.change(t, cfg.Dir, count)
		}
		if count == last {
			close(drain)
		}
	}
	return got, sizes
}

func sizeOf(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0
	}
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// A collector may be killed after any point, and while it remembers what it
// decides of the next. The next one must give all points that were
// reported the sessions that they had: these are the attempts in the store.
func TestSessionsOutliveTheCollector(t *testing.T) {
	const a, b, c = "tfevents.a", "tfevents.b", "tfevents.c"
	late := slices.Concat(sourcetest.Event(1011, 3, "loss", 3), sourcetest.Event(1012, 4, "loss", 4))
	tests := map[string]scene{
		"a writer writes late what it measured after another began": {sessions: 2, changes: map[int]map[string][]byte{
			0: {a: stepsOf(1000, "loss", 0, 1, 2)},
			3: {b: stepsOf(1010, "loss", 0, 1)},
			5: {a: append(stepsOf(1000, "loss", 0, 1, 2), late...)},
			7: {b: stepsOf(1010, "loss", 0, 1, 2, 3)},
		}},
		"a writer writes late what it measured before another went on": {sessions: 1, changes: map[int]map[string][]byte{
			0: {a: stepsOf(1000, "loss", 0)},
			1: {b: stepsOf(1010, "loss", 1, 2)},
			3: {a: append(stepsOf(1000, "loss", 0), sourcetest.Event(1005, 5, "loss", 5)...)},
		}},
		"an older file comes late": {sessions: 1, changes: map[int]map[string][]byte{
			0: {b: stepsOf(1010, "loss", 0, 1)},
			2: {a: stepsOf(1000, "loss", 0, 1)},
			4: {b: stepsOf(1010, "loss", 0, 1, 2)},
		}},
		"a start of which one metric tells after another": {sessions: 2, metrics: []string{"acc", "loss"}, changes: map[int]map[string][]byte{
			0: {a: slices.Concat(stepsOf(1000, "loss", 0, 1, 2, 3), sourcetest.Event(1004, 1, "acc", 0))},
			5: {b: slices.Concat(sourcetest.Event(1010, 0, "", 0), sourcetest.Event(1010, 2, "acc", 0), sourcetest.Event(1011, 2, "loss", 2))},
			7: {b: slices.Concat(sourcetest.Event(1010, 0, "", 0), sourcetest.Event(1010, 2, "acc", 0), sourcetest.Event(1011, 2, "loss", 2), sourcetest.Event(1012, 4, "acc", 2))},
		}},
		"all runs begin a session": {sessions: 2, metrics: []string{"train/loss", "val/loss"}, changes: map[int]map[string][]byte{
			0: {"train/" + a: stepsOf(1000, "loss", 0, 1, 2, 3), "val/" + a: stepsOf(1001, "loss", 1)},
			5: {"val/" + b: stepsOf(1020, "loss", 2)},
			6: {"train/" + b: stepsOf(1019, "loss", 2, 3)},
			8: {"val/" + b: stepsOf(1020, "loss", 2, 3)},
		}},
		"a writer says within its file that it starts again": {sessions: 2, changes: map[int]map[string][]byte{
			0: {a: stepsOf(1000, "loss", 0, 1, 2)},
			3: {a: slices.Concat(stepsOf(1000, "loss", 0, 1, 2), sessionStartOf(1010, 1), sourcetest.Event(1011, 1, "loss", 1))},
			4: {a: slices.Concat(stepsOf(1000, "loss", 0, 1, 2), sessionStartOf(1010, 1), sourcetest.Event(1011, 1, "loss", 1), sourcetest.Event(1012, 2, "loss", 2))},
		}},
		"three starts, the first of which writes last": {sessions: 3, changes: map[int]map[string][]byte{
			0: {a: stepsOf(1000, "loss", 0, 1)},
			2: {b: stepsOf(1010, "loss", 0, 1)},
			4: {c: stepsOf(1020, "loss", 0, 1)},
			6: {a: append(stepsOf(1000, "loss", 0, 1), sourcetest.Event(1021, 2, "loss", 2)...)},
		}},
		"two metrics are one tag": {sessions: 2, metrics: []string{"loss", "x/loss"}, changes: map[int]map[string][]byte{
			0: {"x/" + a: stepsOf(1000, "loss", 0, 1)},
			4: {"x/" + b: stepsOf(1010, "loss", 1)},
			6: {"x/" + a: append(stepsOf(1000, "loss", 0, 1), late...)},
		}},
		"a metric that is found by how its name begins": {sessions: 2, changes: map[int]map[string][]byte{
			0: {a: stepsOf(1000, "loss_1", 0, 1, 2), b: stepsOf(1010, "loss_1", 1, 2)},
		}},
		"the next version of a run takes over": {sessions: 2, changes: map[int]map[string][]byte{
			0: {"v_1/" + a: stepsOf(1000, "loss", 0, 1)},
			2: {"v_2/" + a: stepsOf(1010, "loss", 1, 2)},
			4: {"v_1/" + a: append(stepsOf(1000, "loss", 0, 1), late...)},
		}},
	}
	for name, s := range tests {
		t.Run(name, func(t *testing.T) {
			all, sizes := s.sessionsOf(t, Config{Dir: t.TempDir(), State: filepath.Join(t.TempDir(), "state")}, -1)
			if got := len(slices.Compact(slices.Sorted(maps.Values(all)))); got != s.sessions {
				t.Fatalf("there are %d sessions, want %d", got, s.sessions)
			}
			for n := 1; n <= len(all); n++ {
				cuts := []int64{sizes[n-1]} // of what is remembered
				if n < len(sizes) {
					for at := sizes[n-1] + 1; at <= sizes[n]; at += 7 {
						cuts = append(cuts, at)
					}
				}
				for _, cut := range cuts {
					s.killed(t, n, cut)
				}
			}
		})
	}
}

// killed kills a collector after n points when cut bytes are remembered, and
// compares those that come after it.
func (s scene) killed(t *testing.T, n int, cut int64) {
	t.Helper()
	cfg := Config{Dir: t.TempDir(), State: filepath.Join(t.TempDir(), "state")}
	ahead := n
	if cut > 0 {
		ahead++ // it remembers, and does not get to report
	}
	first, _ := s.sessionsOf(t, cfg, ahead)
	if sizeOf(t, cfg.State+sessionsName) > cut {
		if err := os.Truncate(cfg.State+sessionsName, cut); err != nil {
			t.Fatal(err)
		}
		first, _ = s.sessionsOf(t, Config{Dir: t.TempDir()}, n)
	}
	for _, n := range slices.Sorted(maps.Keys(s.changes)) {
		s.change(t, cfg.Dir, n)
	}
	second, _ := s.sessionsOf(t, cfg, 0)
	third, _ := s.sessionsOf(t, cfg, 0)
	for id, session := range first {
		if again, ok := second[id]; !ok || again != session {
			t.Errorf("killed after %d points with %d bytes: %s was in session %d, then (%t) in %d", n, cut, id, session, ok, again)
		}
	}
	if !maps.Equal(second, third) {
		t.Errorf("killed after %d points with %d bytes: then %v, then %v", n, cut, second, third)
	}
}

func TestSessionsThatCannotBeRemembered(t *testing.T) {
	dir, state := t.TempDir(), filepath.Join(t.TempDir(), "state")
	sourcetest.Put(t, dir, "tfevents.1", stepsOf(100, "loss", 0, 1))
	sourcetest.Put(t, dir, "tfevents.2", stepsOf(200, "loss", 1))
	cfg := Config{Dir: dir, Metrics: []string{"loss"}, State: state}
	want := []string{"0: loss=0 in tfevents.1", "0: loss=1 in tfevents.1", "1: loss=1 in tfevents.2"}
	check := func(what string, wantErrs ...string) {
		t.Helper()
		got, errs := play(t, cfg, map[int]func(){0: func() {}})
		if !slices.Equal(got, want) {
			t.Errorf("%s: points %q", what, got)
		}
		wantErrors(t, errs, wantErrs...)
	}
	if err := os.Mkdir(state+sessionsName, 0o755); err != nil {
		t.Fatal(err)
	}
	check("a directory is in the way", "the sessions that an earlier collector saw are lost")
	if err := os.Remove(state + sessionsName); err != nil {
		t.Fatal(err)
	}
	lines := []string{
		`{"source":"tfevent:tfevents.1","from":0,"session":5,"began":1}`, `{"source":"tfevent:tfevents.1","session":-1}`,
		"\xff", `{"source":`, "[]", strings.Repeat("[", 1000),
	}
	if err := os.WriteFile(state+sessionsName, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	check("what is remembered makes no sense")
	check("it was repaired")
}
