package tpe

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLadderReachesBothEnds(t *testing.T) {
	for name, c := range map[string]struct {
		at, count int
		want      []int
	}{
		"one level":        {0, 1, nil},
		"two levels":       {1, 2, []int{0}},
		"from the first":   {0, 8, []int{1, 2, 4, 7}},
		"from the last":    {7, 8, []int{6, 5, 3, 0}},
		"from within":      {5, 20, []int{4, 3, 1, 0, 6, 7, 9, 13, 19}},
		"a step to an end": {4, 9, []int{3, 2, 0, 5, 6, 8}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, slices.Collect(ladder(c.at, c.count))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
