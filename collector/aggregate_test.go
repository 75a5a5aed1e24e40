package collector

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
	"unsafe"

	gocmp "github.com/google/go-cmp/cmp"
)

// bits compares values bit by bit, except that a NaN is a NaN.
var bits = gocmp.Comparer(func(a, b float64) bool {
	return math.Float64bits(a) == math.Float64bits(b) || math.IsNaN(a) && math.IsNaN(b)
})

// stepped is a point with the step that it belongs to.
type stepped struct {
	Point
	step int64
}

func (a stepped) compare(b stepped) int {
	byTime := 0
	if a.step == NoStep && b.step == NoStep {
		byTime = a.Time.Compare(b.Time)
	}
	return cmp.Or(cmp.Compare(a.step, b.step), byTime, cmp.Compare(a.Seq, b.Seq),
		a.Time.Compare(b.Time), cmp.Compare(a.Source, b.Source))
}

// group is the points of one attempt, in order of Source, then Seq.
type group struct {
	attempt string
	points  []stepped
}

// wholeAttempts are the attempts that have points of a metric, the newest first.
func wholeAttempts(series []Series, metric string) []group {
	attempts := map[string][]stepped{}
	var newest []Attempt
	for _, s := range series {
		if s.Metric != metric || len(s.Points) == 0 {
			continue
		}
		newest = append(newest, s.Attempt)
		points := slices.Clone(s.Points)
		slices.SortFunc(points, func(a, b Point) int { return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Seq, b.Seq)) })
		last := map[string]int64{}
		for _, p := range points {
			at, known := last[p.Source]
			if p.Step != NoStep || !known {
				at = p.Step
			}
			last[p.Source] = at
			attempts[s.Attempt.ID] = append(attempts[s.Attempt.ID], stepped{p, at})
		}
	}
	slices.SortFunc(newest, func(a, b Attempt) int { return cmp.Or(b.Started.Compare(a.Started), cmp.Compare(b.ID, a.ID)) })
	var groups []group
	for _, a := range newest {
		groups = append(groups, group{a.ID, attempts[a.ID]})
	}
	return groups
}

// wholeCounted are the points that count, by attempt, the newest first.
func wholeCounted(series []Series, metric string) []group {
	var groups []group
	var counted []stepped
	for _, g := range wholeAttempts(series, metric) {
		var kept []stepped
		for _, p := range g.points {
			below := func(q stepped) bool { return p.step < q.step && p.step != NoStep }
			if !slices.ContainsFunc(counted, func(q stepped) bool { return !below(q) }) {
				kept = append(kept, p)
			}
		}
		groups = append(groups, group{g.attempt, kept})
		with := slices.DeleteFunc(slices.Clone(kept), func(q stepped) bool { return q.step == NoStep })
		if len(counted) == 0 && len(with) == 0 {
			with = kept // an attempt without steps replaces all earlier ones
		}
		counted = append(counted, with...)
	}
	return groups
}

// observeWhole is what Observe promises, written for a whole curve in memory: it
// shares no code with Aggregator but the order of points.
func observeWhole(series []Series, metric string) Observation {
	o := Observation{Metric: metric, Min: missing(), Max: missing(), Latest: missing(), Chosen: missing()}
	var counted []stepped
	for _, g := range wholeCounted(series, metric) {
		if len(counted) == 0 && len(g.points) > 0 {
			o.Latest = measure(slices.MaxFunc(g.points, stepped.compare).Point)
		}
		counted = append(counted, g.points...)
	}
	o.Points = len(counted)
	for _, among := range []func(float64) bool{
		func(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) },
		func(v float64) bool { return math.IsInf(v, 0) },
		math.IsNaN,
	} {
		if o.Min.Text != Unavailable {
			break
		}
		for _, p := range counted {
			if !among(p.Value) || rank(&p.Point) == rankText {
				continue
			}
			if o.Min.Text == Unavailable {
				o.Min, o.Max = measure(p.Point), measure(p.Point)
			}
			if p.Value < o.Min.Value {
				o.Min = measure(p.Point)
			}
			if p.Value > o.Max.Value {
				o.Max = measure(p.Point)
			}
		}
	}
	return o
}

