package server

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/report"
)

func TestStreamsKnowWhatWasStoredBefore(t *testing.T) {
	l := newStreams(time.Now)
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
		if d := cmp.Diff(step.want, l.stored(step.key, step.points, false), cmpopts.EquateEmpty()); d != "" {
			t.Errorf("call %d (-want +got):\n%s", i, d)
		}
	}
}

func TestLiveStreamsAreCountedAndBounded(t *testing.T) {
	now := time.Unix(1e9, 0)
	l := newStreams(func() time.Time { return now })
	tell := func(n int, final bool) {
		l.stored(stream{fmt.Sprint("trial ", n), "pod/0"}, nil, final)
	}
	tell(1, false)
	tell(2, false)
	tell(2, true)
	if n := l.live(); n != 1 {
		t.Errorf("%v live streams of one", n)
	}
	now = now.Add(liveFor)
	if n := l.live(); n != 0 {
		t.Errorf("%v live streams after a silence", n)
	}
	for n := range 3 * maxStreams {
		tell(n, false)
		for source := range 3 {
			l.stored(stream{"many sources", "pod/0"}, []collector.Point{{Source: fmt.Sprint(n, source)}}, false)
		}
	}
	if n := len(l.all); n > maxStreams {
		t.Errorf("%d streams are remembered", n)
	}
	if n := len(l.all[stream{"many sources", "pod/0"}].acked); n > maxStreamSources {
		t.Errorf("%d sources of one stream are remembered", n)
	}
	now = now.Add(knownFor)
	tell(0, false)
	if n := len(l.all); n != 1 {
		t.Errorf("%d streams are remembered after a long silence", n)
	}
}

// A trial chooses the names of its attempts and sources, and may make up any
// number of the longest that are taken.
func TestStreamsOfLongNamesTakesLittle(t *testing.T) {
	l := newStreams(time.Now)
	const streams = 500
	before := heap()
	for n := range streams {
		var points []collector.Point
		for source := range maxStreamSources {
			points = append(points, collector.Point{Source: fmt.Sprintf("%0*d", report.MaxName, source)})
		}
		l.stored(stream{"trial", fmt.Sprintf("%0*d", maxAttemptID, n)}, points, false)
	}
	each := (heap() - before) / streams
	if each > 8<<10 {
		t.Errorf("a stream takes %d bytes, %d of them %d MiB", each, maxStreams, each*maxStreams>>20)
	}
	runtime.KeepAlive(l)
}

// heap is what is in use on the heap, in bytes.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
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
