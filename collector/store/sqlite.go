package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite", in pure Go

	"github.com/vernier-ml/vernier/collector"
)

// sqlite keeps points in one file, in write-ahead mode: one connection writes,
// a few read, and neither waits for the other.
//
// A write that was acknowledged survives the death of the process at any line.
// It survives the loss of power only from the last checkpoint on (synchronous =
// NORMAL: the file stays sound, the newest transactions may be missing). Whoever
// reports then has been told that they are stored; the trial's summary in the
// termination message remains.
//
// Space of deleted trials is used again; the file does not shrink.
type sqlite struct {
	writer *writer
	reads  *sql.DB

	mu     sync.RWMutex // held for writing by Close only
	closed bool
}

var _ collector.Store = (*sqlite)(nil)

const (
	// How long a statement waits for another process that holds the file.
	sqliteBusy = 5 * time.Second
	// Readers at the same time. Each may cache sqliteReadCacheKiB.
	sqliteReaders       = 4
	sqliteReadCacheKiB  = 1024
	sqliteWriteCacheKiB = 4096
)

// openSQLite accepts "PATH", "//PATH" and "///ABSOLUTE/PATH".
func openSQLite(ctx context.Context, rest string) (collector.Store, error) {
	path := strings.TrimPrefix(rest, "//")
	if path == "" {
		return nil, errors.New("no file is named; write sqlite:PATH")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if err := createPrivate(path); err != nil {
		return nil, err
	}
	w, err := openWriter(ctx, path)
	if err != nil {
		return nil, err
	}
	reads, err := sql.Open("sqlite", dsn(path, sqliteReadCacheKiB, "query_only(1)"))
	if err != nil {
		return nil, errors.Join(err, w.close())
	}
	reads.SetMaxOpenConns(sqliteReaders)
	reads.SetMaxIdleConns(2)
	reads.SetConnMaxIdleTime(time.Minute)
	return &sqlite{writer: w, reads: reads}, nil
}

// createPrivate makes the file readable by its owner only; SQLite gives its
// side files the same mode.
func createPrivate(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

func dsn(path string, cacheKiB int, pragmas ...string) string {
	pragmas = append([]string{
		fmt.Sprintf("busy_timeout(%d)", sqliteBusy.Milliseconds()),
		fmt.Sprintf("cache_size(-%d)", cacheKiB),
		"synchronous(NORMAL)",
		"temp_store(MEMORY)",
	}, pragmas...)
	u := url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: url.Values{"_pragma": pragmas}.Encode()}
	return u.String()
}

func (s *sqlite) Append(ctx context.Context, trial collector.TrialID, attempt collector.Attempt, points []collector.Point) error {
	if err := check(trial, attempt, points); err != nil {
		return err
	}
	return s.write(ctx, func(ctx context.Context, c *sqliteConn) error {
		return c.append(ctx, trial, attempt, points)
	})
}

func (s *sqlite) Finish(ctx context.Context, trial collector.TrialID, attempt collector.Attempt, note string) error {
	if err := check(trial, attempt, nil); err != nil {
		return err
	}
	return s.write(ctx, func(ctx context.Context, c *sqliteConn) error {
		return c.finish(ctx, trial, attempt, note)
	})
}

func (s *sqlite) Delete(ctx context.Context, trialUID string) error {
	return s.write(ctx, func(ctx context.Context, c *sqliteConn) error {
		return c.delete(ctx, trialUID)
	})
}

func (s *sqlite) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	return errors.Join(s.reads.Close(), s.writer.close())
}

func (s *sqlite) write(ctx context.Context, act action) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return ErrClosed
	}
	return s.writer.do(ctx, act)
}

// read runs act in a transaction that sees one state of the store.
func (s *sqlite) read(ctx context.Context, act func(tx *sql.Tx) error) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return ErrClosed
	}
	tx, err := s.reads.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // a transaction that wrote nothing
	return act(tx)
}
