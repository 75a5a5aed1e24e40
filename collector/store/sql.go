package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/vernier-ml/vernier/collector"
)

// sqlStore keeps points in an SQL engine: one connection writes, a few read. A
// write that was acknowledged was committed.
type sqlStore struct {
	dialect *dialect
	writer  *writer
	reads   *sql.DB
	schema  int
	// secret is a password that no error may show; empty when there is none.
	secret string

	mu     sync.RWMutex // held for writing by Close only
	closed bool
}

var _ collector.Store = (*sqlStore)(nil)

// Readers at the same time. Each may hold a page of rows.
const sqlReaders = 4

// pools are the connections of a store: one that writes, and those that read.
type pools struct {
	write, read *sql.DB
	secret      string
}

// openSQL migrates the schema and starts the writer. It closes the pools on error.
func openSQL(ctx context.Context, d *dialect, p pools) (_ collector.Store, err error) {
	s := &sqlStore{dialect: d, reads: p.read, secret: p.secret}
	defer func() {
		if err != nil {
			err = s.explain("", errors.Join(err, p.read.Close(), p.write.Close()))
		}
	}()
	conn, err := p.write.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	s.schema, err = d.migrate(ctx, conn, time.Now())
	if err = errors.Join(err, conn.Close()); err != nil {
		return nil, err
	}
	s.writer = startWriter(ctx, d, p.write)
	return s, nil
}

// explain says what failed, and hides the password if the engine's driver repeats
// it.
func (s *sqlStore) explain(what string, err error) error {
	if err == nil {
		return nil
	}
	err = hide(err, s.secret)
	if what == "" || errors.Is(err, ErrClosed) {
		return err
	}
	return fmt.Errorf("%s: %w", what, err)
}

// Append implements collector.Store.
func (s *sqlStore) Append(ctx context.Context, trial collector.TrialID, attempt collector.Attempt, points []collector.Point) error {
	if err := check(trial, attempt, points); err != nil {
		return err
	}
	return s.open(func() error { return s.writer.write(ctx, report{trial: trial, attempt: attempt, points: points}) })
}

// Finish implements collector.Store.
func (s *sqlStore) Finish(ctx context.Context, trial collector.TrialID, attempt collector.Attempt, note string) error {
	if err := errors.Join(check(trial, attempt, nil), checkNote(note)); err != nil {
		return err
	}
	return s.open(func() error {
		return s.writer.write(ctx, report{trial: trial, attempt: attempt, final: true, note: note})
	})
}

// Close implements collector.Store.
func (s *sqlStore) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	s.writer.stop()
	return s.explain("close the store", errors.Join(s.reads.Close(), s.writer.db.Close()))
}

// open runs act unless the store is closed.
func (s *sqlStore) open(act func() error) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return ErrClosed
	}
	return s.explain("", act())
}

// view is one state of the store.
type view struct {
	dialect *dialect
	tx      *sql.Tx
}

// read runs act on one state of the store. what says what failed.
func (s *sqlStore) read(ctx context.Context, what string, act func(view) error) error {
	return s.explain(what, s.open(func() error {
		tx, err := s.reads.BeginTx(ctx, &s.dialect.read)
		if err != nil {
			return err
		}
		defer tx.Rollback() //nolint:errcheck // a transaction that wrote nothing
		return act(view{s.dialect, tx})
	}))
}

// each calls scan for every row.
func (v view) each(ctx context.Context, query string, args []any, scan func(*sql.Rows) error) error {
	rows, err := v.tx.QueryContext(ctx, v.dialect.sql(query), args...)
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
