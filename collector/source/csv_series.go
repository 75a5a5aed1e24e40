package source

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/parse"
)

// csvSeries is the points of one column.
type csvSeries struct {
	source string
	next   int64 // Seq after the last that was yielded
	// Of the table that has it: the values that were yielded, those before next
	// since the file was begun anew, and how many of these were not yielded.
	read, again, late int
}

// take reports whether the value at a place is to be yielded, and counts it.
func (s *csvSeries) take(seq int64) bool {
	same := seq>>generationShift == s.next>>generationShift
	if seq < s.next {
		if same {
			s.again++
			s.late = max(s.late, s.again-s.read)
		}
		return false
	}
	if !same {
		s.read, s.again = 0, 0
	}
	s.read, s.again, s.next = s.read+1, s.again+1, seq+1
	return true
}

// late says how many values came too late.
func (r *csvRun) late() bool {
	var said []string
	for _, m := range r.cfg.Metrics {
		if s := r.series[m]; s != nil && s.late > 0 {
			said = append(said, fmt.Sprintf("%d of %s", s.late, m))
			s.late = 0 // a metric may be asked for twice
		}
	}
	return len(said) == 0 || r.trouble(fmt.Errorf(
		"cells that were filled after a later row of their column had been read are not counted: %s: write a row when all of it is known", strings.Join(said, ", ")))
}

// missing says which metrics have no column, or a column without a value.
func (r *csvRun) missing() bool {
	columns := r.parser.Columns()
	if columns == nil {
		return r.wanted || r.trouble(errors.New("the table has no header"))
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
		said = append(said, noColumn(missing, columns))
	}
	if len(said) == 0 {
		return true
	}
	return r.yield(collector.Point{}, &MissingError{Metrics: append(missing, empty...), Text: "file:" + r.cfg.Path + ": " + strings.Join(said, "; ")})
}

func noColumn(missing, columns []string) string {
	const most = 20
	list := strings.Join(columns[:min(len(columns), most)], ", ")
	if len(columns) > most {
		list += fmt.Sprintf(" and %d more", len(columns)-most)
	}
	text := fmt.Sprintf("the table has no column named %s; ", strings.Join(missing, " or "))
	var meant []string
	for _, m := range missing {
		if near := parse.Nearest(m, columns, 1); len(near) > 0 && !slices.Contains(meant, near[0]) {
			meant = append(meant, near[0])
		}
	}
	if len(meant) > 0 {
		text += "did you mean " + strings.Join(meant, ", ") + "? "
	}
	return text + fmt.Sprintf("it has %.1000s", list)
}
