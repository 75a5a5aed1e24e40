package store

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vernier-ml/vernier/collector"
)

// hold takes the lock of a file, as who folds its log into it does.
func hold(t *testing.T, path string) (release func()) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_txlock=exclusive")
	if err != nil {
		t.Fatal(err)
	}
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	release = func() {
		if err := errors.Join(tx.Rollback(), db.Close()); err != nil {
			t.Error(err)
		}
	}
	return release
}

func TestAFileThatIsHeldIsOpenedAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "points.db")
	if err := openTest(t, path).Close(); err != nil {
		t.Fatal(err)
	}
	release := hold(t, path)
	tries := 0
	s, err := untilFree(t.Context(), time.Minute, func() (collector.Store, error) {
		if tries++; tries == 3 {
			release()
		}
		return attachSQLite(t.Context(), path, time.Millisecond)
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil || tries != 3 {
		t.Errorf("opened at try %d, %v", tries, err)
	}
}

func TestOpeningEndsAtLast(t *testing.T) {
	path := filepath.Join(t.TempDir(), "points.db")
	if err := openTest(t, path).Close(); err != nil {
		t.Fatal(err)
	}
	release := hold(t, path)
	defer release()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	held := func() (collector.Store, error) { return attachSQLite(t.Context(), path, time.Millisecond) }
	tests := map[string]struct {
		ctx      context.Context
		patience time.Duration
		open     func() (collector.Store, error)
		want     string
	}{
		"with its patience":  {t.Context(), 0, held, "another process holds the file"},
		"with the context":   {ended, time.Minute, held, "another process holds the file"},
		"with another error": {t.Context(), time.Minute, func() (collector.Store, error) { return nil, errors.New("no such disk") }, "no such disk"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s, err := untilFree(tc.ctx, tc.patience, tc.open)
			if err == nil || s != nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, %v", s, err)
			}
		})
	}
}
