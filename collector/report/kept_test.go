package report

import (
	"context"
	"errors"
	"iter"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/collector"
)

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
