package main

import (
	"context"
	"database/sql"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	queryColumns = `  experiments(name, state, algorithm, objective, type, best_trial, best_value, trials, created)
  trials(experiment, trial, name, state, best, started, ended, seconds, value, message)
  params(experiment, trial, name, value)         value is a number where it is one
  metrics(experiment, trial, name, value)        the result of each metric, NULL if it is not finite
  curves(experiment, trial, metric, attempt, step, time, value)
`
	queryHelp = `Ask questions about experiments in SQL, of SQLite's kind. The tables are made in memory
for one question, and nothing is changed:

` + queryColumns + `
curves are read only for a question that names them, at most --points of each curve.`
	queryPatience = time.Minute
	queryRows     = 100_000
	queryBytes    = 64 << 20 // of an answer, and of one value
)

type queryOptions struct {
	output string
	points int
	store  string
}

func newQueryCommand(open opener, own ownStore) *cobra.Command {
	var o queryOptions
	cmd := &cobra.Command{
		Use:   "query SQL",
		Short: "Ask questions about trials and curves in SQL",
		Long:  queryHelp,
		Example: `  vernier query "select state, count(*), avg(seconds) from trials group by state"
  vernier query "select t.trial, p.value as lr, t.value from trials t join params p using (experiment, trial) where p.name = 'lr' order by t.value limit 5"
  vernier query "select metric, max(step) from curves where experiment = 'charlm' group by metric" -o csv`,
		Args: oneArgument,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := onlyReads(args[0]); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), queryPatience)
			defer cancel()
			return o.run(ctx, args[0], cmd.OutOrStdout(), open, own)
		},
	}
	outputFlag(cmd, &o.output, "table, csv or json", "table", "csv", "json")
	cmd.Flags().IntVar(&o.points, "points", 1000, fmt.Sprintf("most points of a curve, %d to %d; each is the last of those that it stands for", collector.MinBuckets, collector.MaxBuckets))
	cmd.Flags().StringVar(&o.store, "store", "", "store of the points (default: that of the embedded instance)")
	return cmd
}

// quoted are the ends of what SQLite reads as one word, by its beginning.
var quoted = []struct{ begin, end string }{{"'", "'"}, {`"`, `"`}, {"`", "`"}, {"[", "]"}, {"--", "\n"}, {"/*", "*/"}}

// onlyReads refuses what is not one SELECT. readOnly holds whatever this lets through.
func onlyReads(text string) error {
	if strings.ContainsRune(text, 0) {
		return usageErrorf("there is a NUL character in the question")
	}
	code := unquoted(text)
	word := strings.ToLower(strings.TrimSpace(code))
	if !strings.HasPrefix(word, "select") && !strings.HasPrefix(word, "with") {
		return usageErrorf("a question begins with select or with: see vernier query --help for the tables")
	}
	if strings.Contains(strings.TrimRight(code, "; \r\n\t"), ";") {
		return usageErrorf("ask one question at a time: there is a ; within it")
	}
	return nil
}

// unquoted is an SQL text with a space in place of each string, quoted name and comment.
func unquoted(text string) string {
	var code strings.Builder
scan:
	for text != "" {
		for _, q := range quoted {
			if rest, ok := strings.CutPrefix(text, q.begin); ok {
				_, text, _ = strings.Cut(rest, q.end)
				code.WriteByte(' ')
				continue scan
			}
		}
		code.WriteByte(text[0])
		text = text[1:]
	}
	return code.String()
}

// readOnly closes a database in memory: it takes no changes from here on, and no
// statement reaches a file, since ATTACH and VACUUM INTO need a second database.
func readOnly(ctx context.Context, db *sql.DB) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("make the tables: %w", err)
	}
	defer conn.Close()
	for id, limit := range map[int]int{sqlite3.SQLITE_LIMIT_ATTACHED: 0, sqlite3.SQLITE_LIMIT_LENGTH: queryBytes} {
		if _, err := sqlite.Limit(conn, id, limit); err != nil {
			return fmt.Errorf("limit the question: %w", err)
		}
	}
	if _, err := conn.ExecContext(ctx, "PRAGMA query_only = ON"); err != nil {
		return fmt.Errorf("make the tables: %w", err)
	}
	return nil
}

