package imported

import (
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// The columns that vernier export writes besides metrics and parameters.
var exportColumns = []string{"trial", "name", "state", "best", "start", "end", "seconds"}

// readCSV reads a table with a row for each trial: metrics that the options name,
// columns of vernier export, and parameters. A parameter's space is what was tried.
func readCSV(path string, o Options) (*Study, error) {
	s := &Study{Objectives: objectives(o)}
	if len(s.Objectives) == 0 {
		return nil, errors.New("name the metrics among the columns, with --minimize or --maximize")
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, errors.New("it is empty")
	}
	header, rows := rows[0], rows[1:]
	for _, objective := range s.Objectives {
		if !slices.Contains(header, objective.ObjectiveMetricName) {
			return nil, fmt.Errorf("there is no column %q among %s", objective.ObjectiveMetricName, strings.Join(header, ", "))
		}
	}
	for i, row := range rows {
		if err := s.addRow(header, row, strconv.Itoa(i)); err != nil {
			return nil, fmt.Errorf("row %d: %w", i+2, err)
		}
	}
	for _, name := range header {
		if slices.Contains(exportColumns, name) || s.isMetric(name) {
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

func (s *Study) isMetric(name string) bool {
	for _, o := range s.Objectives {
		if o.ObjectiveMetricName == name {
			return true
		}
	}
	return false
}

func (s *Study) addRow(header, row []string, id string) error {
	t := Trial{ID: id, Params: map[string]string{}, Values: map[string]float64{}, State: state("")}
	for i, name := range header {
		text := row[i]
		switch {
		case s.isMetric(name) && text != "":
			v, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return fmt.Errorf("%s is %q: write a number", name, text)
			}
			t.Values[name] = v
		case s.isMetric(name):
		case name == "trial" || name == "name" && text != "":
			t.ID = text
		case name == "state":
			t.State = state(text)
		case name == "start":
			t.Started = when(text)
		case name == "end":
			t.Ended = when(text)
		case slices.Contains(exportColumns, name):
		case text != "":
			t.Params[strings.TrimPrefix(name, "param.")] = text
		}
	}
	s.add(t)
	return nil
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
