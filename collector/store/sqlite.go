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
	"sync/atomic"
	"time"

	sqlitedriver "modernc.org/sqlite" // the driver "sqlite", in pure Go
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/vernier-ml/vernier/collector"
)

// SQLite keeps points in one file, in write-ahead mode: readers and the writer do
// not wait for each other.
//
// A write that was acknowledged survives the death of the process at any line, and
// the loss of power (synchronous = FULL: each commit waits for the disk; reports that
// arrive together share one).
//
// Space of deleted trials is used again; the file does not shrink.
func sqliteDialect() *dialect {
	return &dialect{
		name:        "sqlite",
		read:        sql.TxOptions{ReadOnly: true},
		known:       "ON CONFLICT DO NOTHING",
		knownPoint:  "ON CONFLICT DO NOTHING",
		ack:         "ON CONFLICT (attempt, name) DO UPDATE SET acked = max(acked, excluded.acked), points = points + excluded.points, text_bytes = text_bytes + excluded.text_bytes",
		text:        func(s string) any { return s },
		columns:     "source, seq, metric, step, time, value, text",
		encode:      plain, // there is no NaN
		special:     "NULL",
		integer:     "INTEGER",
		exclusive:   []string{createVersions, "DELETE FROM migration WHERE version < 0"}, // which takes the lock of the file
		dataVersion: "PRAGMA data_version",                                               // foreign keys of point would cost a search for each row
		kind:        sqliteKind,
		version:     "SELECT 'SQLite ' || sqlite_version()",
		size:        "SELECT (page_count - freelist_count) * page_size FROM pragma_page_count(), pragma_freelist_count(), pragma_page_size()",
	}
}

const (
	// How long a statement waits for another process that holds the file.
	sqliteBusy = 5 * time.Second
	// How long opening does, and how often it tries: some of SQLite's ways to say
	// that the file is held do not wait at all. Who closes a file last folds its
	// log into it, and holds it until all is on the disk.
	sqliteOpening       = time.Minute
	sqliteOpeningPause  = 50 * time.Millisecond
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
	return untilFree(ctx, sqliteOpening, func() (collector.Store, error) { return attachSQLite(ctx, path, sqliteBusy) })
}

// untilFree opens a file again while another process holds it, for as long as
// patience lasts.
func untilFree(ctx context.Context, patience time.Duration, open func() (collector.Store, error)) (collector.Store, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	again := time.NewTicker(sqliteOpeningPause)
	defer again.Stop()
	for {
		s, err := open()
		var e *sqlitedriver.Error
		if !errors.As(err, &e) || e.Code()&0xff != sqlite3.SQLITE_BUSY {
			return s, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("another process holds the file: %w", err)
		case <-again.C:
		}
	}
}

// attachSQLite opens a file that is there. Its statements wait for busy when
// another process holds it.
func attachSQLite(ctx context.Context, path string, busy time.Duration) (collector.Store, error) {
	// A transaction that reads first and then writes fails at once when another
	// process wrote between; one that begins with the lock waits for it.
	write, err := sql.Open("sqlite", dsn(path, busy, sqliteWriteCacheKiB, "journal_mode(WAL)", "journal_size_limit(16777216)")+"&_txlock=immediate")
	if err != nil {
		return nil, err
	}
	write.SetMaxOpenConns(1)
	read, err := sql.Open("sqlite", dsn(path, busy, sqliteReadCacheKiB, "query_only(1)"))
	if err != nil {
		return nil, errors.Join(err, write.Close())
	}
	read.SetMaxOpenConns(sqlReaders)
	read.SetMaxIdleConns(2)
	read.SetConnMaxIdleTime(time.Minute)
	var mode string
	if err := write.QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&mode); err != nil || mode != "wal" {
		if err == nil {
			err = fmt.Errorf("the journal mode is %q, not \"wal\": put the file on a local disk", mode)
		}
		return nil, errors.Join(err, read.Close(), write.Close())
	}
	return openSQL(ctx, sqliteDialect(), pools{writes: write, reads: read})
}

// openMemory opens a store that ends with it: a database of SQLite in memory, with
// one connection that takes turns. Another one that is never used keeps it alive when
// that one is given up.
func openMemory(ctx context.Context, rest string) (collector.Store, error) {
	if rest != "" {
		return nil, fmt.Errorf("nothing may follow %q", "memory:")
	}
	db, err := sql.Open("sqlite", fmt.Sprintf("file:/%d?vfs=memdb", memories.Add(1)))
	if err != nil {
		return nil, err
	}
	keep, err := db.Conn(ctx)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	db.SetMaxOpenConns(2) // keep and one more
	return openSQL(ctx, sqliteDialect(), pools{writes: db, reads: db, keep: keep})
}

// memories counts the databases in memory, which need names.
var memories atomic.Int64

// createPrivate makes the file readable by its owner only; SQLite gives its
// side files the same mode.
func createPrivate(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

func dsn(path string, busy time.Duration, cacheKiB int, pragmas ...string) string {
	pragmas = append([]string{
		fmt.Sprintf("busy_timeout(%d)", busy.Milliseconds()),
		fmt.Sprintf("cache_size(-%d)", cacheKiB),
		"synchronous(FULL)",
		"temp_store(MEMORY)",
	}, pragmas...)
	u := url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: url.Values{"_pragma": pragmas}.Encode()}
	return u.String()
}

func sqliteKind(err error) errorKind {
	var e *sqlitedriver.Error
	if !errors.As(err, &e) {
		return lost
	}
	switch e.Code() & 0xff { // the rest says more about the same
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_INTERRUPT,
		sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_NOTADB:
		return lost // the file, not what is written: each tried alone would wait as long again
	}
	return refused
}
