package store

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
)

// A server that became a standby keeps its connections, and refuses what is
// written over them for ever.
func TestErrorsOfAServerThatTakesNoWrites(t *testing.T) {
	for name, got := range map[string]errorKind{
		"a standby of PostgreSQL":       postgresKind(&pgconn.PgError{Code: "25006"}),
		"MySQL with --read-only":        mysqlKind(&mysql.MySQLError{Number: 1290}),
		"MySQL, transactions read only": mysqlKind(&mysql.MySQLError{Number: 1792}),
		"Aurora's reader":               mysqlKind(&mysql.MySQLError{Number: 1836}),
	} {
		if got != lost {
			t.Errorf("%s: kind %d, want %d", name, got, lost)
		}
	}
}

func TestTheWriterGivesUpAConnectionThatCannotWrite(t *testing.T) {
	s := openTest(t, filepath.Join(t.TempDir(), "points.db"))
	broken := errors.New("the engine became a standby")
	on := func(err error) *sqlConn {
		var conn *sqlConn
		got := s.do(request{ctx: t.Context(), act: func(_ context.Context, c *sqlConn) error {
			conn = c
			return err
		}})
		if !errors.Is(got, err) {
			t.Fatalf("error %v, want %v", got, err)
		}
		return conn
	}
	first := on(nil)
	if on(broken) != first {
		t.Error("a connection that works was given up")
	}
	if on(nil) == first {
		t.Error("the connection that led to it is used again")
	}
	if err := s.Append(t.Context(), testTrial, testAttempt, testPoints(0, 10)); err != nil {
		t.Error(err)
	}
}
