package main

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	vernierv1 "github.com/vernier-ml/vernier/api/proto/vernier/v1"
	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector"
)

func newExportCommand(open opener, own ownStore) *cobra.Command {
	var output, store string
	var curves bool
	cmd := &cobra.Command{
		Use:   "export EXPERIMENT",
		Short: "Print an experiment: its trials as CSV, JSON or Parquet, or all of it as one HTML file",
		Long: `Print the trials of an experiment, a row for each: its number, name, state, start, end
and seconds, then its metrics and its parameters. A number is as it was reported or
proposed; what there is no value of is empty, or absent in JSON. In Parquet each column
has a type, which the search space says; with --curves it has the points of all curves
instead, a row for each.

With -o html it is the dashboard's view of the experiment, in one file that needs no
server: to send it, or to keep it. It has all trials, and the curves of the 100 best,
reduced to 120 points. What may hold secrets is not in it: the trial template, the
container of a custom collector, the request of a scrape, annotations of other tools.
The API makes it: that of the embedded instance or, with kubectl's plugin, the one at
VERNIER_SERVER.`,
		Example: `  vernier export charlm > charlm.csv
  vernier export charlm -o jsonl | jq .params.lr
  vernier export charlm -o parquet > trials.parquet
  vernier export charlm -o parquet --curves > curves.parquet
  vernier export charlm -o html > charlm.html`,
		Args: oneExperiment,
		RunE: func(cmd *cobra.Command, args []string) error {
			if curves && output != "parquet" {
				return usageErrorf("--curves is for -o parquet; vernier curve prints a curve as CSV")
			}
			if output == "parquet" && onTerminal(cmd.OutOrStdout()) != nil {
				return usageErrorf("Parquet is no text for a terminal: write it to a file, as in vernier export %s -o parquet > trials.parquet", args[0])
			}
			session, err := open(cmd.Context(), false)
			if err != nil {
				return err
			}
			if output == "html" {
				return exportPage(cmd.Context(), cmd.OutOrStdout(), session, args[0])
			}
			view, err := loadExperiment(cmd.Context(), session.client, session.key(args[0]))
			if err != nil {
				return err
			}
			if curves {
				return own.with(cmd.Context(), store, func(s collector.Store) error { return exportPoints(cmd.Context(), cmd.OutOrStdout(), s, view, maxRows) })
			}
			return export(cmd.Context(), cmd.OutOrStdout(), output, view, time.Now())
		},
	}
	outputFlag(cmd, &output, "csv, json, jsonl: an object in each line, parquet, or html: a page", "csv", "json", "jsonl", "parquet", "html")
	cmd.Flags().BoolVar(&curves, "curves", false, "the points of all curves, for parquet")
	cmd.Flags().StringVar(&store, "store", "", "store of the points of --curves (default: that of the embedded instance)")
	return cmd
}

// exportPage writes the shared page of an experiment.
func exportPage(ctx context.Context, out io.Writer, s *session, name string) error {
	if onTerminal(out) != nil {
		return usageErrorf("a page is no text for a terminal: write it to a file, as in vernier export %s -o html > %s.html", name, name)
	}
	api, err := s.api()
	if err != nil {
		return err
	}
	made, err := api.Dashboard.ShareExperiment(ctx, &vernierv1.ShareExperimentRequest{Parent: "namespaces/" + s.namespace + "/experiments/" + name})
	if err != nil {
		return fmt.Errorf("make the page of experiment %s: %w", name, err)
	}
	_, err = out.Write(made.GetPage())
	return err
}

// exported is a trial as programs read it.
type exported struct {
	Trial  int            `json:"trial"`
	Name   string         `json:"name"`
	State  string         `json:"state"`
	Best   bool           `json:"best"`
	Start  string         `json:"start,omitempty"`
	End    string         `json:"end,omitempty"`
	Why    string         `json:"message,omitempty"`
	Took   float64        `json:"-"`
	Values map[string]any `json:"metrics"`
	Params map[string]any `json:"params"`
}

// MarshalJSON leaves the seconds out of a trial that has not started.
func (e exported) MarshalJSON() ([]byte, error) {
	type plain exported
	out := struct {
		plain
		Took *float64 `json:"seconds,omitempty"`
	}{plain: plain(e)}
	if e.Start != "" {
		out.Took = &e.Took
	}
	return json.Marshal(out)
}

