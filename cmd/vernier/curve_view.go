package main

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/probe"
)

// timeCSV is how CSV has times.
const timeCSV = time.RFC3339Nano

type curve struct {
	Metric string `json:"metric"`
	// Attempt is the number of the program's start, from 1; 1 for what the machine was
	// used for.
	Attempt int        `json:"attempt"`
	Points  []curveRow `json:"points"`
	id      string     // of the attempt
}

// curveRow is a point, or several that were condensed.
type curveRow struct {
	// Step is that of the last point, nil when it has none.
	Step *int64 `json:"step"`
	// Time is that of the last point, nil when it has none.
	Time *time.Time `json:"time"`
	// Value is the last one, Min and Max are the least and the greatest.
	Value probe.Number `json:"value"`
	Min   probe.Number `json:"min"`
	Max   probe.Number `json:"max"`
	// Points is how many the row stands for.
	Points int64 `json:"points"`
}

func sampledCurves(sampled []collector.SampledSeries) []curve {
	curves := make([]curve, len(sampled))
	for i, s := range sampled {
		curves[i] = curve{Metric: s.Metric, id: s.Attempt.ID}
		for _, b := range s.Buckets {
			step := b.Last
			if s.Stepless {
				step = collector.NoStep
			}
			row := curveRow{Value: probe.Number(b.Value), Min: probe.Number(b.Min), Max: probe.Number(b.Max), Points: b.Points}
			curves[i].Points = append(curves[i].Points, row.at(step, b.Time))
		}
	}
	return curves
}

func wholeCurves(series []collector.Series) []curve {
	curves := make([]curve, len(series))
	for i, s := range series {
		curves[i] = curve{Metric: s.Metric, id: s.Attempt.ID}
		for _, p := range s.Points {
			curves[i].Points = append(curves[i].Points, pointRow(p))
		}
	}
	return curves
}

func pointRow(p collector.Point) curveRow {
	v := probe.Number(p.Value)
	return curveRow{Value: v, Min: v, Max: v, Points: 1}.at(p.Step, p.Time)
}

func (r curveRow) at(step int64, at time.Time) curveRow {
	if step != collector.NoStep {
		r.Step = &step
	}
	if !at.IsZero() {
		at = at.UTC()
		r.Time = &at
	}
	return r
}

// writeCurves writes curves as a table, JSON or CSV.
func writeCurves(output string, curves []curve, to streams) error {
	switch output {
	case "json":
		return writeValue(to.out, output, curves)
	case "csv":
		return writeCurvesCSV(to.out, curves)
	}
	if err := curveTable(curves).write(to.out, false); err != nil {
		return err
	}
	rows, points := 0, int64(0)
	for _, c := range curves {
		rows += len(c.Points)
		for _, r := range c.Points {
			points += r.Points
		}
	}
	if points > int64(rows) {
		fmt.Fprintf(to.err, "%d rows stand for %d points: --points 0 shows all\n", rows, points)
	}
	return nil
}

func curveTable(curves []curve) *table {
	metrics, attempts, condensed := false, false, false
	for _, c := range curves {
		metrics = metrics || c.Metric != curves[0].Metric
		attempts = attempts || c.Attempt > 1
		condensed = condensed || slices.ContainsFunc(c.Points, func(r curveRow) bool { return r.Points > 1 })
	}
	shown := func(cells []string) []string {
		var out []string
		for i, show := range []bool{metrics, attempts, true, true, true, condensed, condensed, condensed} {
			if show {
				out = append(out, cells[i])
			}
		}
		return out
	}
	t := &table{header: shown([]string{"METRIC", "ATTEMPT", "STEP", "TIME (UTC)", "VALUE", "MIN", "MAX", "POINTS"})}
	for _, c := range curves {
		for _, r := range c.Points {
			t.add(shown(r.cells(c, time.DateTime))...)
		}
	}
	return t
}

func writeCurvesCSV(out io.Writer, curves []curve) error {
	w := csv.NewWriter(out)
	_ = w.Write(curveColumns) // Error has it
	for _, c := range curves {
		for _, r := range c.Points {
			_ = w.Write(r.cells(c, timeCSV))
		}
	}
	w.Flush()
	return w.Error()
}

// cells are the columns of CSV.
func (r curveRow) cells(c curve, layout string) []string {
	step, at := "", ""
	if r.Step != nil {
		step = strconv.FormatInt(*r.Step, 10)
	}
	if r.Time != nil {
		at = r.Time.Format(layout)
	}
	return []string{c.Metric, strconv.Itoa(c.Attempt), step, at, r.Value.String(), r.Min.String(), r.Max.String(), strconv.FormatInt(r.Points, 10)}
}
