package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector"
)

// column is a column of the trials as Parquet. A value is nil, a bool, an int64, a
// float64, a string or, for a time, milliseconds as an int64.
type column struct {
	name string
	node parquet.Node
	of   func(e exported) any
}

// trialColumns are those of the CSV, with types: a parameter is a whole number, a number
// or a text, as the search space has it, and a metric a number unless a value of it is a
// text.
func trialColumns(v experimentView, rows []exported) []column {
	columns := []column{
		{"trial", parquet.Int(64), func(e exported) any { return int64(e.Trial) }},
		{"name", parquet.String(), func(e exported) any { return e.Name }},
		{"state", parquet.String(), func(e exported) any { return e.State }},
		{"best", parquet.Leaf(parquet.BooleanType), func(e exported) any { return e.Best }},
		{"start", parquet.Timestamp(parquet.Millisecond), func(e exported) any { return milliseconds(e.Start) }},
		{"end", parquet.Timestamp(parquet.Millisecond), func(e exported) any { return milliseconds(e.End) }},
		{"seconds", parquet.Leaf(parquet.DoubleType), func(e exported) any {
			if e.Start == "" {
				return nil
			}
			return e.Took
		}},
		{"message", parquet.String(), func(e exported) any { return e.Why }},
	}
	add := func(name, prefix string, values func(exported) map[string]any, asText bool) {
		title := name
		if slices.ContainsFunc(columns, func(c column) bool { return c.name == name }) {
			title = prefix + name
		}
		columns = append(columns, columnOf(title, rows, func(e exported) (string, bool) {
			value, ok := values(e)[name]
			return fmt.Sprint(value), ok
		}, asText))
	}
	metrics, params := exportColumns(v)
	for _, name := range metrics {
		add(name, "metric.", func(e exported) map[string]any { return e.Values }, false)
	}
	for _, name := range params {
		text := slices.ContainsFunc(v.Experiment.Spec.Parameters, func(p v1beta1.ParameterSpec) bool {
			return p.Name == name && p.ParameterType == v1beta1.ParameterTypeCategorical
		})
		add(name, "param.", func(e exported) map[string]any { return e.Params }, text)
	}
	return columns
}

// columnOf is a column with the narrowest type that holds all of its values.
func columnOf(name string, rows []exported, text func(exported) (string, bool), asText bool) column {
	whole, number := !asText, !asText
	some := false
	for _, r := range rows {
		value, ok := text(r)
		if !ok || value == "" {
			continue
		}
		some = true
		_, err := strconv.ParseInt(value, 10, 64)
		whole = whole && err == nil
		_, err = strconv.ParseFloat(value, 64)
		number = number && err == nil
	}
	switch {
	case whole && some:
		return column{name, parquet.Int(64), func(e exported) any {
			value, _ := text(e)
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				return nil
			}
			return n
		}}
	case number:
		return column{name, parquet.Leaf(parquet.DoubleType), func(e exported) any {
			value, _ := text(e)
			x, err := strconv.ParseFloat(value, 64)
			if err != nil {
				return nil
			}
			return x
		}}
	}
	return column{name, parquet.String(), func(e exported) any {
		if value, ok := text(e); ok {
			return value
		}
		return nil
	}}
}

func milliseconds(text string) any {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return nil
	}
	return at.UnixMilli()
}

// exportParquet writes the trials, a row for each.
func exportParquet(out io.Writer, v experimentView, now time.Time) error {
	rows := make([]exported, len(v.Trials))
	for i, t := range v.Trials {
		rows[i] = exportTrial(v, t, now)
	}
	columns, group := trialColumns(v, rows), parquet.Group{}
	for _, c := range columns {
		group[c.name] = parquet.Optional(c.node)
	}
	schema := parquet.NewSchema("trial", group)
	w := parquet.NewWriter(out, schema, parquet.Compression(&parquet.Snappy))
	for _, r := range rows {
		row := make(parquet.Row, len(columns))
		for _, c := range columns {
			leaf, ok := schema.Lookup(c.name)
			if !ok {
				return fmt.Errorf("write Parquet: there is no column %q", c.name)
			}
			value := parquet.NullValue()
			defined := 0
			if x := c.of(r); x != nil {
				value, defined = parquet.ValueOf(x), 1
			}
			row[leaf.ColumnIndex] = value.Level(0, defined, leaf.ColumnIndex)
		}
		if _, err := w.WriteRows([]parquet.Row{row}); err != nil {
			return fmt.Errorf("write Parquet: %w", err)
		}
	}
	if err := w.Close(); err != nil {
		return fmt.Errorf("write Parquet: %w", err)
	}
	return nil
}

// pointRecord is a point of a curve as Parquet.
type pointRecord struct {
	Trial   int64      `parquet:"trial"`
	Metric  string     `parquet:"metric,dict"`
	Attempt int64      `parquet:"attempt"`
	Step    *int64     `parquet:"step,optional"`
	Time    *time.Time `parquet:"time,optional,timestamp(microsecond)"`
	Value   float64    `parquet:"value"`
}

// exportPoints writes each point of the curves of all trials, a row for each.
func exportPoints(ctx context.Context, out io.Writer, s collector.Store, v experimentView) error {
	w := parquet.NewGenericWriter[pointRecord](out, parquet.Compression(&parquet.Snappy))
	for _, t := range v.Trials {
		if t.Object == nil {
			continue
		}
		id := collector.TrialID{Name: t.Name, UID: string(t.Object.UID)}
		numbers, err := attemptNumbers(ctx, s, id)
		if err != nil {
			return err
		}
		err = s.Scan(ctx, id.UID, nil, func(a collector.Attempt, p collector.Point) error {
			if numbers[a.ID] == 0 {
				return nil // it has begun since
			}
			r := pointRecord{Trial: int64(t.Number), Metric: p.Metric, Attempt: int64(numbers[a.ID]), Value: p.Value}
			if p.Step != collector.NoStep {
				r.Step = &p.Step
			}
			if !p.Time.IsZero() {
				r.Time = &p.Time
			}
			_, err := w.Write([]pointRecord{r})
			return err
		})
		if err != nil {
			return fmt.Errorf("read the points of trial %s: %w", t.Name, err)
		}
	}
	if err := w.Close(); err != nil {
		return fmt.Errorf("write Parquet: %w", err)
	}
	return nil
}
