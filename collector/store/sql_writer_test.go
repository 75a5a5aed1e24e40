package store

import (
	"cmp"
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
	// A temporary table is of one connection.
	on := func(query string, fail error) error {
		return s.transact(t.Context(), func(tx tx) error {
			_, err := tx.exec(t.Context(), query)
			return cmp.Or(err, fail)
		})
	}
	if err := on("CREATE TEMP TABLE mark (x)", nil); err != nil {
		t.Fatal(err)
	}
	if err := on("SELECT * FROM mark", nil); err != nil {
		t.Errorf("a connection that works was given up: %v", err)
	}
	standby := errors.New("the engine became a standby")
	if err := on("SELECT 1", standby); !errors.Is(err, standby) {
		t.Fatalf("error %v", err)
	}
	if err := on("SELECT * FROM mark", nil); err == nil {
		t.Error("the connection that led to it is used again")
	}
	if err := s.Append(t.Context(), testTrial, testAttempt, testPoints(0, 10)); err != nil {
		t.Error(err)
	}
}
