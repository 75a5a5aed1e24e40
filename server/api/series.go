package api

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	vernierv1 "github.com/vernier-ml/vernier/api/proto/vernier/v1"
	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector"
)

const (
	usualPoints, mostPoints = 200, 10_000
	mostTrials, mostMetrics = 1_000, 20
	// maxAnswer bounds the points of one answer, and seriesPatience the time that
	// they are read for; trials that are not read until then are left out.
	maxAnswer      = 500_000
	seriesPatience = 15 * time.Second
	// maxKeptPoints bounds the points of curves that are remembered.
	maxKeptPoints = 2_000_000
)

// asked is a request for curves that was checked.
type asked struct {
	metrics  []string
	points   int
	byTime   bool
	from, to float64
}

// GetSeries implements vernierv1.DashboardServiceHandler.
func (s *service) GetSeries(ctx context.Context, r *vernierv1.GetSeriesRequest) (*vernierv1.GetSeriesResponse, error) {
	p, err := parsePlace("parent", r.GetParent(), experimentForm)
	if err != nil {
		return nil, err
	}
	exp, trials, err := s.trials(ctx, p)
	if err != nil {
		return nil, err
	}
	ask, err := readSeries(r, exp)
	if err != nil {
		return nil, err
	}
	return s.series(ctx, ask, chosen(trials, r.GetTrials()))
}

// readSeries checks a request for curves of exp.
func readSeries(r *vernierv1.GetSeriesRequest, exp *v1beta1.Experiment) (asked, error) {
	a := asked{metrics: r.GetMetrics(), points: int(r.GetMaxPoints()), byTime: r.GetAxis() == vernierv1.GetSeriesRequest_TIME, from: math.Inf(-1), to: math.Inf(1)}
	if a.points == 0 {
		a.points = usualPoints
	}
	if len(a.metrics) == 0 {
		for _, o := range exp.Spec.AllObjectives() {
			a.metrics = append(a.metrics, o.ObjectiveMetricName)
		}
	}
	if r.From != nil {
		a.from = r.GetFrom()
	}
	if r.To != nil {
		a.to = r.GetTo()
	}
	switch {
	case len(r.GetTrials()) > mostTrials:
		return a, invalid(fmt.Sprintf("ask for at most %d at once", mostTrials), "%d trials are asked for", len(r.GetTrials()))
	case len(a.metrics) > mostMetrics:
		return a, invalid(fmt.Sprintf("ask for at most %d at once", mostMetrics), "%d metrics are asked for", len(a.metrics))
	case a.points < collector.MinBuckets || a.points > mostPoints:
		return a, invalid(fmt.Sprintf("give %d to %d", collector.MinBuckets, mostPoints), "max_points is %d", r.GetMaxPoints())
	case !(a.from <= a.to): // also of NaN
		return a, invalid("give a from that is not above to", "the window is %v to %v", a.from, a.to)
	}
	return a, nil
}

// chosen are the trials with the numbers. Trials are in order of number.
func chosen(trials []*v1beta1.Trial, numbers []int32) (out []*v1beta1.Trial) {
	wanted := map[int]bool{}
	for _, n := range numbers {
		wanted[int(n)] = true
	}
	for _, t := range trials {
		if n, ok := t.Number(); ok && wanted[n] {
			out = append(out, t)
		}
	}
	return out
}

