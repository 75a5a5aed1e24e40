package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/vernier-ml/vernier/collector"
)

// PostgreSQL, from release 12 on.
func postgresDialect() *dialect {
	return &dialect{
		name:       "postgres",
		numbered:   true,
		write:      sql.TxOptions{Isolation: sql.LevelReadCommitted},
		read:       sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true},
		known:      "ON CONFLICT DO NOTHING",
		knownPoint: "ON CONFLICT DO NOTHING",
		ack:        "ON CONFLICT (attempt, name) DO UPDATE SET acked = greatest(source.acked, excluded.acked), points = source.points + excluded.points, text_bytes = source.text_bytes + excluded.text_bytes",
		lockRows:   " FOR UPDATE",
		text:       func(s string) any { return []byte(s) },
		columns:    "source, seq, metric, step, time, value, text",
		special:    "NULL::bigint",
		integer:    "bigint",
		encode:     func(v float64) []any { return []any{v} },
		// The number is any that no other program uses; it counts within a database.
		exclusive: []string{"SELECT pg_advisory_xact_lock(7305804385535291762)", createVersions},
		kind:      postgresKind,
		version:   "SELECT 'PostgreSQL ' || current_setting('server_version')",
		size: `SELECT sum(pg_total_relation_size(name::regclass))::bigint
			FROM unnest(ARRAY['trial', 'metric', 'attempt', 'source', 'point']) AS name`,
	}
}

const (
	serverDial = 5 * time.Second
	serverIdle = 5 * time.Minute
)

func openPostgres(ctx context.Context, rest string) (collector.Store, error) {
	u, password, err := parseURL("postgres", rest)
	if err != nil {
		return nil, err
	}
	config, err := pgx.ParseConfig(u.String())
	if err != nil {
		return nil, hide(fmt.Errorf("the URL cannot be read: %w", errors.Unwrap(err)), password)
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = serverDial
	}
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "vernier"
	}
	return openSQL(ctx, postgresDialect(), pools{
		writes: serverPool(stdlib.OpenDB(*config), 1), reads: serverPool(stdlib.OpenDB(*config), sqlReaders), secret: config.Password,
	})
}

func serverPool(db *sql.DB, connections int) *sql.DB {
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	db.SetConnMaxIdleTime(serverIdle)
	return db
}

func postgresKind(err error) errorKind {
	var e *pgconn.PgError
	if !errors.As(err, &e) || len(e.Code) != 5 {
		return lost
	}
	switch e.Code {
	case "40001", "40P01", "23503": // serialization failure, deadlock, foreign key
		return conflict
	case "25006": // read-only: a standby
		return lost
	}
	switch e.Code[:2] {
	case "08", "53", "57", "58": // connection, resources, shutdown, system
		return lost
	}
	return refused
}
