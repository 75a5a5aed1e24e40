package collector_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/vernier-ml/vernier/collector"
)

// curve makes n points of one series, with all that programs do to steps and
// values.
func curve(random *rand.Rand, n int) []collector.Point {
	var points []collector.Point
	stated, seq, step := random.IntN(4), int64(0), int64(random.IntN(20))
	for range n {
		seq += 1 + random.Int64N(50)
		p := collector.Point{Metric: "loss", Source: "stdout", Seq: seq, Value: math.Round(random.NormFloat64() * 20), Step: collector.NoStep}
		if stated == 1 || stated > 1 && random.IntN(3) == 0 {
			p.Step = step
		}
		switch random.IntN(12) {
		case 0:
			step -= random.Int64N(5) // a program that goes back
		default:
			step += random.Int64N(3)
		}
		step = max(step, 0)
		switch random.IntN(15) {
		case 0:
			p.Value = math.NaN()
		case 1:
			p.Value = math.Inf(1)
		case 2:
			p.Value, p.Text = math.NaN(), "none"
		case 3:
			p.Text = fmt.Sprintf("%.3f", p.Value)
		}
		points = append(points, p)
	}
	return points
}

// cut thins points in parts of random sizes, as one life of a collector after the
// other would, and some parts twice, as they come.
func cut(random *rand.Rand, points []collector.Point) (kept []collector.Point) {
	for len(points) > 0 {
		n, limit := 1+random.IntN(len(points)), 2+random.IntN(20)
		part := points[:n]
		switch random.IntN(3) {
		case 0:
			part = collector.Thin(part, limit)
		case 1:
			k := random.IntN(n)
			part = collector.Thin(append(collector.Thin(part[:k], limit), part[k:]...), limit)
		}
		kept = append(kept, part...)
		points = points[n:]
	}
	return kept
}

func TestAThinnedCurveGivesTheSameResult(t *testing.T) {
	for seed := range uint64(3000) {
		random := rand.New(rand.NewPCG(seed, 7))
		points := curve(random, 1+random.IntN(300))
		kept := cut(random, points)
		attempt := collector.Attempt{ID: "pod/0"}
		observe := func(points []collector.Point) collector.Observation {
			return collector.Observe([]collector.Series{{Attempt: attempt, Metric: "loss", Points: points}}, "loss")
		}
		if d := cmp.Diff(observe(points), observe(kept), cmpopts.EquateNaNs(), cmpopts.IgnoreFields(collector.Observation{}, "Points")); d != "" {
			t.Fatalf("seed %d: %d of %d points kept (-all +kept):\n%s", seed, len(kept), len(points), d)
		}
		isSubset(t, points, kept)
	}
}

// isSubset checks that kept is some of points, in order, each once.
func isSubset(t *testing.T, points, kept []collector.Point) {
	t.Helper()
	i := 0
	for _, p := range kept {
		for i < len(points) && points[i].Seq != p.Seq {
			i++
		}
		if i == len(points) {
			t.Fatalf("the point at %d was never given, or was given before another that was kept before it", p.Seq)
		}
		if d := cmp.Diff(points[i], p, cmpopts.EquateNaNs(), cmpopts.IgnoreFields(p, "Step")); d != "" || p.Step != points[i].Step && points[i].Step != collector.NoStep {
			t.Fatalf("a point was changed:\n%s", d)
		}
		i++
	}
}

func TestAThinnedCurveIsBounded(t *testing.T) {
	for _, limit := range []int{2, 7, 100, 400} {
		var all, byPart []collector.Point
		for i := range int64(100_000) {
			p := collector.Point{Seq: i, Value: math.Sin(float64(i) / 5000), Step: i}
			if i%3 == 0 {
				p.Step = collector.NoStep
			}
			all, byPart = append(all, p), append(byPart, p)
			if len(byPart) >= 10*limit {
				byPart = collector.Thin(byPart, limit)
			}
		}
		for how, n := range map[string]int{"at once": len(collector.Thin(all, limit)), "part by part": len(collector.Thin(byPart, limit))} {
			if n > 4*limit+3 || n < limit/2 {
				t.Errorf("thinned %s to %d stretches, %d points were kept", how, limit, n)
			}
		}
	}
}

// Points that come evenly are kept evenly.
func TestAThinnedCurveKeepsItsForm(t *testing.T) {
	const n = 10_000
	var kept []collector.Point
	for i := range int64(n) {
		kept = append(kept, collector.Point{Seq: i, Step: i, Value: float64(i)})
		if i%1000 == 999 {
			kept = collector.Thin(kept, 100)
		}
	}
	widest, before := int64(0), int64(0)
	for _, p := range kept {
		widest, before = max(widest, p.Seq-before), p.Seq
	}
	if widest > n/50 {
		t.Errorf("%d of %d points are kept, with a gap of %d", len(kept), n, widest)
	}
}
