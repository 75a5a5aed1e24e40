package tpe

import (
	"slices"
	"testing"

	"github.com/vernier-ml/vernier/suggest/history"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

// Hypervolumes of so many objectives would take hours. What is best in one of them stands
// at an end of the front.
func TestManyObjectivesAreSplitInTime(t *testing.T) {
	const objectives = 12
	stream := rng.New(1, "test", 0, "losses")
	all, best := make([]*history.Row, 2000), make([]int, objectives)
	for i := range all {
		all[i] = &history.Row{Losses: make([]float64, objectives)}
		stream.Fill(all[i].Losses)
		for j, x := range all[i].Losses {
			if x < all[best[j]].Losses[j] {
				best[j] = i
			}
		}
	}
	got := leaders(all, 100)
	if len(got) != 100 {
		t.Errorf("%d leaders, want 100", len(got))
	}
	for j, i := range best {
		if !slices.Contains(got, i) {
			t.Errorf("the best of objective %d is not among the leaders", j)
		}
	}
}
