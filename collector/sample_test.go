package collector

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// sampleWhole is what Sampler promises, for points that all have steps: it tries
// widths from the least one on.
func sampleWhole(points []Point, n int) []Bucket {
	for width := uint(0); ; width++ {
		var buckets []Bucket
		var last int64
		for _, p := range points {
			at := p.Step >> min(width, 63)
			if len(buckets) == 0 || at != last {
				buckets = append(buckets, Bucket{First: p.Step, Last: p.Step, Min: math.NaN(), Max: math.NaN()})
			}
			last = at
			b := &buckets[len(buckets)-1]
			b.First, b.Last = min(b.First, p.Step), max(b.Last, p.Step)
			b.Value, b.Time, b.Points = p.Value, p.Time, b.Points+1
			if math.IsNaN(b.Min) || p.Value < b.Min {
				b.Min = p.Value
			}
			if math.IsNaN(b.Max) || p.Value > b.Max {
				b.Max = p.Value
			}
		}
		if len(buckets) <= n {
			return buckets
		}
	}
}

func TestSamplerGivesTheSameInAnyOrder(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 3))
		var points []Point
		step := []int64{0, -5, math.MinInt64, 1 << 40}[r.IntN(4)]
		for i := range int64(1 + r.IntN(60)) {
			points = append(points, Point{Value: float64(r.IntN(9)), Step: step, Seq: i, Source: "s"})
			if gap := r.Int64N(1 << r.IntN(62)); step < math.MaxInt64-gap-2 {
				step += gap + 1
			} else {
				break
			}
			if step == NoStep {
				step++
			}
		}
		n := 2 + r.IntN(12)
		want := sampleWhole(points, n)
		for range 3 {
			s := NewSampler(n)
			for _, p := range points {
				s.Add(p)
			}
			got, stepless := s.Buckets()
			if d := cmp.Diff(want, got, bits); d != "" || stepless || len(got) > n {
				t.Fatalf("seed %d, %d buckets, stepless %v (-want +got):\n%s", seed, n, stepless, d)
			}
			r.Shuffle(len(points), func(i, k int) { points[i], points[k] = points[k], points[i] })
		}
	}
}

func TestSamplerOfPointsWithoutSteps(t *testing.T) {
	none := func(seq int64, v float64) Point { return Point{Value: v, Step: NoStep, Seq: seq, Source: "s"} }
	s := NewSampler(2)
	for i, v := range []float64{3, math.NaN(), 1, math.Inf(1), 2} {
		s.Add(none(int64(i), v))
	}
	got, stepless := s.Buckets()
	want := []Bucket{{First: 1, Last: 3, Min: 1, Max: 3, Value: 1, Points: 3}, {First: 4, Last: 5, Min: 2, Max: 2, Value: 2, Points: 2}}
	if d := cmp.Diff(want, got, bits); d != "" || !stepless {
		t.Errorf("stepless %v (-want +got):\n%s", stepless, d)
	}
	// From the first step on, points without one belong to the last.
	s.Add(Point{Value: 9, Step: 7, Seq: 5, Source: "s"})
	s.Add(none(6, 8))
	got, stepless = s.Buckets()
	want = []Bucket{{First: NoStep, Last: NoStep, Min: 1, Max: 3, Value: 2, Points: 5}, {First: 7, Last: 7, Min: 8, Max: 9, Value: 8, Points: 2}}
	if d := cmp.Diff(want, got, bits); d != "" || stepless {
		t.Errorf("stepless %v (-want +got):\n%s", stepless, d)
	}
}

func TestSamplerHoldsFewBuckets(t *testing.T) {
	s := NewSampler(16)
	for i := range int64(100_000) {
		s.Add(Point{Value: 1, Step: i, Seq: i, Source: "s"})
		if n := s.stepped.Len(); n > 16 {
			t.Fatalf("%d buckets after %d points", n, i)
		}
	}
	if got, _ := s.Buckets(); got[0].Points != 8192 || len(got) != 13 {
		t.Errorf("%d buckets, the first of %d points", len(got), got[0].Points)
	}
}
