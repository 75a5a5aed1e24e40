package source_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/source"
)

// sightings is a poller that sees data in some of its polls.
type sightings []bool

func (s *sightings) Poll(context.Context) (sawData, ok bool) {
	if len(*s) == 0 {
		return false, false
	}
	sawData, *s = (*s)[0], (*s)[1:]
	return sawData, true
}

func (*sightings) Finish(context.Context) bool { return true }
func (*sightings) Close()                      {}

func TestPauseGrowsAndShrinks(t *testing.T) {
	var asked []string
	clock := source.Clock{After: func(d time.Duration) <-chan time.Time {
		asked = append(asked, d.String())
		now := make(chan time.Time, 1)
		now <- time.Time{}
		return now
	}}
	polls := sightings{true, false, false, false, false, false, false, true, false}
	source.Follow(t.Context(), clock, nil, &polls, func(_ collector.Point, err error) bool { t.Error(err); return true })
	want := []string{"50ms", "100ms", "200ms", "400ms", "800ms", "1s", "1s", "50ms", "100ms"}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("pauses (-want +got):\n%s", diff)
	}
}
