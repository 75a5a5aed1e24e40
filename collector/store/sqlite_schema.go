package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"
)

// migrations are applied in order, each once; the version of a file is the
// number of those that it has. Never edit one that was released: add another.
//
// Names are kept once and points refer to them by number, so a point costs about
// 40 bytes. The primary key of point is the identity of a point, and lies in the
// order in which one trial's curves are read.
var migrations = []string{
	`CREATE TABLE trial (
		id        INTEGER PRIMARY KEY,
		uid       TEXT NOT NULL UNIQUE,
		namespace TEXT NOT NULL,
		name      TEXT NOT NULL
	);
	CREATE TABLE metric (
		id    INTEGER PRIMARY KEY,
		trial INTEGER NOT NULL REFERENCES trial,
		name  TEXT NOT NULL,
		UNIQUE (trial, name)
	);
	CREATE TABLE attempt (
		id      INTEGER PRIMARY KEY,
		trial   INTEGER NOT NULL REFERENCES trial,
		name    TEXT NOT NULL,
		started INTEGER,           -- Unix nanoseconds; NULL: not known
		final   INTEGER NOT NULL DEFAULT 0,
		note    TEXT NOT NULL DEFAULT '',
		UNIQUE (trial, name)
	);
	CREATE TABLE source (
		id      INTEGER PRIMARY KEY,
		attempt INTEGER NOT NULL REFERENCES attempt,
		name    TEXT NOT NULL,
		acked   INTEGER NOT NULL,  -- largest seq stored, plus one
		UNIQUE (attempt, name)
	);
	CREATE TABLE point (
		source INTEGER NOT NULL REFERENCES source,
		seq    INTEGER NOT NULL,
		metric INTEGER NOT NULL REFERENCES metric,
		step   INTEGER NOT NULL,
		time   INTEGER,            -- Unix nanoseconds; NULL: not known
		value,                     -- NULL: NaN, which SQLite does not have; no type, because REAL loses the sign of -0
		text   TEXT,               -- as written, when not the shortest form
		PRIMARY KEY (source, seq)
	) WITHOUT ROWID;`,
}

func migrate(ctx context.Context, conn *sql.Conn) error {
	if _, err := conn.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS migration (
		version INTEGER PRIMARY KEY, applied INTEGER NOT NULL)`); err != nil {
		return err
	}
	// The lock first, so that two processes that open a new file at once do not
	// both build the schema.
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after Commit it does nothing
	if _, err := tx.ExecContext(ctx, `DELETE FROM migration WHERE version < 0`); err != nil {
		return err
	}
	var version int
	if err := tx.QueryRowContext(ctx, `SELECT coalesce(max(version), 0) FROM migration`).Scan(&version); err != nil {
		return err
	}
	if version > len(migrations) {
		return fmt.Errorf("the file has schema version %d and this program knows %d: it was written by a newer release; use that one",
			version, len(migrations))
	}
	for i, statements := range migrations[version:] {
		if _, err := tx.ExecContext(ctx, statements); err != nil {
			return fmt.Errorf("migration %d: %w", version+i+1, err)
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO migration VALUES (?, ?)`,
			version+i+1, time.Now().Unix()); err != nil {
			return err
		}
	}
	return tx.Commit()
}
