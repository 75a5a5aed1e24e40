package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/vernier-ml/vernier/collector"
)

const (
	// maxKnownRows bounds the names of each table whose numbers are remembered.
	maxKnownRows = 50_000
	// touchEvery is how exact trial.touched is: a trial that reports each second
	// costs one more write an hour.
	touchEvery = time.Hour
)

// name is a name that belongs to a numbered row.
type name struct {
	parent int64
	name   string
}

// knownRows are the numbers of names in transactions that were committed, or in
// the present one. That a trial was deleted by another process shows in foreign
// keys or in dialect.dataVersion; then all is forgotten.
type knownRows struct {
	trials            map[string]*trialRow
	attempts, metrics map[name]int64
	sources           map[name]sourceRow
	version           int64
}

type trialRow struct {
	id      int64
	named   bool // its experiment is known
	touched int64
}

type sourceRow struct{ id, acked int64 }

func (k *knownRows) forget() {
	*k = knownRows{trials: map[string]*trialRow{}, attempts: map[name]int64{}, metrics: map[name]int64{}, sources: map[name]sourceRow{}, version: k.version}
}

// store stores reports.
func (t tx) store(ctx context.Context, reports []report, now time.Time) error {
	if k := t.rows; max(len(k.trials), len(k.attempts), len(k.metrics), len(k.sources)) > maxKnownRows {
		k.forget()
	}
	var points [][]any
	sources := map[name]*sourceReport{}
	for _, r := range reports {
		trial, err := t.trial(ctx, r.trial, now)
		if err != nil {
			return fmt.Errorf("write trial: %w", err)
		}
		attempt, err := t.number(ctx, "attempt", "trial", name{trial, r.attempt.ID}, t.rows.attempts, ", started", timeColumn(r.attempt.Started))
		if err != nil {
			return fmt.Errorf("write attempt: %w", err)
		}
		if points, err = t.collect(ctx, points, sources, trial, attempt, r.points); err != nil {
			return err
		}
		if r.final || r.noted {
			// The answer to a note may be late: what Finish has said stays.
			if _, err := t.exec(ctx, "UPDATE attempt SET final = ?, note = ? WHERE id = ? AND (? OR final = ?)", r.final, t.dialect.text(r.note), attempt, r.final, false); err != nil {
				return fmt.Errorf("write the note of an attempt: %w", err)
			}
		}
	}
	if err := t.acknowledge(ctx, sources); err != nil {
		return fmt.Errorf("write sources: %w", err)
	}
	for _, p := range points {
		p[0] = p[0].(*sourceReport).row.id // known only now
	}
	if err := t.insert(ctx, "point ("+t.dialect.columns+")", t.dialect.knownPoint, points); err != nil {
		return fmt.Errorf("write points: %w", err)
	}
	return nil
}

// sourceReport is what reports say of a source.
type sourceReport struct {
	row          sourceRow
	acked        int64
	points, text int64 // those that were not there before
}

// collect adds the rows of points of one attempt. Their first column is the
// *sourceReport.
func (t tx) collect(ctx context.Context, rows [][]any, sources map[name]*sourceReport, trial, attempt int64, points []collector.Point) ([][]any, error) {
	for i := range points {
		p := &points[i]
		metric, err := t.number(ctx, "metric", "trial", name{trial, p.Metric}, t.rows.metrics, "")
		if err != nil {
			return nil, fmt.Errorf("write metric: %w", err)
		}
		key := name{attempt, p.Source}
		s := sources[key]
		if s == nil {
			row, err := t.source(ctx, key)
			if err != nil {
				return nil, fmt.Errorf("read source: %w", err)
			}
			s = &sourceReport{row: row}
			sources[key] = s
		}
		if p.Seq >= max(s.row.acked, s.acked) {
			s.points, s.text = s.points+1, s.text+int64(len(p.Text))
		}
		s.acked = max(s.acked, p.Seq+1)
		var text any
		if p.Text != "" {
			text = t.dialect.text(p.Text)
		}
		row := append([]any{s, p.Seq, metric, p.Step, timeColumn(p.Time)}, t.dialect.encode(p.Value)...)
		rows = append(rows, append(row, text))
	}
	return rows, nil
}

