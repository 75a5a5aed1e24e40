package population

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/suggest/history"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

func frontOf(points ...[]float64) []survivor {
	var out []survivor
	for _, p := range points {
		out = append(out, survivor{Row: &history.Row{Losses: p}})
	}
	return out
}

func TestRoomIsWhatNoOtherPointIsNearlyAsGoodIn(t *testing.T) {
	const far = 1e308
	for name, c := range map[string]struct {
		points [][]float64
		keep   int
		want   [][]float64
		room   []float64
	}{
		"of two equal points the first stays": {
			[][]float64{{0, 1, 1, 1}, {1, 0, 0, 0}, {0, 1, 1, 1}}, 2,
			[][]float64{{0, 1, 1, 1}, {1, 0, 0, 0}}, []float64{1, math.Sqrt(3)},
		},
		"a point that is little better in one and bad in all others goes": {
			[][]float64{{0.01, 0.2, 0.2, 0.2}, {0, 1, 1, 1}, {1, 0, 0.5, 0.5}, {0.5, 0.5, 0, 0}}, 3,
			[][]float64{{0.01, 0.2, 0.2, 0.2}, {1, 0, 0.5, 0.5}, {0.5, 0.5, 0, 0}}, []float64{math.Hypot(0.49, 0.3), 0.2, 0.2 * math.Sqrt2},
		},
		"the unit of an objective does not matter": {
			[][]float64{{0.01, 200, 0.2, 0.2}, {0, 1000, 1, 1}, {1, 0, 0.5, 0.5}, {0.5, 500, 0, 0}}, 3,
			[][]float64{{0.01, 200, 0.2, 0.2}, {1, 0, 0.5, 0.5}, {0.5, 500, 0, 0}}, nil,
		},
		"values at the end of the range, and an objective that is constant": {
			[][]float64{{-far, far, 3, 3}, {far, -far, 3, 3}, {0, 0, 3, 3}}, 2,
			[][]float64{{-far, far, 3, 3}, {far, -far, 3, 3}}, []float64{1, 1},
		},
		"none is wanted": {[][]float64{{0, 1, 1, 1}, {1, 0, 0, 0}}, 0, nil, nil},
		"one is alone":   {[][]float64{{0, 1, 1, 1}}, 1, [][]float64{{0, 1, 1, 1}}, []float64{math.Inf(1)}},
	} {
		t.Run(name, func(t *testing.T) {
			var points [][]float64
			for _, m := range roomiest(frontOf(c.points...), c.keep) {
				points = append(points, m.Losses)
			}
			if diff := cmp.Diff(c.want, points); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if c.room == nil {
				return
			}
			for i, m := range roomiest(frontOf(c.points...), c.keep) {
				if got := m.crowd; got != c.room[i] && !(math.Abs(got-c.room[i]) < 1e-9) {
					t.Errorf("point %d has the room %v, want %v", i, got, c.room[i])
				}
			}
		})
	}
}

// What is remembered of the nearest points must be what looking anew finds.
func TestRoomIsThatAmongThoseThatAreLeft(t *testing.T) {
	stream := rng.NewKey(3, "room").Stream(0)
	var points [][]float64
	for range 60 {
		p := make([]float64, 5)
		for j := range p {
			p[j] = stream.Float64()
		}
		points = append(points, p)
	}
	unit := reach(points)
	kept := roomiest(frontOf(points...), 35)
	if len(kept) != 35 {
		t.Fatalf("%d are kept", len(kept))
	}
	for i, m := range kept {
		least := math.Inf(1)
		for k, other := range kept {
			if k != i {
				least = math.Min(least, shifted(m.Losses, other.Losses, unit))
			}
		}
		if m.crowd != least {
			t.Errorf("point %d has the room %v, want %v", i, m.crowd, least)
		}
	}
}
