package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/vernier-ml/vernier/collector"
)

// PostgreSQL, from release 12 on. Rows go in as arrays, which have no limit but
// memory, where parameters end at 65,535.
func postgresDialect() *dialect {
	return &dialect{
		name:     "postgres",
		numbered: true,
		begin:    "BEGIN ISOLATION LEVEL READ COMMITTED",
		read:     sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true},
		known:    "ON CONFLICT DO NOTHING",
		ack:      "ON CONFLICT (attempt, name) DO UPDATE SET acked = greatest(source.acked, excluded.acked)",
		lockRows: " FOR UPDATE",
		text:     func(s string) any { return []byte(s) },
		columns:  "source, seq, metric, step, time, value, text",
		special:  "NULL::bigint",
		points:   postgresPoints,
		// The number is any that nobody else uses; it counts within a database.
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
	s, err := openSQL(ctx, postgresDialect(), pools{
		write: serverPool(stdlib.OpenDB(*config), 1), read: serverPool(stdlib.OpenDB(*config), sqlReaders), secret: config.Password,
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

func serverPool(db *sql.DB, connections int) *sql.DB {
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	db.SetConnMaxIdleTime(serverIdle)
	return db
}

// postgresRows bounds the rows of one statement, and so its memory.
const postgresRows = 8192

func postgresPoints(ctx context.Context, c *sqlConn, rows []row) error {
	for len(rows) > 0 {
		n, bytes := 0, 0
		for n < len(rows) && n < postgresRows && bytes < 8*maxStatement {
			bytes += len(rows[n].Text)
			n++
		}
		if err := postgresInsert(ctx, c, rows[:n]); err != nil {
			return err
		}
		rows = rows[n:]
	}
	return nil
}

func postgresInsert(ctx context.Context, c *sqlConn, rows []row) error {
	source, seq := make([]int64, len(rows)), make([]int64, len(rows))
	metric, step := make([]int64, len(rows)), make([]int64, len(rows))
	nanos, value := make([]pgtype.Int8, len(rows)), make([]float64, len(rows))
	text := make([][]byte, len(rows))
	for i := range rows {
		r := &rows[i]
		source[i], seq[i], metric[i], step[i], value[i] = r.source, r.Seq, r.metric, r.Step, r.Value
		nanos[i].Int64, nanos[i].Valid = storable(r.Time)
		if r.Text != "" {
			text[i] = []byte(r.Text)
		}
		if math.IsNaN(r.Value) {
			value[i] = math.NaN() // one of the many
		}
	}
	return c.prepared(ctx, `INSERT INTO point (source, seq, metric, step, time, value, text)
		SELECT * FROM unnest(?::bigint[], ?::bigint[], ?::bigint[], ?::bigint[], ?::bigint[], ?::double precision[], ?::bytea[])
		ON CONFLICT DO NOTHING`, source, seq, metric, step, nanos, value, text)
}

func postgresKind(err error) errorKind {
	var e *pgconn.PgError
	if !errors.As(err, &e) || len(e.Code) != 5 {
		return lost
	}
	switch e.Code {
	case "40001", "40P01": // serialization failure, deadlock
		return conflict
	case "23503": // foreign key
		return orphan
	case "25006": // read-only: a standby
		return lost
	}
	switch e.Code[:2] {
	case "08", "53", "57", "58": // connection, resources, shutdown, system
		return lost
	}
	return refused
}
