package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/parse"
)

// WandbDirConfig describes a WandbDir.
type WandbDirConfig struct {
	// Dir is the directory to watch, at any depth. It need not exist yet.
	Dir string
	// Only is the one file that is read, whatever its name, by its path below Dir;
	// empty: all that end with ".wandb".
	Only string
	// Metrics are the wanted metrics, by the keys given to run.log; those of
	// nested dictionaries are joined by dots.
	Metrics []string
	// Before is what is passed over; nil: nothing.
	Before *Before
	// Drain is closed when the program has ended and all is written.
	Drain <-chan struct{}
	// Clock is the time; the zero value is the machine's.
	Clock Clock
}

// WandbDir reads the files that Weights & Biases writes in offline mode: every
// file below a directory whose name ends with ".wandb". Links are not followed,
// since W&B's latest-run is one.
//
// All runs are read, in the order of their names, which begin with their time:
// a program that was started again goes on in a run of its own. When two runs
// have a metric, that is reported once.
//
// Seq is the offset of the value in its file. W&B writes to its file every
// 15 seconds and at the end.
type WandbDir struct{ cfg WandbDirConfig }

var _ collector.Source = (*WandbDir)(nil)

// maxWandbFiles bounds the files that are followed.
const maxWandbFiles = 10_000

func isWandbFile(name string) bool { return strings.HasSuffix(name, ".wandb") }

// NewWandbDir returns a source whose points are named "wandb:" and the file's
// path below the directory.
func NewWandbDir(cfg WandbDirConfig) (*WandbDir, error) {
	dir, err := watchedDir(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("a W&B source: %w", err)
	}
	if _, err := parse.NewWandb(cfg.Metrics); err != nil {
		return nil, err
	}
	cfg.Dir, cfg.Clock = dir, cfg.Clock.orReal()
	return &WandbDir{cfg: cfg}, nil
}

// Points implements collector.Source.
func (d *WandbDir) Points(ctx context.Context) iter.Seq2[collector.Point, error] {
	return func(yield func(collector.Point, error) bool) {
		reader, err := parse.NewWandb(d.cfg.Metrics)
		if err != nil {
			yield(collector.Point{}, err)
			return
		}
		r := &wandbRun{
			cfg: d.cfg, yield: yield, reader: reader, names: parse.NewAnyWandb(),
			files: newTree(d.cfg.Dir, "W&B files", maxWandbFiles, isWandbFile),
			runs:  map[string]string{}, said: troubles{},
		}
		r.files.only = d.cfg.Only
		if note := d.cfg.Before.Note(); note != nil && !r.trouble(note) {
			return
		}
		follow(ctx, following{d.cfg.Clock, d.cfg.Drain, r, yield})
	}
}

// wandbFile is one file that is being read.
type wandbFile struct {
	path   string // below the directory
	off    int64
	broken bool
}

// wandbRun is one run of a WandbDir's Points.
type wandbRun struct {
	cfg    WandbDirConfig
	yield  func(collector.Point, error) bool
	reader *parse.Wandb
	names  *parse.Wandb // for hints

	files *tree
	order []*wandbFile      // by path below the directory
	runs  map[string]string // metric -> the run that has it
	said  troubles
}

// poll implements poller.
func (r *wandbRun) poll(ctx context.Context) (sawData, ok bool) {
	now, last := r.cfg.Clock.Now(), closed(r.cfg.Drain)
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
	return sawData, true
}

// walk finds new files.
func (r *wandbRun) walk(now time.Time, last bool) bool {
	before := len(r.order)
	ok := r.files.walk(now, last, func(path string, trouble error) bool {
		if trouble != nil {
			return r.trouble(trouble)
		}
		r.order = append(r.order, &wandbFile{path: path, off: r.before(r.files.place(path))})
		return true
	})
	if len(r.order) > before {
		slices.SortFunc(r.order, func(a, b *wandbFile) int { return cmp.Compare(a.path, b.path) })
	}
	return ok
}

// before returns how much of a new file is passed over.
func (r *wandbRun) before(path string) int64 {
	if r.cfg.Before == nil {
		return 0
	}
	file, err := openRegular(path)
	if err != nil {
		return 0 // whoever reads it says so
	}
	defer file.Close()
	return r.cfg.Before.size(file)
}

