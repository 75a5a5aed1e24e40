// Package wandb follows the files that Weights & Biases writes in offline mode.
package wandb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/parse"
	"github.com/vernier-ml/vernier/collector/source"
)

// Config says what is read.
type Config struct {
	// Dir is the directory to watch, at any depth. It need not exist yet.
	Dir string
	// Only is the one file that is read, whatever its name, by its path below Dir;
	// empty: all that end with ".wandb".
	Only string
	// Metrics are the wanted metrics, by the keys given to run.log; those of
	// nested dictionaries are joined by dots.
	Metrics []string
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

// maxFiles bounds the files that are followed.
const maxFiles = 10_000

// IsRunFile says by its name whether a file is one of W&B.
func IsRunFile(name string) bool { return strings.HasSuffix(name, ".wandb") }

// New returns a source that reads the files that Weights & Biases writes in
// offline mode: every file below a directory whose name ends with ".wandb". Links
// are not followed, since W&B's latest-run is one. Its points are named "wandb:" and
// the file's path below the directory; Seq is the offset of the value in its file.
// W&B writes to its file every 15 seconds and at the end.
//
// All runs are read, in the order of their names, which begin with their time:
// a program that was started again goes on in a run of its own. When two runs
// have a metric, that is reported once.
func New(cfg Config) (collector.Source, error) {
	dir, err := source.AbsDir(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("a W&B source: %w", err)
	}
	cfg.Dir, cfg.Clock = dir, cfg.Clock.OrReal()
	return &source.Polled{Name: "wandb", Before: cfg.Before, Drain: cfg.Drain, Clock: cfg.Clock, Begin: func(said *source.Troubles) source.Poller {
		return &dirRun{
			cfg: cfg, said: said, reader: parse.NewWandb(cfg.Metrics), runs: map[string]string{},
			files: source.Tree{Root: dir, What: "W&B files", Limit: maxFiles, Match: IsRunFile, Only: cfg.Only},
		}
	}}, nil
}

// runFile is one file that is being read.
type runFile struct {
	path   string // below the directory
	off    int64
	broken bool
}

// dirRun is one reading of a directory.
type dirRun struct {
	cfg    Config
	said   *source.Troubles
	reader *parse.Wandb
	files  source.Tree
	order  []*runFile        // by path below the directory
	runs   map[string]string // metric -> the run that has it
	any    bool              // something was read
	wait   source.Wait
}

// Close implements source.Poller: files are open only while they are read.
func (r *dirRun) Close() {}

// Poll implements source.Poller.
func (r *dirRun) Poll(ctx context.Context) (sawData, ok bool) {
	now, last := r.cfg.Clock.Now(), source.Closed(r.cfg.Drain)
	if !r.walk(now, last) {
		return false, false
	}
	for _, f := range r.order {
		if ctx.Err() != nil {
			break
		}
		data, ok := r.read(ctx, f, last)
		if !ok {
			return sawData, false
		}
		sawData = sawData || data
	}
	r.any = r.any || sawData
	return sawData, r.notYet(now)
}

// walk finds new files.
func (r *dirRun) walk(now time.Time, last bool) bool {
	before := len(r.order)
	ok := r.files.Walk(now, last, func(path string, trouble error) bool {
		if trouble != nil {
			return r.said.Tell(trouble)
		}
		r.order = append(r.order, &runFile{path: path, off: r.cfg.Before.Size(r.files.Place(path))})
		return true
	})
	if len(r.order) > before {
		slices.SortFunc(r.order, func(a, b *runFile) int { return cmp.Compare(a.path, b.path) })
	}
	return ok
}

// read yields the new points of one file. The file is open only meanwhile, so
// that any number of files can be followed.
func (r *dirRun) read(ctx context.Context, f *runFile, last bool) (sawData, ok bool) {
	path := r.files.Place(f.path)
	info, err := os.Lstat(path)
	switch {
	case f.broken || errors.Is(err, fs.ErrNotExist):
		return false, true // removed; what was in it is read
	case err != nil:
		return false, r.said.Tell(err)
	case info.Size() < f.off:
		f.broken = true
		return false, r.said.Tell(fmt.Errorf("%s has shrunk from %d to %d bytes; it is not read further", f.path, f.off, info.Size()))
	case info.Size() == f.off:
		return false, true
	}
	file, err := source.Open(path)
	if err != nil {
		return false, r.said.Tell(err)
	}
	defer file.Close()
	var from io.ReaderAt = file
	if r.cfg.Until != nil {
		from = io.NewSectionReader(file, 0, f.off+int64(r.cfg.Until().Bound(file, f.off, math.MaxInt32)))
	}
	ok = true
	for {
		before := f.off
		f.off, err = r.reader.Read(from, f.off, last, func(p collector.Point) bool {
			ok = r.point(f, p)
			return ok && ctx.Err() == nil
		})
		sawData = sawData || f.off > before
		if err == nil || !ok || ctx.Err() != nil {
			return sawData, ok
		}
		f.broken = errors.Is(err, parse.ErrNotWandb)
		if ok = r.said.Tell(fmt.Errorf("%s: %w", f.path, err)); !ok || !errors.Is(err, parse.ErrWandbRecord) {
			return sawData, ok
		}
	}
}

// point yields one point.
func (r *dirRun) point(f *runFile, p collector.Point) bool {
	if first, seen := r.runs[p.Metric]; !seen {
		r.runs[p.Metric] = f.path
	} else if first != f.path && !r.said.Tell(fmt.Errorf("the metric %s is in several runs, %s and %s; all are read", p.Metric, first, f.path)) {
		return false
	}
	p.Source = "wandb:" + f.path
	if p.Time.IsZero() {
		p.Time = r.cfg.Clock.Stamp()
	}
	return r.said.Yield(p, nil)
}

// Finish implements source.Poller: it says what was never found.
func (r *dirRun) Finish(context.Context) bool {
	if len(r.order) == 0 {
		return r.said.Tell(fmt.Errorf("no file *.wandb was written below %s; set WANDB_MODE=offline and WANDB_DIR to that directory", r.cfg.Dir))
	}
	missing := r.missing()
	if len(missing) == 0 {
		return true
	}
	return r.said.Tell(&source.MissingError{Metrics: missing, Text: parse.NotFound(missing, r.seen())})
}

// missing are the metrics that no run has.
func (r *dirRun) missing() []string {
	return source.NotFound(r.cfg.Metrics, func(m string) bool { return r.runs[m] != "" })
}

// notYet says what was not found so far, when a run has had others for a while.
func (r *dirRun) notYet(now time.Time) bool {
	missing := r.missing()
	if !r.any || !r.wait.Due(now, len(missing)) {
		return true
	}
	there := r.seen()
	return len(there) == 0 || r.said.Tell(&source.MissingError{Yet: true, Metrics: missing, Text: "so far " + parse.NotFound(missing, there)})
}

// seen returns names that the newest run has; never nil.
func (r *dirRun) seen() []string {
	file, err := source.Open(r.files.Place(r.order[len(r.order)-1].path))
	if err != nil {
		return []string{}
	}
	defer file.Close()
	names := parse.WandbNames(file, source.MaxNames)
	slices.Sort(names)
	return names
}
