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

// report is what one call of Append or Finish writes.
type report struct {
	trial   collector.TrialID
	attempt collector.Attempt
	points  []collector.Point
	final   bool
	note    string
}

// request is a report that waits for its transaction.
type request struct {
	ctx context.Context //nolint:containedctx // travels with the request to the writer, as in net/http
	report
	done chan error
}

const (
	// maxGroup and maxGroupPoints bound the reports that share a transaction. While
	// one transaction commits, those that arrive queue up and form the next: no
	// report waits for company.
	maxGroup       = 256
	maxGroupPoints = 16384
	// groupTime bounds a transaction; an engine that does not answer is an error.
	groupTime = 30 * time.Second
	// tries is how often a transaction is begun that others are in the way of.
	tries = 5
)

// writer commits the reports that arrive together in one transaction, since a
// commit costs more than the rows of a report.
type writer struct {
	dialect  *dialect
	db       *sql.DB // one connection
	now      func() time.Time
	requests chan request
	stopped  chan struct{}

	mu   sync.Mutex // held during a transaction
	rows knownRows
}

func startWriter(ctx context.Context, d *dialect, db *sql.DB) *writer {
	w := &writer{dialect: d, db: db, now: time.Now, requests: make(chan request, maxGroup), stopped: make(chan struct{})}
	w.rows.forget()
	go w.loop(context.WithoutCancel(ctx))
	return w
}

// write returns after the report was committed. Once that has begun, ctx no longer
// matters, so that the answer says what really happened.
func (w *writer) write(ctx context.Context, r report) error {
	q := request{ctx, r, make(chan error, 1)}
	select {
	case w.requests <- q:
		return <-q.done
	case <-ctx.Done():
		return ctx.Err()
	}
}

// stop returns once everything is committed. No write may follow.
func (w *writer) stop() {
	close(w.requests)
	<-w.stopped
}

func (w *writer) loop(ctx context.Context) {
	defer close(w.stopped)
	for first := range w.requests {
		group, points := []request{first}, len(first.points)
		for more := true; more && len(group) < maxGroup && points < maxGroupPoints; {
			select {
			case r, open := <-w.requests:
				if more = open; open {
					group, points = append(group, r), points+len(r.points)
				}
			default:
				more = false
			}
		}
		w.commit(ctx, group)
	}
}

// commit answers a group of requests. When the engine refuses the reports together,
// each is tried alone, so that only those fail that are to blame.
func (w *writer) commit(ctx context.Context, group []request) {
	var alive []request
	var reports []report
	for _, r := range group {
		if err := r.ctx.Err(); err != nil {
			r.done <- err
			continue
		}
		alive, reports = append(alive, r), append(reports, r.report)
	}
	if len(alive) == 0 {
		return
	}
	err := w.store(ctx, reports)
	alone := err != nil && len(alive) > 1 && w.dialect.kind(err) == refused
	for i, r := range alive {
		if alone {
			err = w.store(ctx, reports[i:i+1])
		}
		r.done <- err
	}
}

func (w *writer) store(ctx context.Context, reports []report) error {
	ctx, cancel := context.WithTimeout(ctx, groupTime)
	defer cancel()
	return w.transact(ctx, func(t tx) error { return t.store(ctx, reports, w.now()) })
}

// transact runs act in a transaction, again where another one was in the way.
func (w *writer) transact(ctx context.Context, act func(tx) error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for try := 1; ; try++ {
		err := w.once(ctx, act)
		if err == nil {
			return nil
		}
		w.rows.forget() // what was learned in the transaction is not true any more
		kind := w.dialect.kind(err)
		if kind == lost { // after a failover the address may lead to another server
			w.db.SetMaxIdleConns(0)
			w.db.SetMaxIdleConns(1)
		}
		if try == tries || kind != conflict {
			return err
		}
	}
}

func (w *writer) once(ctx context.Context, act func(tx) error) error {
	begun, err := w.db.BeginTx(ctx, &w.dialect.write)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	t := tx{dialect: w.dialect, tx: begun, rows: &w.rows}
	if err := t.checkVersion(ctx); err != nil {
		return errors.Join(err, begun.Rollback())
	}
	if err := act(t); err != nil {
		return errors.Join(err, begun.Rollback())
	}
	if err := begun.Commit(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

// checkVersion forgets the rows that are known when another process wrote, in an
// engine that holds no foreign keys.
func (t tx) checkVersion(ctx context.Context) error {
	if t.dialect.dataVersion == "" {
		return nil
	}
	var version int64
	err := t.row(ctx, t.dialect.dataVersion).Scan(&version)
	if version != t.rows.version {
		t.rows.forget()
		t.rows.version = version
	}
	return err
}