func (o queryOptions) run(ctx context.Context, text string, out io.Writer, open opener, own ownStore) error {
	if err := collector.CheckBuckets(o.points); err != nil {
		return usageErrorf("--points %d: write %d to %d", o.points, collector.MinBuckets, collector.MaxBuckets)
	}
	session, err := open(ctx, false)
	if err != nil {
		return err
	}
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return fmt.Errorf("make the tables: %w", err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1) // each connection would have a memory of its own
	views, err := fillTables(ctx, db, session)
	if err != nil {
		return err
	}
	if strings.Contains(strings.ToLower(text), "curves") {
		if err := own.with(ctx, o.store, func(s collector.Store) error { return o.fillCurves(ctx, db, s, views) }); err != nil {
			return err
		}
	}
	if err := readOnly(ctx, db); err != nil {
		return err
	}
	return o.answer(ctx, db, text, out)
}

var queryTables = []string{
	"CREATE TABLE experiments(name TEXT, state TEXT, algorithm TEXT, objective TEXT, type TEXT, best_trial TEXT, best_value REAL, trials INTEGER, created TEXT)",
	"CREATE TABLE trials(experiment TEXT, trial INTEGER, name TEXT, state TEXT, best INTEGER, started TEXT, ended TEXT, seconds REAL, value REAL, message TEXT)",
	"CREATE TABLE params(experiment TEXT, trial INTEGER, name TEXT, value)",
	"CREATE TABLE metrics(experiment TEXT, trial INTEGER, name TEXT, value)",
	"CREATE TABLE curves(experiment TEXT, trial INTEGER, metric TEXT, attempt INTEGER, step INTEGER, time TEXT, value REAL)",
}

// fillTables copies the experiments of the namespace.
func fillTables(ctx context.Context, db *sql.DB, s *session) ([]experimentView, error) {
	var list v1beta1.ExperimentList
	if err := s.client.List(ctx, &list, client.InNamespace(s.namespace)); err != nil {
		return nil, fmt.Errorf("list experiments: %w", err)
	}
	for _, statement := range queryTables {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return nil, fmt.Errorf("make the tables: %w", err)
		}
	}
	var views []experimentView
	for i := range list.Items {
		view, err := loadExperiment(ctx, s.client, client.ObjectKeyFromObject(&list.Items[i]))
		if errors.As(err, new(*noExperiment)) {
			continue // it was deleted meanwhile
		}
		if err == nil {
			err = fillExperiment(ctx, db, view, time.Now())
		}
		if err != nil {
			return nil, err
		}
		views = append(views, view)
	}
	return views, nil
}

func fillExperiment(ctx context.Context, db *sql.DB, v experimentView, now time.Time) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("fill the tables: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // after Commit there is nothing to roll back
	var failed error
	insert := func(table string, values ...any) {
		if failed == nil {
			_, failed = tx.ExecContext(ctx, "INSERT INTO "+table+" VALUES (?"+strings.Repeat(", ?", len(values)-1)+")", values...)
		}
	}
	e := v.Experiment
	algorithm, kind, bestName, bestValue := "", "", "", any(nil)
	if e.Spec.Algorithm != nil {
		algorithm = e.Spec.Algorithm.AlgorithmName
	}
	if o := e.Spec.AllObjectives(); len(o) > 0 {
		kind = string(o[0].Type)
	}
	if best, ok := v.best(); ok {
		bestName, bestValue = best.Name, sqlNumber(best.objective())
	}
	insert("experiments", e.Name, v.State, algorithm, v.metricName(), kind, bestName, bestValue, len(v.Trials), e.CreationTimestamp.UTC().Format(time.RFC3339))
	for _, t := range v.Trials {
		x := exportTrial(v, t, now)
		insert("trials", e.Name, t.Number, t.Name, t.State, x.Best, x.Start, x.End, x.Took, sqlNumber(t.objective()), t.Message)
		for _, p := range t.Params {
			insert("params", e.Name, t.Number, p.Name, sqlValue(p.Value))
		}
		for _, m := range t.Metrics {
			insert("metrics", e.Name, t.Number, m.Name, sqlNumber(m.Value))
		}
	}
	if failed == nil {
		failed = tx.Commit()
	}
	if failed != nil {
		return fmt.Errorf("fill the tables: %w", failed)
	}
	return nil
}

// sqlValue is a number, a text, or NULL for an empty one.
func sqlValue(text string) any {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n
	}
	if v, ok := finite(text); ok {
		return v
	}
	if text == "" {
		return nil
	}
	return text
}

