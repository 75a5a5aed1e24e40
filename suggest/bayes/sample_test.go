package bayes

import (
	"slices"
	"testing"

	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

func TestSubset(t *testing.T) {
	stream := rng.New(9, "test", 0, "rows")
	rows, losses := make([][]float64, 2000), make([]float64, 2000)
	for i := range rows {
		rows[i] = []float64{stream.Float64(), stream.Float64()}
		losses[i] = stream.NormFloat64()
	}
	if got := subset(rows[:modelled], losses[:modelled], modelled); !slices.Equal(got, rangeOf(modelled)) {
		t.Errorf("of %d rows: %v", modelled, got)
	}
	base := subset(rows[:1900], losses[:1900], modelled)
	later := subset(rows[:1924], losses[:1924], modelled)
	if len(base) != modelled || !slices.Equal(later[:modelled], base) || len(later) != modelled+24 {
		t.Errorf("%d rows of 1900, %d of 1924", len(base), len(later))
	}
	best := ascending(losses[:1900])
	for _, i := range best[:modelled*3/8] {
		if !slices.Contains(base, i) {
			t.Errorf("row %d, one of the best, is missing", i)
		}
	}
	if !slices.IsSorted(base) {
		t.Error("not in order of the trials")
	}
}