func exportTrial(v experimentView, t trialView, now time.Time) exported {
	e := exported{
		Trial: t.Number, Name: t.Name, State: t.State, Best: slices.Contains(v.marked(), t.Name), Why: t.Message,
		Values: map[string]any{}, Params: paramValues(v.Experiment, t.Params), Took: t.duration(now).Seconds(),
	}
	if !t.Started.IsZero() {
		e.Start = t.Started.UTC().Format(time.RFC3339)
	}
	if !t.Ended.IsZero() {
		e.End = t.Ended.UTC().Format(time.RFC3339)
	}
	for _, m := range t.Metrics {
		if m.Value != collector.Unavailable {
			e.Values[m.Name] = numberOrText(m.Value)
		}
	}
	return e
}

// paramValues are numbers as far as they are some, and texts: 016 is no number in a list
// of categories.
func paramValues(e *v1beta1.Experiment, params []v1beta1.ParameterAssignment) map[string]any {
	values := map[string]any{}
	for _, p := range params {
		values[p.Name] = numberOrText(p.Value)
	}
	for _, p := range e.Spec.Parameters {
		if text := paramValue(params, p.Name); text != "" && p.ParameterType == v1beta1.ParameterTypeCategorical {
			values[p.Name] = text
		}
	}
	return values
}

// numberOrText is a finite number as JSON has it, with the digits that it was written
// with, or else the text.
func numberOrText(text string) any {
	if _, ok := finite(text); ok && json.Valid([]byte(text)) {
		return json.Number(text)
	} else if v, ok := finite(text); ok {
		return v
	}
	return text
}

func export(ctx context.Context, out io.Writer, output string, v experimentView, now time.Time) error {
	switch output {
	case "csv":
		return exportCSV(out, v, now)
	case "parquet":
		return exportParquet(out, v, now)
	}
	rows := make([]exported, len(v.Trials))
	for i, t := range v.Trials {
		rows[i] = exportTrial(v, t, now)
	}
	if output == "json" {
		return writeValue(out, output, rows)
	}
	encoder := json.NewEncoder(out)
	for _, r := range rows {
		if err := encoder.Encode(r); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// exportColumns are the metrics and parameters of all trials: those of the spec first.
func exportColumns(v experimentView) (metrics, params []string) {
	metrics = slices.Clone(v.shownMetrics())
	for _, p := range v.Experiment.Spec.Parameters {
		params = append(params, p.Name)
	}
	for _, t := range v.Trials {
		for _, m := range t.Metrics {
			if !slices.Contains(metrics, m.Name) {
				metrics = append(metrics, m.Name)
			}
		}
		for _, p := range t.Params {
			if !slices.Contains(params, p.Name) {
				params = append(params, p.Name)
			}
		}
	}
	return metrics, params
}

func exportCSV(out io.Writer, v experimentView, now time.Time) error {
	w := csv.NewWriter(out)
	metrics, params := exportColumns(v)
	header := []string{"trial", "name", "state", "best", "start", "end", "seconds"}
	header = append(header, metrics...)
	for _, p := range params {
		if slices.Contains(header, p) {
			p = "param." + p
		}
		header = append(header, p)
	}
	_ = w.Write(header) // Error has it
	for _, t := range v.Trials {
		e := exportTrial(v, t, now)
		seconds := ""
		if e.Start != "" {
			seconds = strconv.FormatFloat(e.Took, 'f', -1, 64)
		}
		row := []string{strconv.Itoa(e.Trial), e.Name, e.State, strconv.FormatBool(e.Best), e.Start, e.End, seconds}
		for _, m := range metrics {
			row = append(row, harmless(strings.TrimPrefix(t.metric(m), collector.Unavailable)))
		}
		for _, p := range params {
			row = append(row, harmless(paramValue(t.Params, p)))
		}
		_ = w.Write(row)
	}
	w.Flush()
	if err := w.Error(); err != nil {
		return fmt.Errorf("write CSV: %w", err)
	}
	return nil
}

// harmless keeps a spreadsheet from taking a text for a formula.
func harmless(text string) string {
	if _, err := strconv.ParseFloat(text, 64); err != nil && strings.IndexAny(text, "=+-@\t\r") == 0 {
		return "'" + text
	}
	return text
}
