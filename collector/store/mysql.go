package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/url"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/vernier-ml/vernier/collector"
)

// MySQL from release 8.0 on, and MariaDB from 10.5 on.
func mysqlDialect() *dialect {
	return &dialect{
		name: "mysql",
		// The default would lock the gaps between rows, against other managers.
		write:      sql.TxOptions{Isolation: sql.LevelReadCommitted},
		read:       sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true},
		known:      "ON DUPLICATE KEY UPDATE id = id",
		knownPoint: "ON DUPLICATE KEY UPDATE source = source",
		ack:        "ON DUPLICATE KEY UPDATE acked = greatest(acked, VALUES(acked)), points = points + VALUES(points), text_bytes = text_bytes + VALUES(text_bytes)",
		lockRows:   " FOR UPDATE",
		text:       func(s string) any { return []byte(s) },
		columns:    "source, seq, metric, step, time, value, special, text",
		encode:     mysqlValue,
		special:    "special",
		integer:    "SIGNED",
		exclusive:  []string{"DO GET_LOCK(CONCAT('vernier.', MD5(DATABASE())), 3600)", createVersions},
		release:    "DO RELEASE_LOCK(CONCAT('vernier.', MD5(DATABASE())))",
		applied:    func(err error) bool { return mysqlNumber(err) == 1060 }, // duplicate column
		kind:       mysqlKind,
		version:    "SELECT CONCAT(IF(version() LIKE '%MariaDB%', 'MariaDB ', 'MySQL '), version())",
		before:     []string{"ANALYZE TABLE trial, metric, attempt, source, point"},
		size: `SELECT CAST(coalesce(sum(data_length + index_length), 0) AS SIGNED) FROM information_schema.tables
			WHERE table_schema = DATABASE() AND table_name IN ('trial', 'metric', 'attempt', 'source', 'point')`,
	}
}

func openMySQL(ctx context.Context, rest string) (collector.Store, error) {
	u, password, err := parseURL("mysql", rest)
	if err != nil {
		return nil, err
	}
	config, err := mysqlConfig(u, password)
	if err != nil {
		return nil, hide(err, password)
	}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, hide(err, password)
	}
	return openSQL(ctx, mysqlDialect(), pools{
		writes: serverPool(sql.OpenDB(connector), 1), reads: serverPool(sql.OpenDB(connector), sqlReaders), secret: password,
	})
}

// mysqlConfig understands the parameters of go-sql-driver/mysql, of which tls is
// the one that matters, and socket, the path of a unix socket in place of a host.
func mysqlConfig(u *url.URL, password string) (*mysql.Config, error) {
	query := u.Query()
	socket := query.Get("socket")
	query.Del("socket")
	config, err := mysql.ParseDSN("/?" + query.Encode())
	if err != nil {
		return nil, fmt.Errorf("the parameters of the URL: %w", err)
	}
	config.DBName = strings.TrimPrefix(u.Path, "/")
	if config.DBName == "" {
		return nil, errors.New("the URL names no database: write mysql://USER:PASSWORD@HOST:PORT/DATABASE")
	}
	config.User, config.Passwd = u.User.Username(), password
	config.Net, config.Addr = "tcp", net.JoinHostPort(u.Hostname(), portOr(u, "3306"))
	if socket != "" {
		config.Net, config.Addr = "unix", socket
	}
	if config.Timeout == 0 {
		config.Timeout = serverDial
	}
	config.MaxAllowedPacket = 0     // ask the server
	config.InterpolateParams = true // one round trip for each statement
	config.Logger = quiet{}
	return config, nil
}

// quiet drops what the driver would log: it returns the same as errors.
type quiet struct{}

func (quiet) Print(v ...any) { slog.Debug("the driver of MySQL says", "message", fmt.Sprint(v...)) }

func portOr(u *url.URL, port string) string {
	if p := u.Port(); p != "" {
		return p
	}
	return port
}

// mysqlValue: DOUBLE has no NaN and no infinities, and whether it keeps the sign of
// zero depends on who looks.
func mysqlValue(v float64) []any {
	switch {
	case math.IsNaN(v):
		return []any{nil, nil}
	case math.IsInf(v, 1):
		return []any{nil, 1}
	case math.IsInf(v, -1):
		return []any{nil, -1}
	case v == 0 && math.Signbit(v):
		return []any{0.0, 0}
	}
	return []any{v, nil}
}

func mysqlNumber(err error) uint16 {
	var e *mysql.MySQLError
	if !errors.As(err, &e) {
		return 0
	}
	return e.Number
}

func mysqlKind(err error) errorKind {
	switch mysqlNumber(err) {
	case 1205, 1213, 1020, 1451, 1452: // lock wait, deadlock, record has changed, foreign key
		return conflict
	case 0, 1021, 1037, 1040, 1041, 1053, 1077, 1078, 1079, 1105, 1114, 1158, 1159, 1160, 1161, 1184, 1290, 1792, 1836, 3024: // resources, shutdown, network, read-only
		return lost
	}
	return refused
}
