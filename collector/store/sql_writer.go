package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/vernier-ml/vernier/collector"
)

// report is what one call of Append, Finish or Note writes.
type report struct {
	trial   collector.TrialID
	attempt collector.Attempt
	points  []collector.Point
	final   bool
	noted   bool // the note is written, though it is not final
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

// report returns after the report was committed. Once that has begun, ctx no longer
// matters, so that the answer says what really happened.
func (s *sqlStore) report(ctx context.Context, r report) error {
	q := request{ctx, r, make(chan error, 1)}
	select {
	case s.requests <- q:
		return <-q.done
	case <-ctx.Done():
		return ctx.Err()
	}
}

// loop commits the reports that arrive together in one transaction, since a commit
// costs more than the rows of a report.
func (s *sqlStore) loop(ctx context.Context) {
	defer close(s.stopped)
	for first := range s.requests {
		group, points := []request{first}, len(first.points)
		for more := true; more && len(group) < maxGroup && points < maxGroupPoints; {
			select {
			case r, open := <-s.requests:
				if more = open; open {
					group, points = append(group, r), points+len(r.points)
				}
			default:
				more = false
			}
		}
		s.commit(ctx, group)
	}
}

// commit answers a group of requests. When the engine refuses the reports together,
// each is tried alone, so that only those fail that are to blame.
func (s *sqlStore) commit(ctx context.Context, group []request) {
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
	err := s.store(ctx, reports)
	alone := err != nil && len(alive) > 1 && s.dialect.kind(err) == refused
	for i, r := range alive {
		if alone {
			err = s.store(ctx, reports[i:i+1])
		}
		r.done <- err
	}
}

func (s *sqlStore) store(ctx context.Context, reports []report) error {
	ctx, cancel := context.WithTimeout(ctx, groupTime)
	defer cancel()
	return s.transact(ctx, func(t tx) error { return t.store(ctx, reports, s.now()) })
}

// transact runs act in a transaction, again where another one was in the way.
func (s *sqlStore) transact(ctx context.Context, act func(tx) error) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	for try := 1; ; try++ {
		err := s.once(ctx, act)
		if err == nil {
			return nil
		}
		s.rows.forget() // what was learned in the transaction is not true any more
		kind := s.dialect.kind(err)
		if kind == lost { // after a failover the address may lead to another server
			s.writes.SetMaxIdleConns(0)
			s.writes.SetMaxIdleConns(1)
		}
		if try == tries || kind != conflict {
			return err
		}
	}
}

func (s *sqlStore) once(ctx context.Context, act func(tx) error) error {
	begun, err := s.writes.BeginTx(ctx, &s.dialect.write)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	t := tx{dialect: s.dialect, tx: begun, rows: &s.rows}
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
