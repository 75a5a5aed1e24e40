package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/vernier-ml/vernier/collector"
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
		end, err := t.endOfPart(ctx, source, 0, left)
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

// endOfPart is the sequence before which at most limit points of a source lie,
// counted from another one on.
func (t tx) endOfPart(ctx context.Context, source, from, limit int64) (end int64, err error) {
	err = t.row(ctx, "SELECT seq FROM point WHERE source = ? AND seq >= ? ORDER BY seq LIMIT 1 OFFSET ?", source, from, limit).Scan(&end)
	if errors.Is(err, sql.ErrNoRows) {
		return math.MaxInt64, nil
	}
	return end, err
}

// Thin implements collector.Store. What is killed meanwhile leaves more points than
// asked for, and none of those to keep is ever gone.
func (s *sqlStore) Thin(ctx context.Context, trialUID string, stretches int) (removed int64, err error) {
	kept := map[int64]*thinnedSource{}
	err = s.read(ctx, "", func(t tx) error {
		trial, err := t.named(ctx, trialUID)
		if err != nil {
			return err
		}
		query := t.dialect.pointQuery(trial.metrics, false)
		for _, a := range trial.attempts {
			for _, source := range a.sources {
				k := &thinnedSource{curves: map[string][]collector.Point{}, mixed: map[string]bool{}}
				kept[source.id] = k
				if err := t.points(ctx, query, source, trial.metrics, func(p collector.Point) error { k.add(p, stretches); return nil }); err != nil {
					return err
				}
			}
		}
		return nil
	})
	for _, id := range slices.Sorted(maps.Keys(kept)) {
		n := int64(0)
		if err == nil {
			n, err = s.thinSource(ctx, id, kept[id].points(stretches))
		}
		removed += n
	}
	if err == nil {
		err = s.write(ctx, func(t tx) error {
			_, err := t.exec(ctx, `UPDATE trial SET thinned = (SELECT coalesce(sum(source.points), 0) FROM source
				JOIN attempt ON attempt.id = source.attempt WHERE attempt.trial = trial.id) WHERE uid = ?`, t.dialect.text(trialUID))
			return err
		})
	}
	return removed, s.explain("thin the curves of trial "+trialUID, err)
}

// thinnedSource is what is kept of a source, by metric.
type thinnedSource struct {
	curves map[string][]collector.Point
	// mixed are the metrics some of whose points state no step.
	mixed map[string]bool
}

func (k *thinnedSource) add(p collector.Point, stretches int) {
	k.mixed[p.Metric] = k.mixed[p.Metric] || p.Step == collector.NoStep
	curve := append(k.curves[p.Metric], p)
	if len(curve) >= 16*stretches {
		curve = collector.Thin(curve, stretches)
	}
	k.curves[p.Metric] = curve
}

// points are those to keep, in order of Seq. The step of one that may have stated
// none before is in it; that of any other is NoStep.
func (k *thinnedSource) points(stretches int) (all []collector.Point) {
	for metric, curve := range k.curves {
		for _, p := range collector.Thin(curve, stretches) {
			if !k.mixed[metric] {
				p.Step = collector.NoStep
			}
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b collector.Point) int { return int(a.Seq - b.Seq) })
	return all
}

// thinSource deletes the points of a source but those to keep, which first get their
// steps: the points that stated them may go.
func (s *sqlStore) thinSource(ctx context.Context, source int64, keep []collector.Point) (removed int64, err error) {
	err = s.write(ctx, func(t tx) error {
		for _, p := range keep {
			if p.Step == collector.NoStep {
				continue
			}
			if _, err := t.exec(ctx, "UPDATE point SET step = ? WHERE source = ? AND seq = ? AND step = ?", p.Step, source, p.Seq, collector.NoStep); err != nil {
				return err
			}
		}
		return nil
	})
	for from, end, n := int64(0), int64(0), int64(0); err == nil && end != math.MaxInt64; from, removed = end, removed+n {
		err = s.write(ctx, func(t tx) (err error) {
			if end, err = t.endOfPart(ctx, source, from, deleteRows); err != nil {
				return err
			}
			stay := []string{"-1"}
			for _, p := range keep {
				if p.Seq >= from && p.Seq < end {
					stay = append(stay, strconv.FormatInt(p.Seq, 10))
				}
			}
			n, err = t.exec(ctx, "DELETE FROM point WHERE source = ? AND seq >= ? AND seq < ? AND seq NOT IN ("+strings.Join(stay, ", ")+")", source, from, end)
			return err
		})
	}
	if err != nil {
		return removed, err
	}
	return removed, s.write(ctx, func(t tx) error {
		_, err := t.exec(ctx, `UPDATE source SET points = (SELECT count(*) FROM point WHERE point.source = source.id),
			text_bytes = (SELECT coalesce(sum(octet_length(text)), 0) FROM point WHERE point.source = source.id) WHERE id = ?`, source)
		return err
	})
}