// randomSeries makes few attempts, sources, steps and values, so that they meet.
func randomSeries(r *rand.Rand) []Series {
	pick := func(values ...float64) float64 { return values[r.IntN(len(values))] }
	var series []Series
	for n := range 1 + r.IntN(4) {
		a := Attempt{ID: string(rune('a' + n)), Started: start.Add(time.Duration(r.IntN(3)) * time.Hour)}
		first, stepless := int64(r.IntN(8)), r.IntN(3)
		for _, metric := range []string{"loss", "accuracy"}[:1+r.IntN(2)] {
			s := Series{Attempt: a, Metric: metric}
			for _, source := range []string{"file:/log", "push", "stdout"}[r.IntN(3):] {
				for i := range int64(r.IntN(9)) {
					p := Point{Metric: metric, Source: source, Seq: i * 7, Step: first + i, Time: start.Add(time.Duration(r.IntN(3)) * time.Second),
						Value: pick(0, math.Copysign(0, -1), 1, 2, -3, 0.25, math.NaN(), math.Inf(1), math.Inf(-1))}
					switch {
					case r.IntN(3) < stepless:
						p.Step = NoStep
					case r.IntN(8) == 0:
						p.Step = []int64{-7, 0, 3, math.MaxInt64}[r.IntN(4)]
					}
					if math.IsNaN(p.Value) {
						p.Text = []string{"", "nan", "+NaN", "bad", Unavailable}[r.IntN(5)]
					} else if r.IntN(4) == 0 {
						p.Text = measure(p).Text + ".0"
					}
					s.Points = append(s.Points, p)
				}
			}
			r.Shuffle(len(s.Points), func(i, k int) { s.Points[i], s.Points[k] = s.Points[k], s.Points[i] })
			series = append(series, s)
		}
	}
	r.Shuffle(len(series), func(i, k int) { series[i], series[k] = series[k], series[i] })
	return series
}

// inFeedOrder are the points of a metric as a Aggregator needs them.
func inFeedOrder(series []Series, metric string) (attempts []Attempt, points []Point) {
	type fed struct {
		Attempt
		Point
	}
	var all []fed
	for _, s := range series {
		for _, p := range s.Points {
			if s.Metric == metric {
				all = append(all, fed{s.Attempt, p})
			}
		}
	}
	slices.SortFunc(all, func(a, b fed) int {
		return cmp.Or(b.Started.Compare(a.Started), cmp.Compare(b.ID, a.ID), cmp.Compare(a.Source, b.Source), cmp.Compare(a.Seq, b.Seq))
	})
	for _, f := range all {
		attempts, points = append(attempts, f.Attempt), append(points, f.Point)
	}
	return attempts, points
}

func TestAggregatingPointByPointEqualsAggregatingTheWhole(t *testing.T) {
	restarted, resumed, numberless := 0, 0, 0
	for seed := range uint64(20_000) {
		series := randomSeries(rand.New(rand.NewPCG(seed, 1)))
		want := observeWhole(series, "loss")
		attempts, points := inFeedOrder(series, "loss")
		c := &Aggregator{}
		for i, p := range points {
			c.Add(attempts[i], p)
		}
		for name, got := range map[string]Observation{"Aggregator": c.Observation("loss"), "Observe": Observe(series, "loss")} {
			if diff := gocmp.Diff(want, got, bits); diff != "" {
				t.Fatalf("seed %d: %s (-whole +got):\n%s\n%+v", seed, name, diff, series)
			}
		}
		switch {
		case want.Points < len(points):
			restarted++
		case len(points) > 0 && attempts[0].ID != attempts[len(attempts)-1].ID:
			resumed++
		}
		if want.Points > 0 && want.Min.Text == Unavailable {
			numberless++
		}
	}
	if restarted < 1000 || resumed < 100 || numberless < 10 {
		t.Errorf("the cases are poor: %d restarted, %d resumed, %d without a number", restarted, resumed, numberless)
	}
}