// sqlNumber is the value of a metric: NULL where it is no number that can be compared, as max,
// avg and order by would count a text.
func sqlNumber(text string) any {
	if _, ok := finite(text); !ok {
		return nil
	}
	return sqlValue(text)
}

func (o queryOptions) fillCurves(ctx context.Context, db *sql.DB, s collector.Store, views []experimentView) error {
	for _, v := range views {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return fmt.Errorf("fill the tables: %w", err)
		}
		for _, t := range v.Trials {
			if err := o.fillCurve(ctx, tx, s, v.Experiment.Name, t); err != nil {
				return errors.Join(err, tx.Rollback())
			}
		}
		if err := tx.Commit(); err != nil {
			return fmt.Errorf("fill the tables: %w", err)
		}
	}
	return nil
}

func (o queryOptions) fillCurve(ctx context.Context, tx *sql.Tx, s collector.Store, experiment string, t trialView) error {
	id := collector.TrialID{Name: t.Name, UID: string(t.Object.UID)}
	metrics, err := s.Metrics(ctx, id.UID)
	if err != nil || len(metrics) == 0 {
		return err
	}
	numbers, err := attemptNumbers(ctx, s, id)
	if err != nil {
		return err
	}
	sampled, err := collector.Sample(ctx, s, id.UID, o.points, metrics...)
	if err != nil {
		return err
	}
	for _, c := range number(sampledCurves(sampled), numbers) {
		for _, p := range c.Points {
			var at any
			if p.Time != nil {
				at = p.Time.Format(time.RFC3339Nano)
			}
			if _, err := tx.ExecContext(ctx, "INSERT INTO curves VALUES (?, ?, ?, ?, ?, ?, ?)", experiment, t.Number, c.Metric, c.Attempt, p.Step, at, sqlNumber(fmt.Sprint(float64(p.Value)))); err != nil {
				return fmt.Errorf("fill the tables: %w", err)
			}
		}
	}
	return nil
}

// queryError is the error about a question; one about a name says which names there are.
func queryError(err error) error {
	if text := err.Error(); strings.Contains(text, "no such table") || strings.Contains(text, "no such column") {
		return usageErrorf("%w. The tables and their columns are\n%s", err, strings.TrimRight(queryColumns, "\n"))
	}
	return usageErrorf("%w", err)
}

// distinct are the columns as the keys of an object: one whose name was there before gets
// a number, as in a subquery of SQLite.
func distinct(columns []string) (keys []string) {
	for _, name := range columns {
		key := name
		for n := 1; slices.Contains(keys, key) || key != name && slices.Contains(columns, key); n++ {
			key = name + ":" + strconv.Itoa(n)
		}
		keys = append(keys, key)
	}
	return keys
}

// finiteOrNull is a value as JSON has it: there is no number for infinity.
func finiteOrNull(v any) any {
	if f, isNumber := v.(float64); isNumber && math.IsInf(f, 0) {
		return nil
	}
	return v
}

// answer asks, and writes what comes back.
func (o queryOptions) answer(ctx context.Context, db *sql.DB, text string, out io.Writer) error {
	rows, err := db.QueryContext(ctx, text)
	if err != nil {
		return queryError(err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	t, keys := &table{header: columns}, distinct(columns)
	var objects []map[string]any
	size := 0
	for rows.Next() {
		if len(t.rows) == queryRows {
			return usageErrorf("the answer has more than %d rows: add a limit, or group them", queryRows)
		}
		values, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			return fmt.Errorf("read the answer: %w", err)
		}
		cells, object := make([]string, len(columns)), map[string]any{}
		for i, v := range values {
			if b, isBytes := v.([]byte); isBytes {
				v = string(b)
			}
			if object[keys[i]] = finiteOrNull(v); v != nil {
				cells[i] = fmt.Sprint(v)
				size += len(cells[i])
			}
		}
		if size > queryBytes {
			return usageErrorf("the answer is larger than %d MiB: add a limit, or ask for fewer columns", queryBytes>>20)
		}
		t.add(cells...)
		objects = append(objects, object)
	}
	if err := rows.Err(); err != nil {
		return queryError(err)
	}
	switch o.output {
	case "json":
		if objects == nil {
			objects = []map[string]any{}
		}
		return writeValue(out, "json", objects)
	case "csv":
		w := csv.NewWriter(out)
		if err := w.Write(columns); err != nil {
			return err
		}
		return w.WriteAll(t.rows)
	}
	return t.write(out, false)
}
