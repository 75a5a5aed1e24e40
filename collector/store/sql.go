package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/vernier-ml/vernier/collector"
)

// sqlStore keeps points in an SQL engine: one connection writes, a few read. A
// write that was acknowledged was committed.
type sqlStore struct {
	pools
	dialect  *dialect
	schema   int
	now      func() time.Time
	requests chan request
	stopped  chan struct{} // closed when all requests are answered

	writing sync.Mutex // held during a transaction that writes
	rows    knownRows

	mu     sync.RWMutex // held for writing by Close only
	closed bool
}

var _ collector.Store = (*sqlStore)(nil)

// Readers at the same time. Each may hold a page of rows.
const sqlReaders = 4

// pools are the connections of a store: one that writes, and those that read.
type pools struct {
	writes, reads *sql.DB
	// secret is a password that no error may show; empty when there is none.
	secret string
	// keep is a connection that must outlast the others; nil where none must.
	keep *sql.Conn
}

func (p pools) close() error {
	err := errors.Join(p.reads.Close(), p.writes.Close())
	if p.keep != nil {
		err = errors.Join(err, p.keep.Close())
	}
	return err
}

// openSQL migrates the schema and starts the writer. It closes the pools on error.
func openSQL(ctx context.Context, d *dialect, p pools) (_ collector.Store, err error) {
	s := &sqlStore{dialect: d, pools: p, now: time.Now, requests: make(chan request, maxGroup), stopped: make(chan struct{})}
	s.rows.forget()
	defer func() {
		if err != nil {
			err = s.explain("", errors.Join(err, p.close()))
		}
	}()
	conn, err := p.writes.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	s.schema, err = d.migrate(ctx, conn, s.now())
	if err = errors.Join(err, conn.Close()); err != nil {
		return nil, err
	}
	go s.loop(context.WithoutCancel(ctx))
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
	return s.open(func() error { return s.report(ctx, report{trial: trial, attempt: attempt, points: points}) })
}

// Finish implements collector.Store.
func (s *sqlStore) Finish(ctx context.Context, trial collector.TrialID, attempt collector.Attempt, note string) error {
	if err := errors.Join(check(trial, attempt, nil), checkNote(note)); err != nil {
		return err
	}
	return s.open(func() error {
		return s.report(ctx, report{trial: trial, attempt: attempt, final: true, note: note})
	})
}

// Note implements collector.Store.
func (s *sqlStore) Note(ctx context.Context, trial collector.TrialID, attempt collector.Attempt, note string) error {
	if err := errors.Join(check(trial, attempt, nil), checkNote(note)); err != nil {
		return err
	}
	return s.open(func() error {
		return s.report(ctx, report{trial: trial, attempt: attempt, noted: true, note: note})
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
	close(s.requests)
	<-s.stopped
	return s.explain("close the store", s.close())
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

// read runs act on one state of the store. what says what failed.
func (s *sqlStore) read(ctx context.Context, what string, act func(tx) error) error {
	return s.explain(what, s.open(func() error {
		t, err := s.reads.BeginTx(ctx, &s.dialect.read)
		if err != nil {
			return err
		}
		defer t.Rollback() //nolint:errcheck // a transaction that wrote nothing
		return act(tx{dialect: s.dialect, tx: t})
	}))
}

// tx is a transaction.
type tx struct {
	dialect *dialect
	tx      *sql.Tx
	rows    *knownRows // of one that writes
}

func (t tx) exec(ctx context.Context, query string, args ...any) (changed int64, err error) {
	result, err := t.tx.ExecContext(ctx, t.dialect.sql(query), args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

func (t tx) row(ctx context.Context, query string, args ...any) *sql.Row {
	return t.tx.QueryRowContext(ctx, t.dialect.sql(query), args...)
}

// each calls scan for every row.
func (t tx) each(ctx context.Context, query string, args []any, scan func(*sql.Rows) error) error {
	rows, err := t.tx.QueryContext(ctx, t.dialect.sql(query), args...)
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

const (
	// maxStatement bounds the texts of one statement, in bytes, far below the least
	// max_allowed_packet that servers have.
	maxStatement = 256 << 10
	// maxRows bounds its rows. More are no faster: the driver of SQLite looks for each
	// parameter among all.
	maxRows = 64
)

// insert adds rows of arguments, many with each statement.
func (t tx) insert(ctx context.Context, into, end string, rows [][]any) error {
	query := func(n int) string {
		one := "(?" + strings.Repeat(",?", len(rows[0])-1) + ")"
		return t.dialect.sql("INSERT INTO " + into + " VALUES " + one + strings.Repeat(","+one, n-1) + " " + end)
	}
	var full *sql.Stmt // of maxRows rows
	for len(rows) > 0 {
		var args []any
		n, bytes := 0, 0
		for ; n < min(len(rows), maxRows) && (n == 0 || bytes+size(rows[n]) <= maxStatement); n++ {
			args, bytes = append(args, rows[n]...), bytes+size(rows[n])
		}
		var err error
		switch {
		case n < maxRows || full == nil && len(rows) < 2*maxRows:
			_, err = t.tx.ExecContext(ctx, query(n), args...)
		case full == nil: // reading it costs as much as what it does
			if full, err = t.tx.PrepareContext(ctx, query(n)); err != nil {
				return err
			}
			defer full.Close() //nolint:errcheck // with its transaction, at the latest
			fallthrough
		default:
			_, err = full.ExecContext(ctx, args...)
		}
		if err != nil {
			return err
		}
		rows = rows[n:]
	}
	return nil
}

// size is that of the texts among arguments, in bytes.
func size(args []any) (bytes int) {
	for _, arg := range args {
		switch v := arg.(type) {
		case string:
			bytes += len(v)
		case []byte:
			bytes += len(v)
		}
	}
	return bytes
}
