package report

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/bench/suggest/play"
)

// A method may have been played again in some regimes only.
func TestTheNewestVersionInEachRegime(t *testing.T) {
	game := func(method, regime, version string) play.Record {
		return play.Record{Key: play.Key{Method: method, Regime: regime, Version: version}}
	}
	got := newest([]play.Record{
		game("auto", play.Large, "v1"), game("auto", play.Sequential, "v1"), game("random", play.Sequential, "v1"),
		game("auto", play.Sequential, "v2"), game("auto", play.Sequential, "v2"),
	})
	want := []play.Record{
		game("auto", play.Large, "v1"), game("random", play.Sequential, "v1"), game("auto", play.Sequential, "v2"), game("auto", play.Sequential, "v2"),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