// trial returns the number of a trial, which is made if there is none, and notes
// that it reported.
func (t tx) trial(ctx context.Context, id collector.TrialID, now time.Time) (int64, error) {
	row := t.rows.trials[id.UID]
	text := t.dialect.text
	if row == nil {
		err := t.insert(ctx, "trial (uid, namespace, name, experiment, touched)", t.dialect.known,
			[][]any{{text(id.UID), text(id.Namespace), text(id.Name), text(id.Experiment), now.Unix()}})
		if err != nil {
			return 0, err
		}
		row = &trialRow{}
		var experiment string
		err = t.row(ctx, "SELECT id, experiment, touched FROM trial WHERE uid = ?", text(id.UID)).Scan(&row.id, &experiment, &row.touched)
		if err != nil {
			return 0, err
		}
		row.named = experiment != ""
		t.rows.trials[id.UID] = row
	}
	if !row.named && id.Experiment != "" {
		if _, err := t.exec(ctx, "UPDATE trial SET experiment = ? WHERE id = ?", text(id.Experiment), row.id); err != nil {
			return 0, err
		}
		row.named = true
	}
	if now.Sub(time.Unix(row.touched, 0)) >= touchEvery {
		if _, err := t.exec(ctx, "UPDATE trial SET touched = ? WHERE id = ?", now.Unix(), row.id); err != nil {
			return 0, err
		}
		row.touched = now.Unix()
	}
	return row.id, nil
}

// number returns the number of a name, which is made if there is none. extra are
// the values of further columns.
func (t tx) number(ctx context.Context, table, parent string, key name, known map[name]int64, columns string, extra ...any) (int64, error) {
	if id, ok := known[key]; ok {
		return id, nil
	}
	row := append([]any{key.parent, t.dialect.text(key.name)}, extra...)
	if err := t.insert(ctx, table+" ("+parent+", name"+columns+")", t.dialect.known, [][]any{row}); err != nil {
		return 0, err
	}
	var id int64
	err := t.row(ctx, "SELECT id FROM "+table+" WHERE "+parent+" = ? AND name = ?", row[0], row[1]).Scan(&id)
	known[key] = id
	return id, err
}

// acknowledge moves the acknowledged sequences forward, in one order, so that two
// processes that do so do not wait for each other, and learns the numbers of
// sources.
func (t tx) acknowledge(ctx context.Context, sources map[name]*sourceReport) error {
	keys := slices.SortedFunc(maps.Keys(sources), func(a, b name) int {
		return cmp.Or(cmp.Compare(a.parent, b.parent), cmp.Compare(a.name, b.name))
	})
	rows := make([][]any, 0, len(keys))
	for _, key := range keys {
		s := sources[key]
		rows = append(rows, []any{key.parent, t.dialect.text(key.name), s.acked, s.points, s.text})
	}
	if err := t.insert(ctx, "source (attempt, name, acked, points, text_bytes)", t.dialect.ack, rows); err != nil {
		return err
	}
	for _, key := range keys {
		s := sources[key]
		if s.row.id == 0 {
			var err error
			if s.row, err = t.source(ctx, key); err != nil {
				return err
			}
		}
		t.rows.sources[key] = sourceRow{s.row.id, max(s.row.acked, s.acked)}
	}
	return nil
}

// source returns the row of a source; the zero value where there is none.
func (t tx) source(ctx context.Context, key name) (sourceRow, error) {
	row, known := t.rows.sources[key]
	if known {
		return row, nil
	}
	err := t.row(ctx, "SELECT id, acked FROM source WHERE attempt = ? AND name = ?", key.parent, t.dialect.text(key.name)).Scan(&row.id, &row.acked)
	if errors.Is(err, sql.ErrNoRows) {
		return row, nil
	}
	return row, err
}

func timeColumn(t time.Time) any {
	if nanos, ok := collector.UnixNano(t); ok {
		return nanos
	}
	return nil
}
