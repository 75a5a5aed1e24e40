package probe

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/source"
)

// Files that are still being written have points on the second reading that they
// had not on the first.
func TestPointsThatCameBetweenTheReadings(t *testing.T) {
	at := func(metric string, session int, step int64) source.SessionPoint {
		return source.SessionPoint{Point: collector.Point{Metric: metric, Step: step}, Session: session}
	}
	first := starts{}
	for _, p := range []source.SessionPoint{at("loss", 0, 0), at("loss", 0, 5), at("loss", 1, 3), at("early", 0, 1)} {
		first.see(p)
	}
	type fate struct{ Saw, Count bool }
	tests := map[string]struct {
		point source.SessionPoint
		want  fate
	}{
		"a point before the later session":      {at("loss", 0, 2), fate{true, true}},
		"a point that the later one made void":  {at("loss", 0, 4), fate{true, false}},
		"a further point of the last session":   {at("loss", 1, 9), fate{true, true}},
		"a further session":                     {at("loss", 2, 0), fate{false, false}},
		"a new metric":                          {at("acc", 0, 0), fate{false, false}},
		"a new metric in a further session":     {at("acc", 4, 0), fate{false, false}},
		"a metric that a session now has first": {at("early", 1, 0), fate{false, false}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := fate{Saw: first.saw(tc.point)}
			got.Count = got.Saw && first.count(tc.point)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
