package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/parse"
)

// EventDirConfig describes an EventDir.
type EventDirConfig struct {
	// Dir is the directory to watch, at any depth. It need not exist yet.
	Dir string
	// Metrics are the wanted metrics.
	Metrics []string
	// Drain is closed when the program has ended and all is written.
	Drain <-chan struct{}
	// Clock is the time; the zero value is the machine's.
	Clock Clock
}

// EventDir reads the TensorBoard event files below a directory: every file
// whose base name contains "tfevents". All of them stay active.
//
// A run is a directory with event files, named by its path below Dir. A metric
// is found as
//   - "<run>/<tag>", where the run may also be the end of the directory's path:
//     the metric train/loss is the tag loss in any directory that ends in
//     "/train", as in Katib;
//   - the tag itself, in Dir, or in a run below it.
//
// A metric belongs to the run where it is found first; Dir is looked at first,
// then the runs in the order in which they began. When another run has it too,
// that is reported once and the other run is left out: name such a metric
// "<run>/<tag>". A tag never matches a part of a name, unlike Katib, where
// "loss" is also found in "loss/regularization".
//
// Seq is the offset of the value in its file.
type EventDir struct{ cfg EventDirConfig }

var _ collector.Source = (*EventDir)(nil)

// NewEventDir returns a source whose points are named "tfevent:" and the
// file's path below the directory.
func NewEventDir(cfg EventDirConfig) (*EventDir, error) {
	if cfg.Dir == "" || len(cfg.Metrics) == 0 {
		return nil, errors.New("an event directory source needs a directory and at least one metric")
	}
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("event directory %s: %w", cfg.Dir, err)
	}
	cfg.Dir = dir
	cfg.Clock = cfg.Clock.orReal()
	return &EventDir{cfg: cfg}, nil
}

// Points implements collector.Source.
func (d *EventDir) Points(ctx context.Context) iter.Seq2[collector.Point, error] {
	return func(yield func(collector.Point, error) bool) {
		r := &eventRun{
			cfg: d.cfg, yield: yield, events: parse.NewEvents(),
			files: map[string]*eventFile{}, owners: map[string]place{}, said: map[string]bool{},
		}
		follow(ctx, following{d.cfg.Clock, d.cfg.Drain, r, yield})
	}
}

// walkEvery is how often the tree is searched for new files, at most.
const walkEvery = time.Second

// eventFile is one file that is being read.
type eventFile struct {
	path   string // below the directory
	run    string
	began  time.Time // by its first record; zero until that is there
	off    int64
	broken bool
	tags   []string            // what to read in it
	names  map[string][]string // tag -> metrics
}

// place is where a metric is found.
type place struct{ run, tag string }

func (p place) String() string { return strings.TrimPrefix(p.run+"/"+p.tag, "/") }

// eventRun is one run of an EventDir's Points.
type eventRun struct {
	cfg    EventDirConfig
	yield  func(collector.Point, error) bool
	events *parse.Events

	files  map[string]*eventFile // by path
	order  []*eventFile
	walked time.Time
	owners map[string]place // by metric
	said   map[string]bool  // troubles, which are said once
}

// poll implements poller.
func (r *eventRun) poll(ctx context.Context) (sawData, ok bool) {
	now := r.cfg.Clock.Now()
	if r.walked.IsZero() || now.Sub(r.walked) >= walkEvery || closed(r.cfg.Drain) || len(r.order) == 0 {
		r.walked = now
		if !r.walk(ctx) {
			return false, false
		}
	}
	for _, f := range r.order {
		if ctx.Err() != nil {
			break
		}
		if f.broken || f.began.IsZero() {
			continue
		}
		data, ok := r.read(ctx, f)
		if !ok {
			return sawData, false
		}
		sawData = sawData || data
	}
	return sawData, true
}

// finish implements poller.
func (r *eventRun) finish() bool {
	if len(r.files) == 0 {
		return r.trouble(fmt.Errorf("tfevent: no event file was written below %s", r.cfg.Dir))
	}
	return true
}

// walk finds new files.
func (r *eventRun) walk(ctx context.Context) bool {
	ok, found := true, false
	err := filepath.WalkDir(r.cfg.Dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil || !ok:
			return fs.SkipAll
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			ok = r.trouble(fmt.Errorf("tfevent: %w", err))
			return nil
		case e.IsDir() || !strings.Contains(e.Name(), "tfevents") || strings.HasSuffix(e.Name(), ".profile-empty"):
			return nil
		}
		f, known := r.files[path]
		if !known {
			f = r.newFile(path)
			r.files[path] = f
		}
		if f.began.IsZero() {
			f.began = firstTime(path)
			found = found || !f.began.IsZero()
		}
		return nil
	})
	if err != nil {
		ok = ok && r.trouble(fmt.Errorf("tfevent: %w", err))
	}
	if found {
		r.sort()
	}
	return ok
}

