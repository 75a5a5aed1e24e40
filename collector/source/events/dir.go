// Package events follows the event files that programs write for TensorBoard.
package events

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/parse"
	"github.com/vernier-ml/vernier/collector/source"
)

// Config describes a Dir.
type Config struct {
	// Dir is the directory to watch, at any depth. It need not exist yet.
	Dir string
	// Only is the one file that is read, whatever its name, by its path below Dir;
	// empty: all event files.
	Only string
	// Metrics are the wanted metrics.
	Metrics []string
	// State is a file in which the source remembers where it found the metrics,
	// so that it finds them there again when it is started anew. What it decides
	// of sessions is in a second file, whose name ends in ".sessions". Empty:
	// nowhere.
	State string
	// Before is what is passed over; nil: nothing.
	Before *source.Before
	// Given are the parameters that the program was given, by name. At the end it
	// is said which of them the program recorded with another value.
	Given map[string]string
	// Recorded, if not nil, is told of each parameter that the program recorded for
	// TensorBoard, and of its run, perhaps more than once.
	Recorded func(run string, p parse.Recorded)
	// Drain is closed when the program has ended and all is written.
	Drain <-chan struct{}
	// Clock is the time; the zero value is the machine's.
	Clock source.Clock
}

// Dir reads the TensorBoard event files below a directory: every regular
// file whose base name contains "tfevents". All of them stay active. Symbolic links are
// not followed; a file with several names is read once.
//
// A run is a directory with event files, named by its path below Dir. A metric
// is found as, the best first:
//   - the tag in a run, "<run>/<tag>";
//   - the tag in Dir itself;
//   - as in Katib, the tag in a directory whose path ends so: the metric
//     train/loss is the tag loss in any directory that ends in "/train";
//   - the tag in any other run.
//
// A metric belongs to the place where it is found first; of places that are found at
// once, to the best, then to the one that began first. Other places are left out, and
// the first of them is reported, with one exception: a run whose name differs only in
// its numbers (version_0 and version_1, train and train2) and that began after the last
// value of the one before takes over from it, as when a program starts again.
//
// A metric that was found in none of these places when the program has ended is
// looked for as Katib does, by tags that only begin with the name.
//
// Seq is the offset of the value in its file.
type Dir struct{ cfg Config }

var _ collector.Source = (*Dir)(nil)

// New returns a source whose points are named "tfevent:" and the file's path
// below the directory.
func New(cfg Config) (*Dir, error) {
	dir, err := source.AbsDir(cfg.Dir)
	if err == nil && len(cfg.Metrics) == 0 {
		err = errors.New("no metric is named")
	}
	if err != nil {
		return nil, fmt.Errorf("a source of event files: %w", err)
	}
	cfg.Dir = dir
	cfg.Clock = cfg.Clock.OrReal()
	return &Dir{cfg: cfg}, nil
}

// Points implements collector.Source. It makes no difference between sessions.
func (d *Dir) Points(ctx context.Context) iter.Seq2[collector.Point, error] {
	return func(yield func(collector.Point, error) bool) {
		d.read(ctx, func(p SessionPoint, err error) bool { return yield(p.Point, err) })
	}
}

// Sessions is Points with the session of each point.
func (d *Dir) Sessions(ctx context.Context) iter.Seq2[SessionPoint, error] {
	return func(yield func(SessionPoint, error) bool) { d.read(ctx, yield) }
}

// IsEventFile says by its name whether Dir reads a file.
func IsEventFile(name string) bool {
	return strings.Contains(name, "tfevents") && !strings.HasPrefix(name, HparamsFile) && !strings.HasSuffix(name, ".profile-empty")
}

// HparamsFile begins the names of the event files that the collector itself
// writes for TensorBoard. They hold no measurement. TensorBoard reads the files
// of a directory in the order of their names, so these come first.
const HparamsFile = "events.out.tfevents.0000000000.vernier"

const (
	// maxFiles bounds the files that are followed.
	maxFiles = 30_000
	// lookEach is the least time between two looks at all files, for each: looking
	// costs a part of it.
	lookEach = 40 * time.Microsecond
)

func (d *Dir) read(ctx context.Context, yieldSession func(SessionPoint, error) bool) {
	yield := func(p collector.Point, err error) bool { return yieldSession(SessionPoint{Point: p}, err) }
	r := &dirRun{
		cfg: d.cfg, yield: yieldSession, events: parse.NewEvents(), said: source.Troubles{Prefix: "tfevent", Yield: yield},
		tree:     source.Tree{Root: d.cfg.Dir, What: "event files", Limit: maxFiles, Match: IsEventFile, Only: d.cfg.Only},
		recorded: newRecordedParameters(d.cfg.Given), ids: map[source.FileID]*eventFile{},
	}
	r.places = newPlaces(d.cfg, &r.said)
	if d.cfg.Recorded != nil || len(d.cfg.Given) > 0 {
		r.places.recorded = r.parameter
	}
	r.sessions = newSessions(d.cfg.Metrics, &r.said)
	defer r.Close()
	if !r.places.load() || !r.sessions.load(d.cfg.State) {
		return
	}
	if note := d.cfg.Before.Note(); note != nil && !r.said.Tell(note) {
		return
	}
	source.Follow(ctx, d.cfg.Clock, d.cfg.Drain, r, yield)
}

