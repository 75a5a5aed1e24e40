package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/vernier-ml/vernier/collector"
)

// Rows of one INSERT, largest first; the columns of all of them stay far below
// SQLite's limit of 32,766 parameters.
var insertSizes = [...]int{128, 16, 1}

const pointColumns = 7

// sqliteConn is the writing connection with its statements.
type sqliteConn struct {
	conn    *sql.Conn
	inserts [len(insertSizes)]*sql.Stmt
}

func newSQLiteConn(ctx context.Context, db *sql.DB) (_ *sqliteConn, err error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, conn.Close())
		}
	}()
	var mode string
	if err := conn.QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&mode); err != nil {
		return nil, err
	}
	if mode != "wal" {
		return nil, fmt.Errorf("the journal mode is %q, not \"wal\": put the file on a local disk", mode)
	}
	if err := migrate(ctx, conn); err != nil {
		return nil, err
	}
	c := &sqliteConn{conn: conn}
	for i, rows := range insertSizes {
		values := strings.TrimSuffix(strings.Repeat("(?,?,?,?,?,?,?),", rows), ",")
		c.inserts[i], err = conn.PrepareContext(ctx, "INSERT INTO point VALUES "+values+" ON CONFLICT DO NOTHING")
		if err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (c *sqliteConn) close() error {
	var errs []error
	for _, s := range c.inserts {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, c.conn.Close())...)
}

func (c *sqliteConn) exec(ctx context.Context, query string, args ...any) error {
	_, err := c.conn.ExecContext(ctx, query, args...)
	return err
}

func (c *sqliteConn) append(ctx context.Context, trial collector.TrialID, attempt collector.Attempt, points []collector.Point) error {
	trialID, err := c.trial(ctx, trial)
	if err != nil {
		return err
	}
	attemptID, err := c.attempt(ctx, trialID, attempt)
	if err != nil {
		return err
	}
	sources, err := c.sources(ctx, attemptID, points)
	if err != nil {
		return err
	}
	metrics := map[string]int64{}
	for _, p := range points {
		if _, known := metrics[p.Metric]; !known {
			if metrics[p.Metric], err = c.id(ctx, "metric (trial, name)", trialID, p.Metric); err != nil {
				return err
			}
		}
	}
	return c.points(ctx, points, sources, metrics)
}

// points inserts rows, as many as possible with each statement.
func (c *sqliteConn) points(ctx context.Context, points []collector.Point, sources, metrics map[string]int64) error {
	args := make([]any, 0, insertSizes[0]*pointColumns)
	for i, rows := range insertSizes {
		for len(points) >= rows {
			args = args[:0]
			for _, p := range points[:rows] {
				args = append(args, sources[p.Source], p.Seq, metrics[p.Metric], p.Step,
					timeColumn(p), valueColumn(p.Value), textColumn(p.Text))
			}
			if _, err := c.inserts[i].ExecContext(ctx, args...); err != nil {
				return fmt.Errorf("insert points: %w", err)
			}
			points = points[rows:]
		}
	}
	return nil
}

func timeColumn(p collector.Point) any {
	if nanos, ok := storable(p.Time); ok {
		return nanos
	}
	return nil
}

func valueColumn(v float64) any {
	if math.IsNaN(v) {
		return nil
	}
	return v
}

func textColumn(text string) any {
	if text == "" {
		return nil
	}
	return text
}

func (c *sqliteConn) finish(ctx context.Context, trial collector.TrialID, attempt collector.Attempt, note string) error {
	trialID, err := c.trial(ctx, trial)
	if err != nil {
		return err
	}
	attemptID, err := c.attempt(ctx, trialID, attempt)
	if err != nil {
		return err
	}
	return c.exec(ctx, "UPDATE attempt SET final = 1, note = ? WHERE id = ?", note, attemptID)
}

func (c *sqliteConn) delete(ctx context.Context, trialUID string) error {
	const ofTrial = "(SELECT id FROM trial WHERE uid = ?)"
	for _, query := range []string{
		"DELETE FROM point WHERE source IN (SELECT source.id FROM source JOIN attempt ON attempt.id = source.attempt WHERE attempt.trial = " + ofTrial + ")",
		"DELETE FROM source WHERE attempt IN (SELECT id FROM attempt WHERE trial = " + ofTrial + ")",
		"DELETE FROM attempt WHERE trial = " + ofTrial,
		"DELETE FROM metric WHERE trial = " + ofTrial,
		"DELETE FROM trial WHERE uid = ?",
	} {
		if err := c.exec(ctx, query, trialUID); err != nil {
			return fmt.Errorf("delete trial %s: %w", trialUID, err)
		}
	}
	return nil
}

func (c *sqliteConn) trial(ctx context.Context, trial collector.TrialID) (int64, error) {
	return c.id(ctx, "trial (uid, namespace, name)", trial.UID, trial.Namespace, trial.Name)
}

func (c *sqliteConn) attempt(ctx context.Context, trialID int64, attempt collector.Attempt) (int64, error) {
	var started any
	if nanos, ok := storable(attempt.Started); ok {
		started = nanos
	}
	return c.id(ctx, "attempt (trial, name, started)", trialID, attempt.ID, started)
}

// sources moves the acknowledged sequence of each source of the points forward
// and returns the sources' numbers.
func (c *sqliteConn) sources(ctx context.Context, attemptID int64, points []collector.Point) (map[string]int64, error) {
	acked := map[string]int64{}
	for _, p := range points {
		acked[p.Source] = max(acked[p.Source], p.Seq+1)
	}
	ids := make(map[string]int64, len(acked))
	for name, next := range acked {
		var id int64
		err := c.conn.QueryRowContext(ctx, `INSERT INTO source (attempt, name, acked) VALUES (?, ?, ?)
			ON CONFLICT (attempt, name) DO UPDATE SET acked = max(acked, excluded.acked)
			RETURNING id`, attemptID, name, next).Scan(&id)
		if err != nil {
			return nil, fmt.Errorf("source %s: %w", name, err)
		}
		ids[name] = id
	}
	return ids, nil
}

// id returns the number of the row that has the given values in the key of a
// table, made if it is new. into is "table (columns)". The key is the first
// column of trial, and the first two of the other tables.
func (c *sqliteConn) id(ctx context.Context, into string, values ...any) (int64, error) {
	table, columns, _ := strings.Cut(strings.TrimSuffix(into, ")"), " (")
	names := strings.Split(columns, ", ")
	key := 2
	if table == "trial" {
		key = 1
	}
	var id int64
	err := c.conn.QueryRowContext(ctx, "SELECT id FROM "+table+" WHERE "+
		strings.Join(names[:key], " = ? AND ")+" = ?", values[:key]...).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		marks := strings.TrimSuffix(strings.Repeat("?, ", len(values)), ", ")
		err = c.conn.QueryRowContext(ctx, "INSERT INTO "+into+" VALUES ("+marks+") RETURNING id", values...).Scan(&id)
	}
	if err != nil {
		return 0, fmt.Errorf("%s: %w", table, err)
	}
	return id, nil
}
