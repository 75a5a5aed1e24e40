package store

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
	"strings"
	"time"
)

// Files are applied in order of name, each once; the version of a schema is the
// number of those that it has. A released one is never edited: add another.
// A statement ends with a semicolon at the end of a line.
//
//go:embed migrations
var migrationFiles embed.FS

// migrations returns the texts of an engine's migrations, in order.
func migrations(engine string) ([]string, error) {
	names, err := fs.Glob(migrationFiles, "migrations/"+engine+"/*.sql")
	if err != nil {
		return nil, err
	}
	var texts []string
	for _, name := range names { // Glob sorts
		text, err := migrationFiles.ReadFile(name)
		if err != nil {
			return nil, err
		}
		texts = append(texts, string(text))
	}
	return texts, nil
}

// createVersions makes the table that tells which migrations a schema has.
const createVersions = `CREATE TABLE IF NOT EXISTS migration (
	version BIGINT NOT NULL PRIMARY KEY, applied BIGINT NOT NULL)`

// migrate brings the schema up to date, and returns its version. Processes that
// start at once take turns. In engines whose schema changes are part of
// transactions, all of it happens or nothing.
func (d *dialect) migrate(ctx context.Context, conn *sql.Conn, now time.Time) (version int, err error) {
	all, err := migrations(d.name)
	if err != nil {
		return 0, err
	}
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer tx.Rollback() //nolint:errcheck // after Commit it does nothing
	for _, statement := range d.exclusive {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return 0, err
		}
	}
	if err := tx.QueryRowContext(ctx, `SELECT coalesce(max(version), 0) FROM migration`).Scan(&version); err != nil {
		return 0, err
	}
	if version > len(all) {
		return 0, fmt.Errorf("it has schema version %d and this program knows %d: it was written by a newer release; use that one",
			version, len(all))
	}
	for ; version < len(all); version++ {
		if err := d.apply(ctx, tx, all[version], version+1, now); err != nil {
			return 0, fmt.Errorf("migration %d: %w", version+1, err)
		}
	}
	if err := tx.Commit(); err != nil || d.release == "" {
		return version, err
	}
	_, err = conn.ExecContext(ctx, d.release)
	return version, err
}

func (d *dialect) apply(ctx context.Context, tx *sql.Tx, text string, version int, now time.Time) error {
	for _, statement := range statements(text) {
		if _, err := tx.ExecContext(ctx, statement); err != nil && (d.applied == nil || !d.applied(err)) {
			return err
		}
	}
	_, err := tx.ExecContext(ctx, d.sql(`INSERT INTO migration (version, applied) VALUES (?, ?)`), version, now.Unix())
	return err
}

// statements splits a migration. Comments go.
func statements(text string) []string {
	var all []string
	var b strings.Builder
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "--")
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		b.WriteString(strings.TrimSuffix(line, ";"))
		b.WriteByte('\n')
		if strings.HasSuffix(line, ";") {
			all = append(all, b.String())
			b.Reset()
		}
	}
	return all
}