// read yields the new points of one file. The file is open only meanwhile, so
// that any number of files can be followed.
func (r *wandbRun) read(ctx context.Context, f *wandbFile, last bool) (sawData, ok bool) {
	path := r.files.place(f.path)
	info, err := os.Lstat(path)
	switch {
	case f.broken || errors.Is(err, fs.ErrNotExist):
		return false, true // removed; what was in it is read
	case err != nil:
		return false, r.trouble(err)
	case info.Size() < f.off:
		f.broken = true
		return false, r.trouble(fmt.Errorf("%s has shrunk from %d to %d bytes; it is not read further", f.path, f.off, info.Size()))
	case info.Size() == f.off:
		return false, true
	}
	file, err := openRegular(path)
	if err != nil {
		return false, r.trouble(err)
	}
	defer file.Close()
	ok = true
	for {
		before := f.off
		f.off, err = r.reader.Read(file, f.off, last, func(s parse.Sample) bool {
			ok = r.sample(f, s)
			return ok && ctx.Err() == nil
		})
		sawData = sawData || f.off > before
		if err == nil || !ok || ctx.Err() != nil {
			return sawData, ok
		}
		f.broken = errors.Is(err, parse.ErrNotWandb)
		if ok = r.trouble(fmt.Errorf("%s: %w", f.path, err)); !ok || !errors.Is(err, parse.ErrWandbRecord) {
			return sawData, ok
		}
	}
}

// sample yields one point.
func (r *wandbRun) sample(f *wandbFile, s parse.Sample) bool {
	if first, seen := r.runs[s.Metric]; !seen {
		r.runs[s.Metric] = f.path
	} else if first != f.path && !r.trouble(fmt.Errorf("the metric %s is in several runs, %s and %s; all are read", s.Metric, first, f.path)) {
		return false
	}
	p := collector.Point{
		Metric: s.Metric, Value: s.Value, Text: s.Text, Step: s.Step, Time: s.Time,
		Source: "wandb:" + f.path, Seq: int64(s.Offset),
	}
	if p.Time.IsZero() {
		p.Time = r.cfg.Clock.Now()
	}
	return r.yield(p, nil)
}

// finish implements poller: it says what was never found.
func (r *wandbRun) finish() bool {
	if len(r.order) == 0 {
		return r.trouble(fmt.Errorf("no file *.wandb was written below %s; set WANDB_MODE=offline and WANDB_DIR to that directory", r.cfg.Dir))
	}
	var missing []string
	for _, m := range r.cfg.Metrics {
		if r.runs[m] == "" && !slices.Contains(missing, m) {
			missing = append(missing, m)
		}
	}
	if len(missing) == 0 {
		return true
	}
	seen, parts := r.seen(), make([]string, len(missing))
	for i, m := range missing {
		parts[i] = "the metric " + m + " was never logged"
		if near := parse.Nearest(m, seen, maxHints); len(near) > 0 {
			parts[i] += ": did you mean " + strings.Join(near, ", ") + "?"
		}
	}
	if len(seen) > 0 {
		parts = append(parts, "there is "+quoted(seen))
	}
	return r.trouble(notFound(missing, "%s", strings.Join(parts, "; ")))
}

// seen returns names that the newest run has; never nil.
func (r *wandbRun) seen() []string {
	names := map[string]bool{}
	file, err := openRegular(r.files.place(r.order[len(r.order)-1].path))
	if err != nil {
		return []string{}
	}
	defer file.Close()
	for offset := int64(0); ; {
		next, err := r.names.Read(file, offset, true, func(s parse.Sample) bool {
			names[s.Metric] = true
			return len(names) < maxSeen
		})
		if !errors.Is(err, parse.ErrWandbRecord) || len(names) >= maxSeen || next <= offset {
			break
		}
		offset = next
	}
	out := make([]string, 0, len(names))
	for n := range names {
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}

// trouble yields an error that was not yielded before.
func (r *wandbRun) trouble(err error) bool {
	if !r.said.news(err) {
		return true
	}
	return r.yield(collector.Point{}, fmt.Errorf("wandb: %w", err))
}
