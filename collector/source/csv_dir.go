package source

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/parse"
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
	Before *Before
	// Drain is closed when the program has ended and all is written.
	Drain <-chan struct{}
	// Clock is the time; the zero value is the machine's.
	Clock Clock
	// look is the time between two looks for new tables. Default: walkEvery.
	look time.Duration
}

// Tables reads the tables below a directory, every regular file whose name ends
// with ".csv", each as CSV does: those of Lightning lie in
// <name>/version_0/metrics.csv, where the number is another for each start of a
// program. Links are not followed. When two tables have a metric, that is
// reported once; both are read.
type Tables struct{ cfg TablesConfig }

var _ collector.Source = (*Tables)(nil)

// maxTableFiles bounds the tables that are followed: each takes a buffer and a
// goroutine.
const maxTableFiles = 100

func isTable(name string) bool { return strings.HasSuffix(name, ".csv") }

// NewTables returns a source whose points are named as those of CSV.
func NewTables(cfg TablesConfig) (*Tables, error) {
	dir, err := watchedDir(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("a source of tables: %w", err)
	}
	if _, err := parse.NewCSV(cfg.Metrics); err != nil {
		return nil, err
	}
	cfg.Dir, cfg.Clock = dir, cfg.Clock.orReal()
	return &Tables{cfg: cfg}, nil
}

// tablePoint is what one table yields.
type tablePoint struct {
	path  string
	point collector.Point
	err   error
}

// Points implements collector.Source.
func (t *Tables) Points(ctx context.Context) iter.Seq2[collector.Point, error] {
	return func(yield func(collector.Point, error) bool) {
		inner, cancel := context.WithCancel(ctx)
		r := &tablesRun{
			cfg: t.cfg, yield: yield, points: make(chan tablePoint), owners: map[string]string{}, said: troubles{},
			files: newTree(t.cfg.Dir, "tables", maxTableFiles, isTable),
		}
		defer r.readers.Wait()
		defer cancel()
		if note := t.cfg.Before.Note(); note != nil && !r.trouble(fmt.Errorf("csv: %w", note)) {
			return
		}
		r.run(inner)
		if ctx.Err() != nil && !r.done {
			yield(collector.Point{}, ctx.Err())
		}
	}
}

// tablesRun is one run of a Tables' Points.
type tablesRun struct {
	cfg     TablesConfig
	yield   func(collector.Point, error) bool
	points  chan tablePoint
	readers sync.WaitGroup
	done    bool // the consumer has had enough

	files  *tree
	owners map[string]string // metric -> the table that has it
	said   troubles
}

// run looks for tables and passes on what they yield, until the source is
// drained and all have ended, or ctx ends.
func (r *tablesRun) run(ctx context.Context) {
	found := func(path string, trouble error) bool {
		if trouble != nil {
			return r.trouble(fmt.Errorf("csv: %w", trouble))
		}
		return r.follow(ctx, path)
	}
	for {
		last := closed(r.cfg.Drain)
		if !r.files.walk(r.cfg.Clock.Now(), last, found) {
			return
		}
		if last {
			break
		}
		if !r.pass(ctx, r.cfg.Drain, r.cfg.Clock.After(cmp.Or(r.cfg.look, walkEvery))) {
			return
		}
	}
	if len(r.files.known) == 0 {
		r.trouble(fmt.Errorf("csv: no file *.csv was written below %s", r.cfg.Dir))
		return
	}
	ended := make(chan struct{})
	go func() {
		r.readers.Wait()
		close(ended)
	}()
	r.pass(ctx, ended, nil)
}

// pass yields points until stop closes or it is time to look for new tables.
func (r *tablesRun) pass(ctx context.Context, stop <-chan struct{}, due <-chan time.Time) bool {
	for {
		select {
		case p := <-r.points:
			if !r.take(p) {
				return false
			}
		case <-stop:
			return true
		case <-due:
			return true
		case <-ctx.Done():
			return false
		}
	}
}

func (r *tablesRun) take(p tablePoint) bool {
	if p.err != nil {
		return r.trouble(p.err)
	}
	first, owned := r.owners[p.point.Metric]
	if !owned {
		r.owners[p.point.Metric] = p.path
	} else if first != p.path && !r.trouble(fmt.Errorf("csv: the metric %s is in several tables, %s and %s; all are read", p.point.Metric, first, p.path)) {
		return false
	}
	r.done = !r.yield(p.point, nil)
	return !r.done
}

// follow reads one table beside the others; rel is its path below the directory.
func (r *tablesRun) follow(ctx context.Context, rel string) bool {
	path := r.files.place(rel)
	cfg := CSVConfig{Path: path, Metrics: r.cfg.Metrics, Before: r.cfg.Before, inner: true, part: true, Drain: r.cfg.Drain, Clock: r.cfg.Clock}
	if r.cfg.State != "" {
		h := fnv.New64a()
		_, _ = h.Write([]byte(path)) // never fails
		cfg.State = fmt.Sprintf("%s.%016x", r.cfg.State, h.Sum64())
	}
	table, err := NewCSV(cfg)
	if err != nil {
		return r.trouble(err)
	}
	r.readers.Go(func() {
		for p, err := range table.Points(ctx) {
			if ctx.Err() != nil {
				return
			}
			select {
			case r.points <- tablePoint{rel, p, err}:
			case <-ctx.Done():
				return
			}
		}
	})
	return true
}

// trouble yields an error that was not yielded before.
func (r *tablesRun) trouble(err error) bool {
	if !r.said.news(err) {
		return true
	}
	r.done = !r.yield(collector.Point{}, err)
	return !r.done
}
