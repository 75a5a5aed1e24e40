package store

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
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
	s, err := untilFree(t.Context(), func() (collector.Store, error) {
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
	tests := map[string]struct {
		ctx  context.Context
		open func(context.Context) (collector.Store, error)
		want int
	}{
		"when it stays held": {t.Context(), func(ctx context.Context) (collector.Store, error) { return attachSQLite(ctx, path, time.Millisecond) }, sqliteOpenings},
		"with the context": {ended, func(context.Context) (collector.Store, error) {
			return attachSQLite(t.Context(), path, time.Millisecond)
		}, 1},
		"with another error": {t.Context(), func(context.Context) (collector.Store, error) { return nil, errors.New("no such disk") }, 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tries := 0
			s, err := untilFree(tc.ctx, func() (collector.Store, error) {
				tries++
				return tc.open(tc.ctx)
			})
			if err == nil || s != nil || tries != tc.want {
				t.Errorf("%d tries, want %d: %v, %v", tries, tc.want, s, err)
			}
		})
	}
}
