package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/collector"
)

var (
	testTrial   = collector.TrialID{Namespace: "ns", Name: "t", UID: "uid"}
	testAttempt = collector.Attempt{ID: "pod/0", Started: time.Unix(1, 0).UTC()}
)

func openTest(tb testing.TB, path string) *sqlStore {
	tb.Helper()
	s, err := openSQLite(tb.Context(), path)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { s.Close() }) //nolint:errcheck // the end of the test
	return s.(*sqlStore)
}

func testPoints(from, to int64) []collector.Point {
	var points []collector.Point
	for i := from; i < to; i++ {
		points = append(points, collector.Point{Metric: "loss", Source: "stdout", Step: i, Seq: i * 20,
			Value: 1 / float64(i+1), Time: time.Unix(1, i).UTC()})
	}
	return points
}

// The engine refuses points of sequence 666.
func refuseSequence666(t *testing.T, s *sqlStore) {
	t.Helper()
	err := s.transact(t.Context(), func(tx tx) error {
		_, err := tx.exec(t.Context(), `CREATE TRIGGER refuse BEFORE INSERT ON point WHEN NEW.seq = 666
			BEGIN SELECT RAISE(ABORT, 'boom'); END`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestAFileIsOpenedWhileOthersOpenAndWriteIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "points.db")
	const others, times = 4, 25
	var group sync.WaitGroup
	for who := range int64(others) {
		group.Go(func() {
			for k := range int64(times) {
				s, err := openSQLite(t.Context(), path)
				if err != nil {
					t.Errorf("opening it the %dth time: %v", k, err)
					return
				}
				at := (who*times + k) * 10
				err = s.Append(t.Context(), testTrial, testAttempt, testPoints(at, at+10))
				if err := errors.Join(err, s.Close()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	got, err := collector.ReadSeries(t.Context(), openTest(t, path), testTrial.UID)
	if err != nil {
		t.Fatal(err)
	}
	want := []collector.Series{{Attempt: testAttempt, Metric: "loss", Points: testPoints(0, others*times*10)}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("points (-want +got):\n%s", diff)
	}
}

func TestARequestThatFailsIsUndoneAloneInItsGroup(t *testing.T) {
	s := openTest(t, filepath.Join(t.TempDir(), "points.db"))
	refuseSequence666(t, s)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	add := func(ctx context.Context, uid string, seqs ...int64) request {
		r := request{ctx, report{trial: collector.TrialID{UID: uid}, attempt: testAttempt}, make(chan error, 1)}
		for _, seq := range seqs {
			r.points = append(r.points, collector.Point{Metric: "loss", Source: "stdout", Seq: seq, Value: 1})
		}
		return r
	}
	// The group is handed to commit directly, so that it is one transaction.
	group := []request{add(t.Context(), "a", 0, 1), add(t.Context(), "b", 2, 666), add(cancelled, "c", 3), add(t.Context(), "a", 4)}
	s.commit(t.Context(), group)
	var errs []error
	for _, r := range group {
		errs = append(errs, <-r.done)
	}
	if errs[0] != nil || errs[1] == nil || !strings.Contains(errs[1].Error(), "boom") || !errors.Is(errs[2], context.Canceled) || errs[3] != nil {
		t.Errorf("errors %v", errs)
	}
	trials, err := s.Inventory(t.Context())
	if err != nil || len(trials) != 1 || trials[0].UID != "a" || trials[0].Points != 3 {
		t.Errorf("trials %v, %v: want a with 3 points", trials, err)
	}
	series, err := collector.ReadSeries(t.Context(), s, "a")
	if err != nil || len(series) != 1 || len(series[0].Points) != 3 {
		t.Errorf("series %v, %v", series, err)
	}
}

// openPlain opens a file without migrating it.
func openPlain(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() }) //nolint:errcheck // the end of the test
	return db
}

// Only then a commit waits for the disk in write-ahead mode.
func TestWhatWasAcknowledgedSurvivesALossOfPower(t *testing.T) {
	s := openTest(t, filepath.Join(t.TempDir(), "points.db"))
	err := s.transact(t.Context(), func(tx tx) error {
		var level int
		err := tx.row(t.Context(), "PRAGMA synchronous").Scan(&level)
		if level < 2 {
			t.Errorf("the writing connection has synchronous level %d, want FULL", level)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestTheFileIsPrivate(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, filepath.Join(dir, "points.db"))
	if err := s.Append(t.Context(), testTrial, testAttempt, testPoints(0, 1)); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) < 2 {
		t.Fatalf("files %v, %v: want the database and its log", files, err)
	}
	for _, f := range files {
		if info, err := f.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, %v", f.Name(), info.Mode(), err)
		}
	}
}

func TestAFileOfANewerReleaseIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "points.db")
	if err := openTest(t, path).Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), "INSERT INTO migration VALUES (999, 0)"); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := openSQLite(t.Context(), path); err == nil || !strings.Contains(err.Error(), "newer release") {
		t.Errorf("error %v", err)
	}
}

func TestAFileThatIsNoDatabaseIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "points.db")
	if err := os.WriteFile(path, []byte(strings.Repeat("not a database\n", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openSQLite(t.Context(), path); err == nil || !strings.Contains(err.Error(), "not a database") {
		t.Errorf("error %v", err)
	}
}

func TestTwoProcessesMayOpenTheSameNewFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "points.db")
	var wg sync.WaitGroup
	for i := range int64(4) {
		wg.Go(func() {
			s, err := openSQLite(t.Context(), path)
			if err != nil {
				t.Errorf("open: %v", err)
				return
			}
			defer func() { _ = s.Close() }()
			if err := s.Append(t.Context(), testTrial, testAttempt, testPoints(i*100, i*100+100)); err != nil {
				t.Errorf("append: %v", err)
			}
		})
	}
	wg.Wait()
	series, err := collector.ReadSeries(t.Context(), openTest(t, path), testTrial.UID)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(testPoints(0, 400), series[0].Points); d != "" {
		t.Errorf("points (-want +got):\n%s", d)
	}
}

// The test runs itself as a process that appends and says what was
// acknowledged, and kills it at several moments.
func TestWhatWasAcknowledgedSurvivesAKill(t *testing.T) {
	if path := os.Getenv("VERNIER_TEST_APPEND_TO"); path != "" {
		s := openTest(t, path)
		for i := int64(0); ; i++ {
			if err := s.Append(t.Context(), testTrial, testAttempt, testPoints(i*3, i*3+3)); err != nil {
				t.Fatal(err)
			}
			fmt.Printf("acked %d\n", i*3+3)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, after := range []int64{1, 50, 333} {
		path := filepath.Join(t.TempDir(), "points.db")
		cmd := exec.CommandContext(t.Context(), self, "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), "VERNIER_TEST_APPEND_TO="+path)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		acked := lastAcked(t, out, cmd, after)
		s := openTest(t, path)
		series, err := collector.ReadSeries(t.Context(), s, testTrial.UID)
		if err != nil || len(series) != 1 {
			t.Fatalf("series %v, %v", series, err)
		}
		got := series[0].Points
		if n := int64(len(got)); n < acked || n%3 != 0 {
			t.Errorf("%d points stored, %d acknowledged, in batches of 3", n, acked)
		}
		if d := cmp.Diff(testPoints(0, int64(len(got))), got); d != "" {
			t.Errorf("points (-want +got):\n%s", d)
		}
	}
}

// lastAcked kills cmd once at least n points were acknowledged, and returns the
// last number that it said.
func lastAcked(t *testing.T, out interface{ Read([]byte) (int, error) }, cmd *exec.Cmd, n int64) (acked int64) {
	t.Helper()
	var said strings.Builder
	buf := make([]byte, 4096)
	killed := false
	for {
		k, err := out.Read(buf)
		said.Write(buf[:k])
		whole := said.String()
		whole = whole[:strings.LastIndexByte(whole, '\n')+1]
		for line := range strings.Lines(whole) {
			number, ok := strings.CutPrefix(strings.TrimSpace(line), "acked ")
			if !ok {
				continue
			}
			var bad error
			if acked, bad = strconv.ParseInt(number, 10, 64); bad != nil {
				t.Fatal(bad)
			}
		}
		if acked >= n && !killed {
			killed = true
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := cmd.Wait(); err == nil || !killed {
		t.Fatalf("the process ended by itself after %d: %v", acked, err)
	}
	return acked
}

func BenchmarkAppend(b *testing.B) {
	for _, size := range []int64{1, 100, 4096} {
		b.Run(fmt.Sprintf("points=%d", size), func(b *testing.B) {
			s := openTest(b, filepath.Join(b.TempDir(), "points.db"))
			batch := testPoints(0, size)
			for b.Loop() {
				for i := range batch {
					batch[i].Seq += size * 20
				}
				if err := s.Append(b.Context(), testTrial, testAttempt, batch); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)*float64(size)/b.Elapsed().Seconds(), "points/s")
		})
	}
}

func BenchmarkPoints(b *testing.B) {
	s := openTest(b, filepath.Join(b.TempDir(), "points.db"))
	if err := s.Append(b.Context(), testTrial, testAttempt, testPoints(0, 10_000)); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := collector.ReadSeries(b.Context(), s, testTrial.UID, "loss"); err != nil {
			b.Fatal(err)
		}
	}
}

// A group of reports that the file as a whole keeps from being written fails
// together: each of 256 tried alone would wait for the lock anew, for five
// seconds, and hold up all others.
func TestSQLiteErrorsOfTheFileAreNotBlamedOnAReport(t *testing.T) {
	path := filepath.Join(t.TempDir(), "points.db")
	s := openTest(t, path)
	if err := s.Append(t.Context(), testTrial, testAttempt, testPoints(0, 10)); err != nil {
		t.Fatal(err)
	}
	open := func(pragmas string) *sql.DB {
		db, err := sql.Open("sqlite", "file:"+path+"?"+pragmas)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() }) //nolint:errcheck // the end of the test
		db.SetMaxOpenConns(1)
		return db
	}
	holder := open("_pragma=busy_timeout(0)&_txlock=immediate")
	const insert = "INSERT INTO migration (version, applied) VALUES (?, 0)"
	tests := map[string]struct {
		pragmas, statement string
		locked             bool
		want               errorKind
	}{
		"another process holds the lock": {"_pragma=busy_timeout(0)", insert, true, lost},
		"the file may not be written":    {"mode=ro", insert, false, lost},
		"the disk is full":               {"_pragma=max_page_count(1)", "INSERT INTO migration SELECT seq + 1000, randomblob(10000) FROM point", false, lost},
		"a row breaks a rule":            {"", "INSERT INTO migration (version, applied) VALUES (1, 0)", false, refused},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if tc.locked {
				tx, err := holder.BeginTx(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				defer tx.Rollback() //nolint:errcheck // it wrote nothing
			}
			_, err := open(tc.pragmas).ExecContext(t.Context(), tc.statement, 1_000_000)
			if err == nil {
				t.Fatal("no error")
			}
			if got := sqliteKind(err); got != tc.want {
				t.Errorf("%v is an error of kind %d, want %d", err, got, tc.want)
			}
		})
	}
}
