package imported

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector"
)

// The columns that vernier export writes besides metrics and parameters, and the index of
// pandas, which has no name.
var otherColumns = []string{"trial", "name", "state", "best", "start", "end", "seconds", ""}

// readCSV reads a table with a row for each trial: metrics that the options name,
// columns of vernier export, and parameters. A parameter's space is what was tried.
func readCSV(path string, o Options) (*Study, error) {
	s := &Study{Objectives: objectives(o), Metrics: o.Metrics}
	if len(s.Objectives) == 0 {
		return nil, errors.New("name the metrics among the columns, with --minimize or --maximize")
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	rows, err := cells(file)
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, errors.New("it is empty")
	}
	header, rows := rows[0], rows[1:]
	for _, name := range slices.Concat(o.Minimize, o.Maximize, o.Metrics) {
		if !slices.Contains(header, name) {
			return nil, fmt.Errorf("there is no column %q among %s", name, strings.Join(header, ", "))
		}
	}
	rowOf, identified := map[string]int{}, slices.Contains(header, "trial") || slices.Contains(header, "name")
	for i, row := range rows {
		without := strconv.Itoa(i)
		if identified {
			without = fmt.Sprintf("row %d", i+2)
		}
		id, err := s.addRow(header, row, without)
		if err != nil {
			return nil, fmt.Errorf("row %d: %w", i+2, err)
		}
		if first, twice := rowOf[id]; twice {
			return nil, fmt.Errorf("rows %d and %d are both trial %q, by the columns trial and name: give each one of its own, or rename a column that means something else", first, i+2, id)
		}
		rowOf[id] = i + 2
	}
	for _, name := range header {
		if slices.Contains(otherColumns, name) || s.isMetric(name) {
			continue
		}
		name = strings.TrimPrefix(name, "param.")
		var values []string
		for _, t := range s.Trials {
			if v, ok := t.Params[name]; ok {
				values = append(values, v)
			}
		}
		if len(values) > 0 {
			s.Parameters = append(s.Parameters, observed(name, values))
		}
	}
	s.conditions()
	return s, nil
}

// cells are the rows of a table, of which spreadsheets mark the encoding.
func cells(file io.Reader) ([][]string, error) {
	text := bufio.NewReader(file)
	if mark, err := text.Peek(len(byteOrderMark)); err == nil && string(mark) == byteOrderMark {
		_, _ = text.Discard(len(mark)) // they were read
	}
	r := csv.NewReader(text)
	r.TrimLeadingSpace = true
	return r.ReadAll()
}

const byteOrderMark = "\ufeff"

func (s *Study) isMetric(name string) bool {
	return slices.Contains(s.Metrics, name) ||
		slices.ContainsFunc(s.Objectives, func(o v1beta1.ObjectiveMetric) bool { return o.ObjectiveMetricName == name })
}

// addRow returns the trial's ID: that of the row, unless it has one of its own.
func (s *Study) addRow(header, row []string, id string) (string, error) {
	t := Trial{ID: id, Params: map[string]string{}, Values: map[string]float64{}, State: state("")}
	for i, name := range header {
		text := row[i]
		switch {
		case s.isMetric(name) && text != "" && text != collector.Unavailable:
			v, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return "", fmt.Errorf("%s is %q: write a number", name, text)
			}
			t.Values[name] = v
		case s.isMetric(name):
		case (name == "trial" || name == "name") && text != "":
			t.ID = text
		case name == "state":
			t.State = state(text)
		case name == "start":
			t.Started = when(text)
		case name == "end":
			t.Ended = when(text)
		case slices.Contains(otherColumns, name):
		case text != "":
			t.Params[strings.TrimPrefix(name, "param.")] = plain(text)
		}
	}
	s.add(t)
	return t.ID, nil
}

// plain is a text without the quote that vernier export puts before what a spreadsheet
// would take for a formula.
func plain(text string) string {
	if rest, quoted := strings.CutPrefix(text, "'"); quoted && strings.IndexAny(rest, "=+-@\t\r") == 0 {
		return rest
	}
	return text
}

// add takes a trial that has ended. One that has succeeded without a value has failed.
func (s *Study) add(t Trial) {
	if t.State == "" {
		s.unended = append(s.unended, t.ID)
		return
	}
	for _, o := range s.Objectives {
		if _, ok := t.Values[o.ObjectiveMetricName]; !ok && t.State == state("") {
			t.State = state("FAILED")
		}
	}
	s.Trials = append(s.Trials, t)
}