// sort puts the files in the order in which runs may claim a metric: the root
// first, then the runs by their beginning; within a run by name.
func (r *eventRun) sort() {
	began := map[string]time.Time{}
	r.order = r.order[:0]
	for _, f := range r.files {
		if f.began.IsZero() {
			continue
		}
		r.order = append(r.order, f)
		if first, ok := began[f.run]; !ok || f.began.Before(first) {
			began[f.run] = f.began
		}
	}
	slices.SortFunc(r.order, func(a, b *eventFile) int {
		if a.run != b.run && (a.run == "" || b.run == "") {
			return cmp.Compare(a.run, b.run)
		}
		return cmp.Or(began[a.run].Compare(began[b.run]), cmp.Compare(a.run, b.run), cmp.Compare(a.path, b.path))
	})
}

// newFile works out which tags of a file are which metrics.
func (r *eventRun) newFile(path string) *eventFile {
	rel, err := filepath.Rel(r.cfg.Dir, path)
	if err != nil {
		rel = path // cannot be: the walk began at Dir
	}
	f := &eventFile{path: filepath.ToSlash(rel), names: map[string][]string{}}
	if i := strings.LastIndexByte(f.path, '/'); i >= 0 {
		f.run = f.path[:i]
	}
	dir := filepath.ToSlash(filepath.Dir(path))
	for _, metric := range r.cfg.Metrics {
		f.names[metric] = append(f.names[metric], metric)
		for i := range len(metric) {
			if metric[i] == '/' && i > 0 && i+1 < len(metric) && strings.HasSuffix(dir, "/"+metric[:i]) {
				tag := metric[i+1:]
				f.names[tag] = append(f.names[tag], metric)
			}
		}
	}
	for tag := range f.names {
		f.tags = append(f.tags, tag)
	}
	slices.Sort(f.tags)
	return f
}

// firstTime returns when an event file began, or the zero time while that is
// not written.
func firstTime(path string) time.Time {
	f, err := openRegular(path)
	if err != nil {
		return time.Time{} // looked at again in the next walk
	}
	defer f.Close()
	at, ok := parse.FirstTime(f)
	if ok && at.IsZero() {
		at = time.Unix(0, 0)
	}
	return at
}

// read yields the new points of one file. The file is open only meanwhile, so
// that any number of files can be followed.
func (r *eventRun) read(ctx context.Context, f *eventFile) (sawData, ok bool) {
	path := filepath.Join(r.cfg.Dir, filepath.FromSlash(f.path))
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, true // removed; what was in it is read
	}
	if err != nil {
		return false, r.trouble(fmt.Errorf("tfevent:%s: %w", f.path, err))
	}
	if info.Size() <= f.off {
		return false, true
	}
	file, err := openRegular(path)
	if err != nil {
		return false, r.trouble(fmt.Errorf("tfevent:%s: %w", f.path, err))
	}
	defer file.Close()
	ok = true
	for {
		before := f.off
		var err error
		f.off, err = r.events.Read(file, f.off, f.tags, func(s parse.Scalar) bool {
			ok = r.scalar(f, s)
			return ok && ctx.Err() == nil
		})
		sawData = sawData || f.off > before
		if err == nil || !ok || ctx.Err() != nil {
			return sawData, ok
		}
		f.broken = errors.Is(err, parse.ErrBroken)
		if ok = r.trouble(fmt.Errorf("tfevent:%s: %w", f.path, err)); !ok || !errors.Is(err, parse.ErrRecord) {
			return sawData, ok
		}
	}
}

// scalar yields the points of one value.
func (r *eventRun) scalar(f *eventFile, s parse.Scalar) bool {
	here := place{f.run, s.Tag}
	for i, metric := range f.names[s.Tag] {
		owner, owned := r.owners[metric]
		if !owned {
			owner = here
			r.owners[metric] = here
		}
		if owner != here {
			// Dir itself comes before its runs; that needs no word.
			if (owner.run != "" || here.run == "") && !r.ambiguous(metric, owner, here) {
				return false
			}
			continue
		}
		p := collector.Point{
			Metric: metric, Value: s.Value, Step: s.Step, Time: s.Time,
			// Two metrics may be the same tag; their values lie some bytes apart.
			Source: "tfevent:" + f.path, Seq: s.Offset + int64(i),
		}
		if p.Time.IsZero() {
			p.Time = r.cfg.Clock.Now()
		}
		if !r.yield(p, nil) {
			return false
		}
	}
	return true
}

// ambiguous reports that a metric is in two places.
func (r *eventRun) ambiguous(metric string, used, other place) bool {
	return r.trouble(fmt.Errorf("tfevent: the metric %s is found as %q and as %q; the first is used: name the metric by its run and tag", metric, used, other))
}

// trouble yields an error that was not yielded before.
func (r *eventRun) trouble(err error) bool {
	if r.said[err.Error()] || len(r.said) >= maxTroubles {
		return true
	}
	r.said[err.Error()] = true
	return r.yield(collector.Point{}, err)
}

// maxTroubles bounds the errors that one source yields.
const maxTroubles = 1000
