package trial

import (
	"context"
	"math"
	"slices"
	"strconv"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector"
)

// mostUsage bounds the metrics of a trial's use: 16 GPUs, CPU and memory.
const mostUsage = 34

// spent sums up one metric of a trial's use. A value holds for the time since the one
// before; the first for as long as the second, as samples are that far apart.
type spent struct {
	first, last             collector.Point
	least, greatest, latest float64
	sum                     float64 // of values by seconds
	seconds                 float64
}

func (s *spent) add(p collector.Point) {
	if s.first.Metric == "" {
		*s = spent{first: p, last: p, least: p.Value, greatest: p.Value, latest: p.Value}
		return
	}
	d := max(0, p.Time.Sub(s.last.Time).Seconds())
	if s.seconds == 0 {
		s.sum, s.seconds = s.first.Value*d, d
	}
	s.sum, s.seconds = s.sum+p.Value*d, s.seconds+d
	s.least, s.greatest, s.last, s.latest = min(s.least, p.Value), max(s.greatest, p.Value), p, p.Value
}

func (s *spent) mean() float64 {
	if s.seconds == 0 {
		return s.latest
	}
	return s.sum / s.seconds
}

// usageOf condenses what a trial used of its machine: Value is the mean over time.
func usageOf(ctx context.Context, store collector.Store, uid string) (out []v1beta1.Metric, err error) {
	names, err := store.Metrics(ctx, uid)
	if err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !collector.IsSystemMetric(name) })
	names = names[:min(len(names), mostUsage)]
	if len(names) == 0 {
		return nil, nil
	}
	all := map[string]*spent{}
	err = store.Scan(ctx, uid, names, func(a collector.Attempt, p collector.Point) error {
		if !a.System() || math.IsNaN(p.Value) || math.IsInf(p.Value, 0) {
			return nil
		}
		if all[p.Metric] == nil {
			all[p.Metric] = &spent{}
		}
		all[p.Metric].add(p)
		return nil
	})
	for _, name := range names {
		if s := all[name]; s != nil {
			out = append(out, v1beta1.Metric{Name: name, Min: short(s.least), Max: short(s.greatest), Latest: short(s.latest), Value: short(s.mean())})
		}
	}
	return out, err
}

// short is a number as people read it: a sample has no more digits that mean anything.
func short(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }
