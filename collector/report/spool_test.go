package report

import (
	"context"
	"errors"
	"iter"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/journal"
)

// listed is a source that yields a list and ends.
type listed []collector.Point

func (l listed) Points(context.Context) iter.Seq2[collector.Point, error] {
	return func(yield func(collector.Point, error) bool) {
		for _, p := range l {
			if !yield(p, nil) {
				return
			}
		}
	}
}

func read(t *testing.T, s collector.Source) (points []collector.Point, errs []error) {
	t.Helper()
	for p, err := range s.Points(t.Context()) {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		points = append(points, p)
	}
	return points, errs
}

func TestASpoolGivesBackWhatItGotAcrossRestarts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "spool")
	in := []collector.Point{
		{Metric: "m", Value: 1, Step: 1, Time: now},
		{Metric: "m", Value: math.NaN(), Text: "n/a\nsecond line", Step: collector.NoStep},
		{Metric: "größe", Value: math.Inf(-1), Step: 2, Time: now},
	}
	var before []collector.Point
	for round := range 3 {
		s, err := OpenSpool(path, "push", 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Fill(t.Context(), listed(in)); err != nil {
			t.Fatal(err)
		}
		got, errs := read(t, s)
		if len(errs) > 0 || len(got) != len(in)*(round+1) {
			t.Fatalf("round %d: %d points, %v", round, len(got), errs)
		}
		for i, p := range got {
			want := in[i%len(in)]
			want.Source, want.Seq = "push", p.Seq
			if d := cmp.Diff(want, p, nanEqual); d != "" {
				t.Errorf("point %d (-want +got):\n%s", i, d)
			}
			if i > 0 && p.Seq <= got[i-1].Seq {
				t.Errorf("sequence %d after %d", p.Seq, got[i-1].Seq)
			}
		}
		if d := cmp.Diff(before, got[:len(before)], nanEqual, cmpopts.EquateEmpty()); d != "" {
			t.Errorf("the earlier points changed:\n%s", d)
		}
		before = got
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		// The next collector finds half a record.
		tear(t, path)
	}
}

func tear(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(`{"m":"loss","v":"0.`); err != nil {
		t.Fatal(err)
	}
}

// A page with microseconds where milliseconds belong has times that nothing keeps.
func TestATimeThatNothingKeepsCostsNoPoint(t *testing.T) {
	s, err := OpenSpool(filepath.Join(t.TempDir(), "spool"), "prometheus", 0)
	if err != nil {
		t.Fatal(err)
	}
	in := []collector.Point{
		{Metric: "m", Value: 1, Step: 1, Time: now},
		{Metric: "m", Value: 2, Step: 2, Time: time.UnixMilli(now.UnixMicro())},
		{Metric: "m", Value: 3, Step: 3, Time: time.UnixMilli(math.MinInt64)},
		{Metric: "m", Value: 4, Step: 4, Time: time.Date(2300, 1, 1, 0, 0, 0, 0, time.UTC)},
	}
	if err := s.Fill(t.Context(), listed(in)); err != nil {
		t.Error(err)
	}
	got, errs := read(t, s)
	if len(got) != len(in) || len(errs) > 0 {
		t.Fatalf("%d points, %v", len(got), errs)
	}
	for i, p := range got {
		if p.Value != in[i].Value || p.Step != in[i].Step || !p.Time.IsZero() && !p.Time.Equal(now) {
			t.Errorf("point %d is %+v", i, p)
		}
	}
}

func TestAFullSpoolSaysWhatItDropped(t *testing.T) {
	s, err := OpenSpool(filepath.Join(t.TempDir(), "spool"), "push", 200)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	var in listed
	for i := range 10 {
		in = append(in, collector.Point{Metric: "m", Value: float64(i)})
	}
	if err := s.Fill(t.Context(), in); !errors.Is(err, journal.ErrFull) {
		t.Errorf("fill: %v", err)
	}
	got, errs := read(t, s)
	if len(got) == 0 || len(got) == 10 || len(errs) != 1 || !strings.Contains(errs[0].Error(), "points dropped") {
		t.Errorf("%d points, %v", len(got), errs)
	}
}

// mixed yields points and errors in turn.
type mixed []any

func (m mixed) Points(context.Context) iter.Seq2[collector.Point, error] {
	return func(yield func(collector.Point, error) bool) {
		for _, v := range m {
			p, _ := v.(collector.Point)
			err, _ := v.(error)
			if !yield(p, err) {
				return
			}
		}
	}
}

// TestSpoolKeepsWhatItsSourceSaid holds that each error of a source reaches the
// reader, and that an earlier collector's points can be asked for.
func TestSpoolKeepsWhatItsSourceSaid(t *testing.T) {
	path := filepath.Join(t.TempDir(), "spool")
	s, err := OpenSpool(path, "x", 0)
	if err != nil {
		t.Fatal(err)
	}
	first, last := errors.New("first"), errors.New("last")
	from := mixed{collector.Point{Metric: "loss", Value: 1}, first, collector.Point{Metric: "loss", Value: 2}, last}
	if err := s.Fill(t.Context(), from); !errors.Is(err, first) || !errors.Is(err, last) {
		t.Errorf("Fill: %v, want both errors", err)
	}
	var values []float64
	var said []string
	for p, err := range s.Points(t.Context()) {
		if err != nil {
			said = append(said, err.Error())
		} else {
			values = append(values, p.Value)
		}
	}
	if diff := cmp.Diff([]string{"first", "last"}, said); diff != "" {
		t.Errorf("errors (-want +got)\n%s", diff)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := OpenSpool(path, "x", 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := again.Close(); err != nil {
			t.Error(err)
		}
	})
	var kept []float64
	for p, err := range again.Kept(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		kept = append(kept, p.Value)
	}
	if diff := cmp.Diff(values, kept); diff != "" {
		t.Errorf("kept (-read +kept)\n%s", diff)
	}
}
