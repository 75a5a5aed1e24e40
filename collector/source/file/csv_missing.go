package file

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/parse"
	"github.com/vernier-ml/vernier/collector/source"
)

// late says how many values came too late.
func (r *csvRun) late() bool {
	var said []string
	for _, m := range r.cfg.Metrics {
		if s := r.series[m]; s != nil && s.late > 0 {
			said = append(said, fmt.Sprintf("%d of %s", s.late, m))
			s.late = 0 // a metric may be asked for twice
		}
	}
	return len(said) == 0 || r.said.Tell(fmt.Errorf(
		"cells that were filled after a later row of their column had been read are not counted: %s: write a row when all of it is known", strings.Join(said, ", ")))
}

// missing says which metrics have no column, or a column without a value.
func (r *csvRun) missing() bool {
	columns := r.parser.Columns()
	if columns == nil {
		return r.wanted || r.said.Tell(errors.New("the table has no header"))
	}
	var missing, empty []string
	for _, m := range r.cfg.Metrics {
		switch {
		case r.series[m] != nil || slices.Contains(missing, m) || slices.Contains(empty, m):
		case slices.Contains(columns, m):
			empty = append(empty, m)
		default:
			missing = append(missing, m)
		}
	}
	if r.cfg.part && len(missing) < len(r.cfg.Metrics) {
		return true // another table may have it
	}
	var said []string
	if len(empty) > 0 {
		said = append(said, "the table has no value of "+strings.Join(empty, ", "))
	}
	if separator := parse.Separator(columns); separator != 0 && len(missing) > 0 {
		said = append(said, parse.NotCommas(separator))
	}
	if len(missing) > 0 {
		said = append(said, parse.NotFound(missing, columns))
	}
	if len(said) == 0 {
		return true
	}
	return r.yield(collector.Point{}, &source.MissingError{
		Metrics: append(missing, empty...), Text: "file:" + r.cfg.Path + ": " + strings.Join(said, "; ")})
}
