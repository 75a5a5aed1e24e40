package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// action is one caller's write, run inside a transaction that it may share with
// others.
type action func(ctx context.Context, c *sqliteConn) error

// request is an action that waits for its transaction.
type request struct {
	ctx  context.Context //nolint:containedctx // travels with the request to the writer, as in net/http
	act  action
	done chan error
}

// maxGroup is how many requests may share a transaction. While one transaction
// commits, those that arrive queue up and form the next: no request waits for
// company.
const maxGroup = 64

// writer owns the only connection that writes.
type writer struct {
	db       *sql.DB
	conn     *sqliteConn
	requests chan request
	stopped  chan struct{}
}

func openWriter(ctx context.Context, path string) (*writer, error) {
	db, err := sql.Open("sqlite", dsn(path, sqliteWriteCacheKiB,
		"journal_mode(WAL)", "journal_size_limit(16777216)"))
	if err != nil {
		return nil, err
	}
	conn, err := newSQLiteConn(ctx, db)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	w := &writer{db: db, conn: conn, requests: make(chan request, maxGroup), stopped: make(chan struct{})}
	go w.loop(context.WithoutCancel(ctx))
	return w, nil
}

// do runs act and returns after it was committed. Once act has begun, ctx no
// longer matters, so that the answer says what really happened.
func (w *writer) do(ctx context.Context, act action) error {
	r := request{ctx: ctx, act: act, done: make(chan error, 1)}
	select {
	case w.requests <- r:
		return <-r.done
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (w *writer) close() error {
	close(w.requests)
	<-w.stopped
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
	for len(group) < maxGroup {
		select {
		case r, open := <-w.requests:
			if !open {
				return group
			}
			group = append(group, r)
		default:
			return group
		}
	}
	return group
}

// commit runs the group in one transaction and returns one error for each
// request. A request that fails is undone alone.
func (w *writer) commit(ctx context.Context, group []request) []error {
	errs := make([]error, len(group))
	fail := func(err error) []error {
		for i := range errs {
			if errs[i] == nil {
				errs[i] = err
			}
		}
		return errs
	}
	if err := w.conn.exec(ctx, "BEGIN IMMEDIATE"); err != nil {
		return fail(fmt.Errorf("begin: %w", err))
	}
	for i, r := range group {
		if errs[i] = r.ctx.Err(); errs[i] != nil {
			continue
		}
		var broken error
		if errs[i], broken = w.one(ctx, r); broken != nil {
			return fail(errors.Join(broken, w.conn.exec(ctx, "ROLLBACK")))
		}
	}
	if err := w.conn.exec(ctx, "COMMIT"); err != nil {
		return fail(fmt.Errorf("commit: %w", errors.Join(err, w.conn.exec(ctx, "ROLLBACK"))))
	}
	return errs
}

// one runs a request in a savepoint. broken means that the transaction as a
// whole cannot go on.
func (w *writer) one(ctx context.Context, r request) (err, broken error) {
	if err := w.conn.exec(ctx, "SAVEPOINT one"); err != nil {
		return nil, err
	}
	if err = r.act(ctx, w.conn); err != nil {
		broken = w.conn.exec(ctx, "ROLLBACK TO one")
	}
	return err, errors.Join(broken, w.conn.exec(ctx, "RELEASE one"))
}
