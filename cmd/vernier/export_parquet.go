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

// maxRows bounds what is in memory until it is written.
const maxRows = 1 << 20

// trialColumns are those of the CSV, with types that are the same for each export of an
// experiment: a parameter is a whole number, a number or a text, as the search space has
// it, and a metric a number. Only where a value does not fit that is the column a text.
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
	add := func(name, prefix string, values func(exported) map[string]any, kind v1beta1.ParameterType) {
		title := name
		if slices.ContainsFunc(columns, func(c column) bool { return c.name == name }) {
			title = prefix + name
		}
		columns = append(columns, columnOf(title, rows, func(e exported) (string, bool) {
			value, ok := values(e)[name]
			return fmt.Sprint(value), ok
		}, kind))
	}
	metrics, params := exportColumns(v)
	for _, name := range metrics {
		add(name, "metric.", func(e exported) map[string]any { return e.Values }, v1beta1.ParameterTypeDouble)
	}
	for _, name := range params {
		kind := v1beta1.ParameterTypeCategorical // of one that the search space does not have
		if at := slices.IndexFunc(v.Experiment.Spec.Parameters, func(p v1beta1.ParameterSpec) bool { return p.Name == name }); at >= 0 {
			kind = v.Experiment.Spec.Parameters[at].ParameterType
		}
		add(name, "param.", func(e exported) map[string]any { return e.Params }, kind)
	}
	return columns
}

// columnOf is a column with the type of a kind of parameter, or of texts where a value
// has another type.
func columnOf(name string, rows []exported, text func(exported) (string, bool), kind v1beta1.ParameterType) column {
	node, parse, number := parquet.String(), func(text string) (any, error) { return text, nil }, true
	switch kind {
	case v1beta1.ParameterTypeInt:
		node, parse = parquet.Int(64), func(text string) (any, error) { return strconv.ParseInt(text, 10, 64) }
	case v1beta1.ParameterTypeDouble, v1beta1.ParameterTypeDiscrete:
		node, parse = parquet.Leaf(parquet.DoubleType), func(text string) (any, error) { return strconv.ParseFloat(text, 64) }
	default:
		number = false
	}
	if number && slices.ContainsFunc(rows, func(e exported) bool {
		value, ok := text(e)
		_, err := parse(value)
		return ok && value != "" && err != nil
	}) {
		return columnOf(name, rows, text, v1beta1.ParameterTypeCategorical)
	}
	return column{name, node, func(e exported) any {
		value, ok := text(e)
		if !ok || number && value == "" {
			return nil
		}
		x, _ := parse(value) // looked at above
		return x
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
	w := parquet.NewWriter(out, schema, parquet.Compression(&parquet.Snappy), parquet.MaxRowsPerRowGroup(maxRows))
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

// exportPoints writes each point of the curves of all trials, a row for each, in groups
// of at most so many rows, of which one is in memory.
func exportPoints(ctx context.Context, out io.Writer, s collector.Store, v experimentView, group int64) error {
	w := parquet.NewGenericWriter[pointRecord](out, parquet.Compression(&parquet.Snappy), parquet.MaxRowsPerRowGroup(group))
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
