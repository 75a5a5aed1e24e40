package file

import (
	"context"
	"fmt"
	"hash/fnv"
	"strings"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/source"
)

// maxTableFiles bounds the tables that are followed: each takes a buffer and an
// open file.
const maxTableFiles = 100

// IsTable says by its name whether a file in a directory of tables is read.
func IsTable(name string) bool { return strings.HasSuffix(name, ".csv") }

// newTables returns a source of the tables below a directory, at any depth: every
// regular file whose name ends with ".csv", each as newTable reads it. Those of
// Lightning lie in <name>/version_0/metrics.csv, where the number is another for
// each start of a program. Links are not followed. When two tables have a metric,
// that is reported once; both are read.
func newTables(cfg Config) (collector.Source, error) {
	dir, err := source.AbsDir(cfg.Path)
	if err != nil {
		return nil, fmt.Errorf("a source of tables: %w", err)
	}
	return cfg.polled("csv", func(said *source.Troubles) source.Poller {
		return &tables{
			cfg: cfg, said: said, owners: map[string]string{},
			files: source.Tree{Root: dir, What: "tables", Limit: maxTableFiles, Match: IsTable},
		}
	}), nil
}

// tables are those below a directory.
type tables struct {
	cfg    Config
	said   *source.Troubles
	files  source.Tree
	tables []*follower
	owners map[string]string // metric -> the table that has it
}

// Poll implements source.Poller.
func (r *tables) Poll(ctx context.Context) (sawData, ok bool) {
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
func (r *tables) Finish(ctx context.Context) bool {
	if len(r.tables) == 0 {
		return r.said.Tell(fmt.Errorf("no file *.csv was written below %s", r.files.Root))
	}
	for _, table := range r.tables {
		if !table.Finish(ctx) {
			return false
		}
	}
	return true
}

// add reads one more table; rel is its path below the directory.
func (r *tables) add(rel string) bool {
	cfg := r.cfg
	cfg.Path = r.files.Place(rel)
	if cfg.State != "" {
		h := fnv.New64a()
		_, _ = h.Write([]byte(cfg.Path)) // never fails
		cfg.State = fmt.Sprintf("%s.%016x", cfg.State, h.Sum64())
	}
	table := followTable(cfg, true, &source.Troubles{Prefix: "file:" + cfg.Path, Yield: func(p collector.Point, err error) bool {
		if err != nil {
			return r.said.Yield(p, err)
		}
		first, owned := r.owners[p.Metric]
		if !owned {
			r.owners[p.Metric] = rel
		} else if first != rel && !r.said.Tell(fmt.Errorf("the metric %s is in several tables, %s and %s; all are read", p.Metric, first, rel)) {
			return false
		}
		return r.said.Yield(p, nil)
	}})
	if table != nil {
		r.tables = append(r.tables, table)
	}
	return table != nil
}

// Close implements source.Poller.
func (r *tables) Close() {
	for _, table := range r.tables {
		table.Close()
	}
}