// series reads the curves of trials, some at once.
func (s *service) series(ctx context.Context, a asked, trials []*v1beta1.Trial) (*vernierv1.GetSeriesResponse, error) {
	reading, enough := context.WithTimeout(ctx, s.seriesPatience)
	defer enough()
	group, reading := errgroup.WithContext(reading)
	group.SetLimit(max(2, runtime.GOMAXPROCS(0)))
	curves, read := make([][]*vernierv1.Series, len(trials)), make([]bool, len(trials))
	var mu sync.Mutex
	sum := 0
	for i, t := range trials {
		group.Go(func() error {
			mu.Lock()
			full := sum >= maxAnswer
			mu.Unlock()
			if full || reading.Err() != nil {
				return nil
			}
			got, err := s.curves(reading, a, t)
			if err != nil {
				if reading.Err() != nil && ctx.Err() == nil {
					return nil // too slow: the trial is left out
				}
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			curves[i], read[i] = got, true
			for _, c := range got {
				sum += len(c.GetX())
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, explain(ctx, err)
	}
	if ctx.Err() != nil {
		return nil, explain(ctx, ctx.Err())
	}
	out := &vernierv1.GetSeriesResponse{}
	for i, t := range trials {
		out.Series = append(out.Series, curves[i]...)
		if n, _ := t.Number(); !read[i] {
			out.LeftOut = append(out.LeftOut, int32(n))
		}
	}
	return out, nil
}

// curves are those of one trial. Those of a trial that has ended are remembered.
func (s *service) curves(ctx context.Context, a asked, t *v1beta1.Trial) ([]*vernierv1.Series, error) {
	key := curvesKey(sha256.Sum256(fmt.Appendf(nil, "%q %q %q %d %t %v %v", t.UID, t.ResourceVersion, a.metrics, a.points, a.byTime, a.from, a.to)))
	if have, ok := s.kept.get(key); ok {
		return have, nil
	}
	n, _ := t.Number()
	began := t.CreationTimestamp.Time
	if t.Status.StartTime != nil {
		began = t.Status.StartTime.Time
	}
	lines := map[string]*line{}
	for _, m := range a.metrics {
		lines[m] = newLine(a, began)
	}
	err := s.Store.Scan(ctx, string(t.UID), a.metrics, func(attempt collector.Attempt, p collector.Point) error {
		lines[p.Metric].add(attempt, p)
		return nil
	})
	if err != nil {
		return nil, err
	}
	var out []*vernierv1.Series
	for _, m := range a.metrics {
		if c := lines[m].series(int32(n), m); len(c.GetX()) > 0 {
			out = append(out, c)
		}
	}
	if t.IsCompleted() {
		s.kept.put(key, out)
	}
	return out, nil
}

// line condenses a curve along one axis.
type line struct {
	asked
	began time.Time
	steps *collector.Curve
	times *collector.Thinner // by time, in ms since began
	read  int64
}

func newLine(a asked, began time.Time) *line {
	l := &line{asked: a, began: began, steps: collector.NewCurve(a.points), times: collector.NewThinner(a.points)}
	l.steps.Within(whole(math.Ceil(a.from)), whole(math.Floor(a.to)))
	return l
}

// whole is the integer nearest to x.
func whole(x float64) int64 {
	switch {
	case x <= math.MinInt64:
		return math.MinInt64
	case x >= math.MaxInt64:
		return math.MaxInt64
	}
	return int64(x)
}

func (l *line) add(attempt collector.Attempt, p collector.Point) {
	l.read++
	if !l.byTime {
		l.steps.Add(attempt, p)
		return
	}
	at := p.Time.Sub(l.began)
	if x := at.Seconds(); l.from <= x && x <= l.to {
		l.times.Add(at.Milliseconds(), p)
	}
}

func (l *line) series(trial int32, metric string) *vernierv1.Series {
	out := &vernierv1.Series{Trial: trial, Metric: metric, Points: l.read}
	single := true
	add := func(x, value, least, greatest float64, points int64) {
		out.X, out.Value = append(out.X, x), append(out.Value, value)
		out.Min, out.Max = append(out.Min, least), append(out.Max, greatest)
		single = single && points == 1
	}
	if l.byTime {
		for _, s := range l.times.Stretches() {
			add(float64(s.To)/1000, s.Last.Value, s.Least.Value, s.Greatest.Value, s.Points)
		}
	} else {
		for _, b := range l.steps.Buckets() {
			add(float64(b.Last), b.Value, b.Min, b.Max, b.Points)
		}
	}
	if single {
		out.Min, out.Max = nil, nil
	}
	return out
}

// keptCurves remembers curves that do not change any more. Those read last stay.
type keptCurves struct {
	mu     sync.Mutex
	curves map[curvesKey][]*vernierv1.Series
	order  []curvesKey
	points int
}

// curvesKey is the hash of what was asked: callers choose how long that is.
type curvesKey [sha256.Size]byte

func (k *keptCurves) get(key curvesKey) ([]*vernierv1.Series, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	have, ok := k.curves[key]
	return have, ok
}

// put remembers curves, unless there are none: those have no size.
func (k *keptCurves) put(key curvesKey, curves []*vernierv1.Series) {
	if len(curves) == 0 {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.curves == nil {
		k.curves = map[curvesKey][]*vernierv1.Series{}
	}
	if _, there := k.curves[key]; there {
		return
	}
	k.curves[key] = curves
	k.order = append(k.order, key)
	for k.points += sizeOf(curves); k.points > maxKeptPoints; k.order = slices.Delete(k.order, 0, 1) {
		k.points -= sizeOf(k.curves[k.order[0]])
		delete(k.curves, k.order[0])
	}
}

func sizeOf(curves []*vernierv1.Series) (points int) {
	for _, c := range curves {
		points += 8 + len(c.GetX())
	}
	return points
}
