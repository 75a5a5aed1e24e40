package file

import (
	"context"
	"fmt"
	"hash/fnv"
	"iter"
	"strings"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/parse"
	"github.com/vernier-ml/vernier/collector/source"
)

// TablesConfig describes a Tables.
type TablesConfig struct {
	// Dir is the directory to watch, at any depth. It need not exist yet.
	Dir string
	// Metrics are the names of the wanted columns.
	Metrics []string
	// State is how the names of the files begin in which the tables are
	// remembered; see CSVConfig.State.
	State string
	// Before is what is passed over; nil: nothing.
	Before *source.Before
	// Until, if not nil, returns what lay there when the program was started again,
	// nil before that: nothing else is read then.
	Until func() *source.Before
	// Drain is closed when the program has ended and all is written.
	Drain <-chan struct{}
	// Clock is the time; the zero value is the machine's.
	Clock source.Clock
}

// Tables reads the tables below a directory, every regular file whose name ends
// with ".csv", each as CSV does: those of Lightning lie in
// <name>/version_0/metrics.csv, where the number is another for each start of a
// program. Links are not followed. When two tables have a metric, that is
// reported once; both are read.
type Tables struct{ cfg TablesConfig }

var _ collector.Source = (*Tables)(nil)

// maxTableFiles bounds the tables that are followed: each takes a buffer and an
// open file.
const maxTableFiles = 100

// IsTable says by its name whether Tables reads a file.
func IsTable(name string) bool { return strings.HasSuffix(name, ".csv") }

// NewTables returns a source whose points are named as those of CSV.
func NewTables(cfg TablesConfig) (*Tables, error) {
	dir, err := source.AbsDir(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("a source of tables: %w", err)
	}
	if _, err := parse.NewCSV(cfg.Metrics); err != nil {
		return nil, err
	}
	cfg.Dir, cfg.Clock = dir, cfg.Clock.OrReal()
	return &Tables{cfg: cfg}, nil
}

// Points implements collector.Source.
func (t *Tables) Points(ctx context.Context) iter.Seq2[collector.Point, error] {
	return func(yield func(collector.Point, error) bool) {
		r := &tablesRun{
			cfg: t.cfg, yield: yield, owners: map[string]string{}, said: source.Troubles{Prefix: "csv", Yield: yield},
			files: source.Tree{Root: t.cfg.Dir, What: "tables", Limit: maxTableFiles, Match: IsTable},
		}
		defer r.close()
		if note := t.cfg.Before.Note(); note != nil && !r.said.Tell(note) {
			return
		}
		source.Follow(ctx, t.cfg.Clock, t.cfg.Drain, r, yield)
	}
}

// tablesRun is one run of a Tables' Points.
type tablesRun struct {
	cfg    TablesConfig
	yield  source.Yield
	said   source.Troubles
	files  source.Tree
	tables []*csvRun
	owners map[string]string // metric -> the table that has it
}

// Poll implements source.Poller.
func (r *tablesRun) Poll(ctx context.Context) (sawData, ok bool) {
	ok = r.files.Walk(r.cfg.Clock.Now(), source.Closed(r.cfg.Drain), func(path string, trouble error) bool {
		if trouble != nil {
			return r.said.Tell(trouble)
		}
		return r.add(path)
	})
	for _, table := range r.tables {
		if !ok {
			break
		}
		var data bool
		data, ok = table.Poll(ctx)
		sawData = sawData || data
	}
	return sawData, ok
}

// Finish implements source.Poller.
func (r *tablesRun) Finish() bool {
	if len(r.tables) == 0 {
		return r.said.Tell(fmt.Errorf("no file *.csv was written below %s", r.cfg.Dir))
	}
	for _, table := range r.tables {
		if !table.Finish() {
			return false
		}
	}
	return true
}

// add reads one more table; rel is its path below the directory.
func (r *tablesRun) add(rel string) bool {
	path := r.files.Place(rel)
	cfg := CSVConfig{Path: path, Metrics: r.cfg.Metrics, Before: r.cfg.Before, Until: r.cfg.Until, part: true, Clock: r.cfg.Clock}
	if r.cfg.State != "" {
		h := fnv.New64a()
		_, _ = h.Write([]byte(path)) // never fails
		cfg.State = fmt.Sprintf("%s.%016x", r.cfg.State, h.Sum64())
	}
	table, ok := newCSVRun(cfg, func(p collector.Point, err error) bool {
		if err != nil {
			return r.yield(p, err)
		}
		first, owned := r.owners[p.Metric]
		if !owned {
			r.owners[p.Metric] = rel
		} else if first != rel && !r.said.Tell(fmt.Errorf("the metric %s is in several tables, %s and %s; all are read", p.Metric, first, rel)) {
			return false
		}
		return r.yield(p, nil)
	})
	if table != nil {
		r.tables = append(r.tables, table)
	}
	return ok
}

func (r *tablesRun) close() {
	for _, table := range r.tables {
		table.close()
	}
}
