package report

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/proto"

	vernierv1 "github.com/vernier-ml/vernier/api/proto/vernier/v1"
	"github.com/vernier-ml/vernier/collector"
)

var nanEqual = cmpopts.EquateNaNs()

func TestPointsSurviveTheWire(t *testing.T) {
	points := []collector.Point{
		{Metric: "loss", Value: 0.5, Text: "0.50", Step: 1, Seq: 0, Source: "a", Time: now},
		{Metric: "acc", Value: math.NaN(), Text: "none", Step: collector.NoStep, Seq: 7, Source: "a", Time: now.Add(-time.Hour)},
		{Metric: "loss", Value: math.Inf(-1), Step: math.MaxInt64, Seq: math.MaxInt64 - 1, Source: "a"},
		{Metric: "loss", Value: 1, Step: -5, Seq: 3, Source: "b", Time: time.Unix(0, -1).UTC()},
	}
	raw, err := proto.Marshal(&vernierv1.ReportRequest{Points: EncodePoints(points)})
	if err != nil {
		t.Fatal(err)
	}
	var m vernierv1.ReportRequest
	if err := proto.Unmarshal(raw, &m); err != nil {
		t.Fatal(err)
	}
	got, err := DecodePoints(m.Points)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(points, got, nanEqual); d != "" {
		t.Errorf("points (-want +got):\n%s", d)
	}
}

func TestAPointThatComesTwiceInARowTravelsOnce(t *testing.T) {
	p := collector.Point{Metric: "m", Source: "s", Seq: 5}
	got, err := DecodePoints(EncodePoints([]collector.Point{p, p}))
	if err != nil || len(got) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestABatchIsCompact(t *testing.T) {
	var points []collector.Point
	for i := range int64(MaxBatch) {
		points = append(points, collector.Point{Metric: "validation/loss", Value: 1 / float64(i+1), Step: i,
			Seq: i * 60, Source: "stdout", Time: now.Add(time.Duration(i) * time.Millisecond)})
	}
	size := proto.Size(&vernierv1.ReportRequest{Points: EncodePoints(points)})
	if per := size / MaxBatch; per > 20 {
		t.Errorf("%d bytes a point", per)
	}
}

func TestMessagesThatDoNotHoldTogetherAreRefused(t *testing.T) {
	good := func() *vernierv1.SourcePoints {
		return &vernierv1.SourcePoints{Source: "s", Metrics: []string{"m"}, Metric: []uint32{0, 0}, Value: []float64{1, 2},
			Step: []int64{1, 2}, Seq: []uint64{0, 1}, Time: []int64{1, 1}}
	}
	if _, err := DecodePoints([]*vernierv1.SourcePoints{good()}); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		change func(*vernierv1.SourcePoints)
		want   string
	}{
		"no source":           {func(m *vernierv1.SourcePoints) { m.Source = "" }, "source"},
		"a column is short":   {func(m *vernierv1.SourcePoints) { m.Step = m.Step[:1] }, "differ in length"},
		"no such metric":      {func(m *vernierv1.SourcePoints) { m.Metric[1] = 1 }, "metric 1 of 1"},
		"a nameless metric":   {func(m *vernierv1.SourcePoints) { m.Metrics[0] = "" }, "without name"},
		"a sequence rests":    {func(m *vernierv1.SourcePoints) { m.Seq[1] = 0 }, "must grow"},
		"a sequence overruns": {func(m *vernierv1.SourcePoints) { m.Seq = []uint64{1 << 62, 1 << 62} }, "must grow"},
		"a sequence is huge":  {func(m *vernierv1.SourcePoints) { m.Seq[0] = math.MaxUint64 }, "must grow"},
		"text for nothing":    {func(m *vernierv1.SourcePoints) { m.Text = map[uint32]string{2: "x"} }, "text for point 2"},
	}
	for name, tc := range tests {
		m := good()
		tc.change(m)
		if _, err := DecodePoints([]*vernierv1.SourcePoints{m}); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q in it", name, err, tc.want)
		}
	}
	if _, err := DecodePoints([]*vernierv1.SourcePoints{good(), good()}); err == nil {
		t.Error("the same source twice is accepted")
	}
}

// What is decoded can be stored and encoded again.
func FuzzDecodePoints(f *testing.F) {
	raw, err := proto.Marshal(&vernierv1.ReportRequest{Points: EncodePoints([]collector.Point{
		{Metric: "m", Source: "s", Seq: 1, Text: "x"}, {Metric: "n", Source: "s", Seq: 2, Time: now}})})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	f.Fuzz(func(t *testing.T, raw []byte) {
		var m vernierv1.ReportRequest
		if proto.Unmarshal(raw, &m) != nil {
			return
		}
		points, err := DecodePoints(m.Points)
		if err != nil {
			return
		}
		last := map[string]int64{}
		for _, p := range points {
			before, known := last[p.Source]
			if p.Metric == "" || p.Source == "" || p.Seq < 0 || p.Seq == math.MaxInt64 || known && p.Seq <= before {
				t.Fatalf("decoded %+v after %d", p, before)
			}
			last[p.Source] = p.Seq
		}
		again, err := DecodePoints(EncodePoints(points))
		if err != nil {
			t.Fatal(err)
		}
		byKey := cmpopts.SortSlices(func(a, b collector.Point) bool {
			return a.Source < b.Source || a.Source == b.Source && a.Seq < b.Seq
		})
		outOfRange := cmp.Comparer(func(a, b time.Time) bool {
			x, _ := collector.UnixNano(a)
			y, _ := collector.UnixNano(b)
			return x == y
		})
		if d := cmp.Diff(points, again, nanEqual, byKey, outOfRange); d != "" {
			t.Errorf("again (-first +again):\n%s", d)
		}
	})
}
