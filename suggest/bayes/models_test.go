package bayes

import "testing"

func TestRefitSchedule(t *testing.T) {
	m := models{data: &data{}}
	for _, c := range []struct {
		last, now int
		want      bool
	}{{0, 1, true}, {50, 50, false}, {50, 51, true}, {99, 100, false}, {99, 102, true}, {1000, 1024, false}, {1000, 1026, true}, {500, 400, true}} {
		if got := m.stale(c.last, c.now); got != c.want {
			t.Errorf("fitted at %d, now %d: %v", c.last, c.now, got)
		}
	}
}
