package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"
)

// write stores reports, all with few statements.
func (c *sqlConn) write(ctx context.Context, reports []report, now time.Time) error {
	c.ids.bound()
	if err := c.trials(ctx, reports, now); err != nil {
		return fmt.Errorf("write trials: %w", err)
	}
	attempts := map[child][]any{}
	for _, r := range reports {
		key := child{c.ids.trials[r.trial.UID].id, r.attempt.ID}
		if _, seen := attempts[key]; !seen {
			attempts[key] = []any{timeColumn(r.attempt.Started)}
		}
	}
	if err := c.children(ctx, "attempt", "trial", ", started", c.ids.attempts, attempts); err != nil {
		return fmt.Errorf("write attempts: %w", err)
	}
	rows, err := c.number(ctx, reports)
	if err != nil {
		return err
	}
	if err := c.points(ctx, rows); err != nil {
		return fmt.Errorf("write points: %w", err)
	}
	for _, r := range reports {
		if !r.final {
			continue
		}
		if err := c.exec(ctx, "UPDATE attempt SET final = ?, note = ? WHERE id = ?",
			true, c.dialect.text(r.note), c.attemptOf(r)); err != nil {
			return fmt.Errorf("finish attempts: %w", err)
		}
	}
	return nil
}

func (c *sqlConn) attemptOf(r report) int64 {
	return c.ids.attempts[child{c.ids.trials[r.trial.UID].id, r.attempt.ID}]
}

// number moves the acknowledged sequences forward, and gives the points of reports
// numbers for names.
func (c *sqlConn) number(ctx context.Context, reports []report) ([]row, error) {
	n := 0
	metrics := map[child][]any{}
	acked := map[child]int64{}
	for _, r := range reports {
		trial, attempt := c.ids.trials[r.trial.UID].id, c.attemptOf(r)
		for i := range r.points {
			p := &r.points[i]
			metrics[child{trial, p.Metric}] = nil
			source := child{attempt, p.Source}
			acked[source] = max(acked[source], p.Seq+1)
		}
		n += len(r.points)
	}
	if err := c.children(ctx, "metric", "trial", "", c.ids.metrics, metrics); err != nil {
		return nil, fmt.Errorf("write metrics: %w", err)
	}
	if err := c.acknowledge(ctx, acked); err != nil {
		return nil, fmt.Errorf("write sources: %w", err)
	}
	rows := make([]row, 0, n)
	for _, r := range reports {
		trial, attempt := c.ids.trials[r.trial.UID].id, c.attemptOf(r)
		for _, p := range r.points {
			rows = append(rows, row{c.ids.sources[child{attempt, p.Source}], c.ids.metrics[child{trial, p.Metric}], p})
		}
	}
	return rows, nil
}

// acknowledge writes the acknowledged sequences, in one order, so that two
// processes that do so do not wait for each other.
func (c *sqlConn) acknowledge(ctx context.Context, acked map[child]int64) error {
	keys := make([]child, 0, len(acked))
	parents, names := map[int64]bool{}, map[string]bool{}
	for key := range acked {
		keys = append(keys, key)
		if _, known := c.ids.sources[key]; !known {
			parents[key.parent], names[key.name] = true, true
		}
	}
	slices.SortFunc(keys, func(a, b child) int { return cmp.Or(cmp.Compare(a.parent, b.parent), cmp.Compare(a.name, b.name)) })
	rows := make([][]any, 0, len(keys))
	for _, key := range keys {
		rows = append(rows, []any{key.parent, c.dialect.text(key.name), acked[key]})
	}
	if err := c.insert(ctx, "source (attempt, name, acked)", c.dialect.ack, rows); err != nil || len(parents) == 0 {
		return err
	}
	return c.readChildren(ctx, "source", "attempt", c.ids.sources, parents, names)
}

// maxStatement bounds the texts of one insert of points, far below the least
// max_allowed_packet that servers have.
const maxStatement = 256 << 10

// points inserts rows, as many as possible with each statement.
func (c *sqlConn) points(ctx context.Context, rows []row) error {
	if c.dialect.points != nil {
		return c.dialect.points(ctx, c, rows)
	}
	var args []any
	for len(rows) > 0 {
		size := c.fitting(rows)
		args = args[:0]
		columns := 0
		for _, r := range rows[:size] {
			args = append(args, r.source, r.Seq, r.metric, r.Step, timeColumn(r.Time))
			args = append(args, c.dialect.encode(r.Value)...)
			args = append(args, c.textColumn(r.Text))
		}
		columns = len(args) / size
		if err := c.prepared(ctx, "INSERT INTO point ("+c.dialect.columns+") VALUES "+tuples(size, columns)+" "+c.dialect.knownPoint, args...); err != nil {
			return err
		}
		rows = rows[size:]
	}
	return nil
}

// fitting is how many of rows, at least 1, the next statement takes.
func (c *sqlConn) fitting(rows []row) int {
	n, bytes := 0, 0
	for n < len(rows) && n < c.dialect.pointRows[0] {
		if bytes += len(rows[n].Text); bytes > maxStatement {
			break
		}
		n++
	}
	for _, size := range c.dialect.pointRows {
		if size <= n {
			return size
		}
	}
	return 1
}

func timeColumn(t time.Time) any {
	if nanos, ok := storable(t); ok {
		return nanos
	}
	return nil
}

func (c *sqlConn) textColumn(text string) any {
	if text == "" {
		return nil
	}
	return c.dialect.text(text)
}
