package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
)

// deleteRows bounds the points that one transaction deletes.
const deleteRows = 20_000

// Delete removes a trial: its points in parts, then the rest.
func (s *sqlStore) Delete(ctx context.Context, trialUID string) error {
	for more := true; more; {
		err := s.write(ctx, func(t tx) (err error) {
			more, err = t.deletePart(ctx, trialUID)
			return err
		})
		if err != nil {
			return s.explain("delete trial "+trialUID, err)
		}
	}
	return nil
}

func (s *sqlStore) write(ctx context.Context, act func(tx) error) error {
	return s.open(func() error { return s.transact(ctx, act) })
}

// deletePart deletes some points of a trial, or when few are left, the trial. more
// says that it is not gone yet.
func (t tx) deletePart(ctx context.Context, trialUID string) (more bool, err error) {
	trial, sources, err := t.lockTrial(ctx, trialUID)
	if err != nil || trial == 0 {
		return false, err
	}
	left := int64(deleteRows)
	for _, source := range sources {
		end, err := t.endOfPart(ctx, source, left)
		if err != nil {
			return false, fmt.Errorf("points: %w", err)
		}
		n, err := t.exec(ctx, "DELETE FROM point WHERE source = ? AND seq < ?", source, end)
		if err != nil {
			return false, fmt.Errorf("points: %w", err)
		}
		if left -= n; left <= 0 {
			return true, nil
		}
	}
	for _, query := range []string{
		"DELETE FROM source WHERE attempt IN (SELECT id FROM attempt WHERE trial = ?)",
		"DELETE FROM attempt WHERE trial = ?",
		"DELETE FROM metric WHERE trial = ?",
		"DELETE FROM trial WHERE id = ?",
	} {
		if _, err := t.exec(ctx, query, trial); err != nil {
			return false, err
		}
	}
	t.rows.forget()
	return false, nil
}

// lockTrial keeps other processes from reporting for a trial until the end of the
// transaction, and waits for those that do: making an attempt or a source locks the
// row that it belongs to, and adding points changes their source.
// trial is zero when there is none.
func (t tx) lockTrial(ctx context.Context, trialUID string) (trial int64, sources []int64, err error) {
	lock := func(query string, arg any) (ids []int64, err error) {
		err = t.each(ctx, query+t.dialect.lockRows, []any{arg}, func(rows *sql.Rows) error {
			var id int64
			err := rows.Scan(&id)
			ids = append(ids, id)
			return err
		})
		return ids, err
	}
	trials, err := lock("SELECT id FROM trial WHERE uid = ?", t.dialect.text(trialUID))
	if err != nil || len(trials) == 0 {
		return 0, nil, err
	}
	if _, err := lock("SELECT id FROM attempt WHERE trial = ?", trials[0]); err != nil {
		return 0, nil, err
	}
	sources, err = lock("SELECT id FROM source WHERE attempt IN (SELECT id FROM attempt WHERE trial = ?)", trials[0])
	return trials[0], sources, err
}

// endOfPart is the sequence before which the first limit points of a source lie.
func (t tx) endOfPart(ctx context.Context, source, limit int64) (end int64, err error) {
	err = t.row(ctx, "SELECT seq FROM point WHERE source = ? ORDER BY seq LIMIT 1 OFFSET ?", source, limit).Scan(&end)
	if errors.Is(err, sql.ErrNoRows) {
		return math.MaxInt64, nil
	}
	return end, err
}
