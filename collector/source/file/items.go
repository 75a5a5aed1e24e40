package file

import (
	"cmp"
	"slices"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/parse"
)

const (
	// maxHeld bounds the items of a metric that are held, and heldStretches what the
	// older half of them is thinned to.
	maxHeld       = 20_000
	heldStretches = 1_000
)

// items holds what a text has as `name: value`, of metrics that were not seen as
// name=value. It is read at the end, and only if no name=value has come: a program that
// shows its training in a progress bar may print its result last, under the same name.
type items struct {
	parser *parse.Text
	held   map[string][]collector.Point // by metric, in order of Seq
}

func newItems(metrics []string) *items {
	return &items{parser: parse.NewTextItems(metrics), held: map[string][]collector.Point{}}
}

// hold takes the samples of the items' parser in a line at a place.
func (l *lines) hold(at int64) {
	for _, p := range l.samples {
		if !slices.Contains(l.missing, p.Metric) {
			continue
		}
		l.place(&p, l.source+collector.ItemSource, at)
		held := append(l.items.held[p.Metric], p)
		if len(held) > maxHeld {
			held = append(collector.Thin(held[:maxHeld/2], heldStretches), held[maxHeld/2:]...)
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
