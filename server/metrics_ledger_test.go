package server

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/collector"
)

func TestALedgerKnowsWhatWasStoredBefore(t *testing.T) {
	l := newLedger(time.Now)
	points := func(source string, seqs ...int64) (p []collector.Point) {
		for _, seq := range seqs {
			p = append(p, collector.Point{Source: source, Seq: seq})
		}
		return p
	}
	one := stream{"trial", "pod/0"}
	l.hello(stream{"trial", "pod/1"}, map[string]int64{"stdout": 5})
	for i, step := range []struct {
		key    stream
		points []collector.Point
		want   map[string]int
	}{
		{one, points("stdout", 1, 2, 3), nil},
		{one, points("stdout", 1, 2, 3, 4), map[string]int{"stdout": 3}},
		{one, points("file:x", 1), nil},
		{stream{"trial", "pod/1"}, points("stdout", 4, 5), map[string]int{"stdout": 1}},
		{stream{"other", "pod/0"}, points("stdout", 1), nil},
	} {
		if d := cmp.Diff(step.want, l.stored(step.key, step.points, false)); d != "" {
			t.Errorf("call %d (-want +got):\n%s", i, d)
		}
	}
}

func TestALedgerCountsLiveStreamsAndStaysBounded(t *testing.T) {
	now := time.Unix(1e9, 0)
	l := newLedger(func() time.Time { return now })
	report := func(n int, final bool) {
		l.stored(stream{fmt.Sprint("trial ", n), "pod/0"}, nil, final)
	}
	report(1, false)
	report(2, false)
	report(2, true)
	if n := l.live(); n != 1 {
		t.Errorf("%v live streams of one", n)
	}
	now = now.Add(liveFor)
	if n := l.live(); n != 0 {
		t.Errorf("%v live streams after a silence", n)
	}
	for n := range 3 * maxStreams {
		report(n, false)
		for source := range 3 {
			l.stored(stream{"many sources", "pod/0"}, []collector.Point{{Source: fmt.Sprint(n, source)}}, false)
		}
	}
	if n := len(l.streams); n > maxStreams {
		t.Errorf("%d streams are remembered", n)
	}
	if n := len(l.streams[stream{"many sources", "pod/0"}].acked); n > maxStreamSources {
		t.Errorf("%d sources of one stream are remembered", n)
	}
	now = now.Add(knownFor)
	report(0, false)
	if n := len(l.streams); n != 1 {
		t.Errorf("%d streams are remembered after a long silence", n)
	}
}

func TestKindsOfSources(t *testing.T) {
	for source, want := range map[string]string{
		"stdout": "stdout", "file:/log/metrics.csv#loss": "file", "tfevent:train/events.out.tfevents.1": "tfevent", "push": "push", "push:katib": "push",
		"prometheus:http://localhost:8080/metrics": "prometheus", "wandb:run-1/run-1.wandb": "wandb", "": "other", "made up": "other",
	} {
		if got := kindOf(source); got != want {
			t.Errorf("%q is of the kind %s, want %s", source, got, want)
		}
	}
}
