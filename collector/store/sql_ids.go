package store

import (
	"context"
	"database/sql"
	"strings"
	"time"

	"github.com/vernier-ml/vernier/collector"
)

const (
	// maxIDs bounds the names of each table whose numbers are remembered.
	maxIDs = 50_000
	// touchEvery is how exact trial.touched is: a trial that reports each second
	// costs one more write an hour.
	touchEvery = time.Hour
)

// child is a name that belongs to a numbered row.
type child struct {
	parent int64
	name   string
}

// ids are the numbers of names that were read or given in transactions that were
// committed, or in the present one. That a trial was deleted elsewhere shows in
// foreign keys or in dialect.changed; then all is forgotten.
type ids struct {
	trials                     map[string]trialRow
	attempts, metrics, sources map[child]int64
}

type trialRow struct {
	id      int64
	named   bool // its experiment is known
	touched int64
}

func (i *ids) forget() {
	*i = ids{trials: map[string]trialRow{}, attempts: map[child]int64{}, metrics: map[child]int64{}, sources: map[child]int64{}}
}

// bound forgets when there is too much. It is not called within a transaction.
func (i *ids) bound() {
	if max(len(i.trials), len(i.attempts), len(i.metrics), len(i.sources)) > maxIDs {
		i.forget()
	}
}

// Numbers of rows of one INSERT, and of values in one IN.
var chunkSizes = [...]int{64, 8, 1}

// insert adds rows of args, many with each statement.
func (c *sqlConn) insert(ctx context.Context, into, end string, rows [][]any) error {
	for len(rows) > 0 {
		size := chunkSizes[len(chunkSizes)-1]
		for _, s := range chunkSizes {
			if len(rows) >= s {
				size = s
				break
			}
		}
		var args []any
		for _, r := range rows[:size] {
			args = append(args, r...)
		}
		if err := c.prepared(ctx, "INSERT INTO "+into+" VALUES "+tuples(size, len(rows[0]))+" "+end, args...); err != nil {
			return err
		}
		rows = rows[size:]
	}
	return nil
}

// in makes an IN list. The last value is repeated, so that there are few different
// statements.
func in(values []any) (list string, args []any) {
	size := len(values)
	for _, s := range chunkSizes {
		if s >= len(values) {
			size = s
		}
	}
	for len(values) < size {
		values = append(values, values[len(values)-1])
	}
	return "(" + strings.TrimSuffix(strings.Repeat("?,", size), ",") + ")", values
}

// trials makes the trials of reports known, and notes that they reported.
func (c *sqlConn) trials(ctx context.Context, reports []report, now time.Time) error {
	missing := map[string]collector.TrialID{}
	for _, r := range reports {
		if _, known := c.ids.trials[r.trial.UID]; !known {
			if _, seen := missing[r.trial.UID]; !seen {
				missing[r.trial.UID] = r.trial
			}
		}
	}
	if len(missing) > 0 {
		var rows [][]any
		var uids []any
		for _, t := range missing {
			uids = append(uids, c.dialect.text(t.UID))
			rows = append(rows, []any{c.dialect.text(t.UID), c.dialect.text(t.Namespace), c.dialect.text(t.Name),
				c.dialect.text(t.Experiment), now.Unix()})
		}
		if err := c.insert(ctx, "trial (uid, namespace, name, experiment, touched)", c.dialect.known, rows); err != nil {
			return err
		}
		if err := c.readTrials(ctx, uids); err != nil {
			return err
		}
	}
	return c.touch(ctx, reports, now)
}

func (c *sqlConn) readTrials(ctx context.Context, uids []any) error {
	list, args := in(uids)
	return c.each(ctx, "SELECT id, uid, experiment, touched FROM trial WHERE uid IN "+list, args, func(rows *sql.Rows) error {
		var t trialRow
		var uid, experiment string
		err := rows.Scan(&t.id, &uid, &experiment, &t.touched)
		t.named = experiment != ""
		c.ids.trials[uid] = t
		return err
	})
}

// touch moves the times of trials forward that are late, and adds the experiments
// of trials that had none.
func (c *sqlConn) touch(ctx context.Context, reports []report, now time.Time) error {
	for _, r := range reports {
		t := c.ids.trials[r.trial.UID]
		if r.trial.Experiment != "" && !t.named {
			if err := c.exec(ctx, "UPDATE trial SET experiment = ? WHERE id = ?", c.dialect.text(r.trial.Experiment), t.id); err != nil {
				return err
			}
			t.named = true
			c.ids.trials[r.trial.UID] = t
		}
		if now.Sub(time.Unix(t.touched, 0)) >= touchEvery {
			if err := c.exec(ctx, "UPDATE trial SET touched = ? WHERE id = ?", now.Unix(), t.id); err != nil {
				return err
			}
			t.touched = now.Unix()
			c.ids.trials[r.trial.UID] = t
		}
	}
	return nil
}

// children makes the names in wanted known to known. extra are values for further
// columns of the rows that are made.
func (c *sqlConn) children(ctx context.Context, table, parent, extraColumns string, known map[child]int64, wanted map[child][]any) error {
	var rows [][]any
	parents, names := map[int64]bool{}, map[string]bool{}
	for key, extra := range wanted {
		if _, ok := known[key]; ok {
			continue
		}
		rows = append(rows, append([]any{key.parent, c.dialect.text(key.name)}, extra...))
		parents[key.parent], names[key.name] = true, true
	}
	if len(rows) == 0 {
		return nil
	}
	if err := c.insert(ctx, table+" ("+parent+", name"+extraColumns+")", c.dialect.known, rows); err != nil {
		return err
	}
	return c.readChildren(ctx, table, parent, known, parents, names)
}

// readChildren reads the numbers of all pairs of parents and names.
func (c *sqlConn) readChildren(ctx context.Context, table, parent string, known map[child]int64, parents map[int64]bool, names map[string]bool) error {
	var of, called []any
	for p := range parents {
		of = append(of, p)
	}
	for n := range names {
		called = append(called, c.dialect.text(n))
	}
	parentList, parentArgs := in(of)
	nameList, nameArgs := in(called)
	return c.each(ctx, "SELECT id, "+parent+", name FROM "+table+" WHERE "+parent+" IN "+parentList+" AND name IN "+nameList,
		append(parentArgs, nameArgs...), func(rows *sql.Rows) error {
			var id int64
			var key child
			err := rows.Scan(&id, &key.parent, &key.name)
			known[key] = id
			return err
		})
}
