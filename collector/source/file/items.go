package file

import (
	"cmp"
	"slices"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/parse"
)

// maxHeld bounds the items of all metrics together, except that each metric may have
// minHeld. Beyond that, the older half is thinned.
const (
	maxHeld = 20_000
	minHeld = 256
)

// items holds the points that were written as `name: value`, of metrics not seen as
// name=value so far. They are yielded at the end, unless name=value came: a program that
// shows a running value in a progress bar may print its result last, under the same name.
type items struct {
	parser *parse.Text
	source string
	each   int                          // bounds the points of a metric in held
	held   map[string][]collector.Point // by metric, in order of Seq
}

func newItems(source string, metrics []string) *items {
	return &items{parser: parse.NewTextItems(metrics), source: source + collector.ItemSource,
		each: max(minHeld, maxHeld/max(1, len(metrics))), held: map[string][]collector.Point{}}
}

// hold keeps the samples that the items' parser found in the line at a place.
func (l *lines) hold(at int64) {
	for _, p := range l.samples {
		if !slices.Contains(l.missing, p.Metric) {
			continue
		}
		l.place(&p, l.items.source, at)
		held := append(l.items.held[p.Metric], p)
		if half := l.items.each / 2; len(held) > l.items.each {
			held = append(collector.Thin(held[:half], half/8), held[half:]...)
		}
		l.items.held[p.Metric] = held
	}
}

// found returns the metrics of which there are items.
func (s *items) found() (metrics []string) {
	if s == nil {
		return nil
	}
	for name := range s.held {
		metrics = append(metrics, name)
	}
	slices.Sort(metrics)
	return metrics
}

// all returns the items in order of Seq.
func (s *items) all() (points []collector.Point) {
	for _, name := range s.found() {
		points = append(points, s.held[name]...)
	}
	slices.SortFunc(points, func(a, b collector.Point) int { return cmp.Compare(a.Seq, b.Seq) })
	return points
}
