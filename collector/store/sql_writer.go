package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/vernier-ml/vernier/collector"
)

// report is what one call of Append or Finish writes.
type report struct {
	trial   collector.TrialID
	attempt collector.Attempt
	points  []collector.Point
	final   bool
	note    string
}

// action is a write of another kind, with a transaction of its own.
type action func(ctx context.Context, c *sqlConn) error

// request is a report or an action that waits for its transaction.
type request struct {
	ctx    context.Context //nolint:containedctx // travels with the request to the writer, as in net/http
	report report
	act    action // nil for a report
	done   chan error
}

const (
	// maxGroup and maxGroupPoints bound the requests that share a transaction. While
	// one transaction commits, those that arrive queue up and form the next: no
	// request waits for company.
	maxGroup       = 256
	maxGroupPoints = 16384
	// groupTime bounds a transaction; an engine that does not answer is an error.
	groupTime = 30 * time.Second
	// tries is how often a transaction is begun that others are in the way of.
	tries = 5
)

// writer owns the only connection of this process that writes.
type writer struct {
	dialect  *dialect
	db       *sql.DB
	now      func() time.Time
	requests chan request
	stopped  chan struct{}
	conn     *sqlConn // nil until needed, and after one that broke
}

func startWriter(ctx context.Context, d *dialect, db *sql.DB, now func() time.Time) *writer {
	w := &writer{dialect: d, db: db, now: now, requests: make(chan request, maxGroup), stopped: make(chan struct{})}
	go w.loop(context.WithoutCancel(ctx))
	return w
}

// do hands a request to the writer and returns after it was committed. Once it has
// begun, its context no longer matters, so that the answer says what really
// happened.
func (w *writer) do(r request) error {
	r.done = make(chan error, 1)
	select {
	case w.requests <- r:
		return <-r.done
	case <-r.ctx.Done():
		return r.ctx.Err()
	}
}

func (w *writer) close() error {
	close(w.requests)
	<-w.stopped
	if w.conn == nil {
		return w.db.Close()
	}
	return errors.Join(w.conn.close(), w.db.Close())
}

func (w *writer) loop(ctx context.Context) {
	defer close(w.stopped)
	for first := range w.requests {
		group := w.gather(first)
		errs := w.commit(ctx, group)
		for i, r := range group {
			r.done <- errs[i]
		}
	}
}

func (w *writer) gather(first request) []request {
	group := []request{first}
	points := len(first.report.points)
	for len(group) < maxGroup && points < maxGroupPoints {
		select {
		case r, open := <-w.requests:
			if !open {
				return group
			}
			group = append(group, r)
			points += len(r.report.points)
		default:
			return group
		}
	}
	return group
}

// commit writes the reports of a group in one transaction, then runs its actions,
// and returns one error for each request. When the engine refuses the reports, each
// is tried alone, so that only those fail that are to blame.
func (w *writer) commit(ctx context.Context, group []request) []error {
	errs := make([]error, len(group))
	var together []report
	var of []int
	for i, r := range group {
		switch {
		case r.ctx.Err() != nil:
			errs[i] = r.ctx.Err()
		case r.act != nil:
			errs[i] = w.transact(ctx, r.act)
		default:
			together, of = append(together, r.report), append(of, i)
		}
	}
	if len(together) == 0 {
		return errs
	}
	err := w.write(ctx, together)
	alone := err != nil && len(together) > 1 && w.dialect.kind(err) == refused
	for k, i := range of {
		errs[i] = err
		if alone {
			errs[i] = w.write(ctx, together[k:k+1])
		}
	}
	return errs
}

func (w *writer) write(ctx context.Context, reports []report) error {
	return w.transact(ctx, func(ctx context.Context, c *sqlConn) error { return c.write(ctx, reports, w.now()) })
}

// transact runs act in a transaction, again where another one was in the way.
func (w *writer) transact(ctx context.Context, act action) error {
	for try := 1; ; try++ {
		err := w.once(ctx, act)
		if err == nil || try == tries {
			return err
		}
		if k := w.dialect.kind(err); k != conflict && k != orphan {
			return err
		}
	}
}