func TestAnAggregatorMayBeAskedBetweenPoints(t *testing.T) {
	c := &Aggregator{}
	var got []string
	say := func() {
		o := c.Observation("loss")
		got = append(got, o.Min.Text+"/"+o.Max.Text+"/"+o.Latest.Text)
	}
	say()
	for _, p := range curve(0, 0, 3, 1, 2).Points {
		c.Add(attempt(0), p)
		say()
	}
	want := []string{"unavailable/unavailable/unavailable", "3/3/3", "1/3/1", "1/3/2"}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("observations (-want +got):\n%s", diff)
	}
}

func TestAnAggregatorDoesNotGrow(t *testing.T) {
	c := &Aggregator{}
	a, p, seq := attempt(0), curve(0, 0, 1).Points[0], int64(0)
	allocations := testing.AllocsPerRun(1000, func() {
		seq++
		p.Seq, p.Step, p.Value = seq, seq, 1/float64(seq)
		c.Add(a, p)
	})
	if size := unsafe.Sizeof(*c); allocations > 0 || size > 1024 {
		t.Errorf("a point allocates %v times, the aggregator has %d bytes", allocations, size)
	}
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// meanWhole is what mean-last-k promises.
func meanWhole(series []Series, metric string, k int) Measure {
	var all []stepped
	for _, g := range slices.Backward(wholeCounted(series, metric)) {
		all = append(all, slices.SortedFunc(slices.Values(g.points), stepped.compare)...)
	}
	sum, n := 0.0, 0
	for _, p := range all[max(0, len(all)-k):] {
		if finite(p.Value) {
			sum, n = sum+p.Value, n+1
		}
	}
	if n == 0 {
		return observeWhole(series, metric).Latest
	}
	return measure(Point{Value: sum / float64(n)})
}

// bestWhole is what best-at-step promises.
func bestWhole(series []Series, metric, objective string, maximize bool) Measure {
	var best stepped
	attempt := ""
	for _, g := range wholeCounted(series, objective) {
		for _, p := range g.points {
			better := attempt == "" || p.Value < best.Value
			if maximize {
				better = attempt == "" || p.Value > best.Value
			}
			if finite(p.Value) && better {
				best, attempt = p, g.attempt
			}
		}
	}
	switch {
	case attempt == "":
		return missing()
	case metric == objective:
		return measure(best.Point)
	case best.step == NoStep:
		return missing()
	}
	for _, g := range wholeAttempts(series, metric) {
		upTo := slices.DeleteFunc(slices.Clone(g.points), func(p stepped) bool { return p.step == NoStep || p.step > best.step })
		if g.attempt == attempt && len(upTo) > 0 {
			return measure(slices.MaxFunc(upTo, stepped.compare).Point)
		}
	}
	return missing()
}

func TestStrategiesGiveWhatTheyPromise(t *testing.T) {
	available := 0
	for seed := range uint64(2000) {
		series := randomSeries(rand.New(rand.NewPCG(seed, 5)))
		for _, k := range []int{1, 3, 1000} {
			got := reduce(series, Ask{Metric: "loss", Strategy: Strategy(fmt.Sprint("mean-last-", k))})[0].Chosen
			if diff := gocmp.Diff(meanWhole(series, "loss", k), got, bits); diff != "" {
				t.Fatalf("seed %d, mean of the last %d (-want +got):\n%s", seed, k, diff)
			}
		}
		for _, metric := range []string{"loss", "accuracy"} {
			for _, maximize := range []bool{false, true} {
				got := reduce(series, Ask{Metric: metric, Strategy: StrategyBestAtStep, Objective: "loss", Maximize: maximize})[0].Chosen
				if diff := gocmp.Diff(bestWhole(series, metric, "loss", maximize), got, bits); diff != "" {
					t.Fatalf("seed %d, %s where loss is best, maximize %v (-want +got):\n%s", seed, metric, maximize, diff)
				}
				if metric == "accuracy" && got.Text != Unavailable {
					available++
				}
			}
		}
	}
	if available < 500 {
		t.Errorf("only %d of 4000 values at the best step were there: the test shows little", available)
	}
}