// dirRun is one run of a Dir's Points.
type dirRun struct {
	cfg    Config
	yield  func(SessionPoint, error) bool
	events *parse.Events
	said   source.Troubles

	tree     source.Tree
	places   *places
	sessions *sessions
	recorded *recordedParameters

	files []*eventFile // all, in the order in which they were found
	ids   map[source.FileID]*eventFile
	due   time.Time  // of the next look at the files
	now   *eventFile // that is being read; nil while others are looked into

	wait source.Wait
	any  bool    // something was read
	tags []place // that there were when a missing metric was told first; nil: none was
}

// Poll implements source.Poller.
func (r *dirRun) Poll(ctx context.Context) (sawData, ok bool) {
	now := r.cfg.Clock.Now()
	all := source.Closed(r.cfg.Drain)
	if !r.tree.Walk(now, all, r.found) {
		return false, false
	}
	due, ok := r.look(now, all)
	if ok {
		due, ok = r.introduce(due)
	}
	// In the order in which they began, each to its end, so that a program that
	// started again is seen as what it is.
	slices.SortStableFunc(due, func(a, b *eventFile) int {
		return cmp.Or(a.began.Compare(b.began), cmp.Compare(a.path, b.path))
	})
	for _, f := range due {
		for more := true; more && ok && ctx.Err() == nil; {
			before := f.off
			more, ok = r.read(ctx, f)
			sawData = sawData || f.off > before
		}
	}
	r.any = r.any || sawData
	return sawData, ok && r.notYet(ctx, now)
}

// found is told of new files.
func (r *dirRun) found(path string, trouble error) bool {
	if trouble != nil {
		return r.said.Tell(trouble)
	}
	f := newEventFile(path, r.places.run(path))
	r.passOver(f)
	r.files = append(r.files, f)
	return true
}

// Close implements source.Poller.
func (r *dirRun) Close() { r.sessions.close() }

// Finish implements source.Poller.
func (r *dirRun) Finish(ctx context.Context) bool {
	if len(r.files) == 0 {
		return r.said.Tell(fmt.Errorf("no event file was written below %s", r.cfg.Dir))
	}
	for _, f := range r.files {
		if err := f.left(); err != nil && !r.trouble(f, err) {
			return false
		}
	}
	if err := r.recorded.differing(); err != nil && !r.said.Tell(err) {
		return false
	}
	return r.prefix(ctx)
}

// parameter is told of what the program recorded.
func (r *dirRun) parameter(p parse.Recorded) {
	if r.now == nil {
		return // it is read again, unless it was there before the program
	}
	r.recorded.add(p)
	if r.cfg.Recorded != nil {
		r.cfg.Recorded(r.now.run.name, p)
	}
}

// scalar yields the points of one value.
func (r *dirRun) scalar(f *eventFile, s *parse.Scalar) bool {
	if s.Tag == parse.SessionStart {
		return r.sessions.start(r.files, f, s)
	}
	if f.changes != r.places.changes {
		f.mine, f.changes = make([][]int, len(f.run.tags)), r.places.changes
	}
	if f.mine[s.Tag] == nil && !r.places.claim(f, s.Tag, r.sessions.newest) {
		return false
	}
	for i, metric := range f.mine[s.Tag] {
		if !r.point(f, metric, s, int64(i)) {
			return false
		}
	}
	return true
}

// point yields a value of f as a point of a metric. Two metrics may be the same
// tag: shift keeps their places apart.
func (r *dirRun) point(f *eventFile, metric int, s *parse.Scalar, shift int64) bool {
	seq := s.Offset + shift
	if !r.sessions.assign(r.files, f, metric, s, seq) {
		return false
	}
	p := SessionPoint{Session: f.session, Began: r.sessions.began[:f.session+1], Point: collector.Point{
		Metric: r.cfg.Metrics[metric], Value: s.Value, Step: s.Step, Time: s.Time, Source: f.source, Seq: seq}}
	if p.Time.IsZero() {
		p.Time = r.cfg.Clock.Stamp()
	}
	return r.yield(p, nil)
}

// trouble yields an error about a file.
func (r *dirRun) trouble(f *eventFile, err error) bool {
	return r.said.Tell(fmt.Errorf("%s: %w", f.path, err))
}