func (w *writer) once(ctx context.Context, act action) (err error) {
	ctx, cancel := context.WithTimeout(ctx, groupTime)
	defer cancel()
	if w.conn == nil {
		if w.conn, err = openConn(ctx, w.dialect, w.db); err != nil {
			return fmt.Errorf("connect: %w", err)
		}
	}
	c := w.conn
	if err := c.exec(ctx, w.dialect.begin); err != nil {
		return errors.Join(fmt.Errorf("begin: %w", err), w.drop())
	}
	if w.dialect.changed != nil {
		changed, err := w.dialect.changed(ctx, c)
		if err != nil {
			return errors.Join(err, w.undo(ctx, err))
		}
		if changed {
			c.ids.forget()
		}
	}
	if err := act(ctx, c); err != nil {
		return errors.Join(err, w.undo(ctx, err))
	}
	if err := c.exec(ctx, "COMMIT"); err != nil {
		return errors.Join(fmt.Errorf("commit: %w", err), w.undo(ctx, err))
	}
	return nil
}

// undo rolls back. What was learned in the transaction is not true any more. A
// connection that led to an engine that cannot write is given up: after a
// failover, the address leads to another.
func (w *writer) undo(ctx context.Context, cause error) error {
	w.conn.ids.forget()
	if w.conn.exec(ctx, "ROLLBACK") != nil || w.dialect.kind(cause) == lost {
		return w.drop() // why is said by the error before this one
	}
	return nil
}

// drop closes a connection that broke; the next transaction opens another.
func (w *writer) drop() error {
	c := w.conn
	w.conn = nil
	c.discard()
	return nil
}

// sqlConn is the writing connection with its statements, and the numbers of names
// that it knows.
type sqlConn struct {
	dialect    *dialect
	conn       *sql.Conn
	statements map[string]*sql.Stmt
	ids        ids
	version    int64 // see dialect.changed of SQLite
}

func openConn(ctx context.Context, d *dialect, db *sql.DB) (*sqlConn, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	c := &sqlConn{dialect: d, conn: conn, statements: map[string]*sql.Stmt{}}
	c.ids.forget()
	for _, statement := range d.session {
		if err := c.exec(ctx, statement); err != nil {
			c.discard()
			return nil, err
		}
	}
	return c, nil
}

func (c *sqlConn) close() error {
	var errs []error
	for _, s := range c.statements {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, c.conn.Close())...)
}

// discard closes the connection and keeps it from being used again.
func (c *sqlConn) discard() {
	for _, s := range c.statements {
		_ = s.Close() // of a connection that is thrown away
	}
	_ = c.conn.Raw(func(any) error { return driver.ErrBadConn }) // marks it, and returns that
	_ = c.conn.Close()                                           // of no use any more
}

func (c *sqlConn) exec(ctx context.Context, query string, args ...any) error {
	_, err := c.conn.ExecContext(ctx, c.dialect.sql(query), args...)
	return err
}

// prepared runs a statement that is prepared once; there are few of them.
func (c *sqlConn) prepared(ctx context.Context, query string, args ...any) error {
	s := c.statements[query]
	if s == nil {
		var err error
		if s, err = c.conn.PrepareContext(ctx, c.dialect.sql(query)); err != nil {
			return err
		}
		c.statements[query] = s
	}
	_, err := s.ExecContext(ctx, args...)
	return err
}

// each calls scan for every row.
func (c *sqlConn) each(ctx context.Context, query string, args []any, scan func(*sql.Rows) error) error {
	rows, err := c.conn.QueryContext(ctx, c.dialect.sql(query), args...)
	return eachRow(rows, err, scan)
}

func eachRow(rows *sql.Rows, err error, scan func(*sql.Rows) error) error {
	if err != nil {
		return err
	}
	defer rows.Close() //nolint:errcheck // rows.Err is looked at
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
