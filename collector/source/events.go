package source

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
)

// EventDirConfig describes an EventDir.
type EventDirConfig struct {
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
	Before *Before
	// Given are the parameters that the program was given, by name. At the end it
	// is said which of them the program recorded with another value.
	Given map[string]string
	// Recorded, if not nil, is told of each parameter that the program recorded for
	// TensorBoard, and of its run, perhaps more than once.
	Recorded func(run string, p parse.Recorded)
	// Drain is closed when the program has ended and all is written.
	Drain <-chan struct{}
	// Clock is the time; the zero value is the machine's.
	Clock Clock
}

// EventDir reads the TensorBoard event files below a directory: every regular
// file whose base name contains "tfevents". All of them stay active. Links to
// directories are not followed; a file with several names is read once.
//
// A run is a directory with event files, named by its path below Dir. A metric
// is found as, the best first:
//   - the tag in a run, "<run>/<tag>";
//   - the tag in Dir itself;
//   - as in Katib, the tag in a directory whose path ends so: the metric
//     train/loss is the tag loss in any directory that ends in "/train";
//   - the tag in any other run.
//
// A metric belongs to the place where it is found first; of places that are
// found at once, to the best, then to the one that began first. Other places are
// reported once and left out, with one exception: a run whose name differs only
// in its digits (version_0, version_1) and that began after the last value of
// the one before takes over from it, as when a program starts again.
//
// A metric that was found in none of these places when the program has ended is
// looked for as Katib does, by tags that only begin with the name. See prefix.
//
// Seq is the offset of the value in its file.
type EventDir struct{ cfg EventDirConfig }

var _ collector.Source = (*EventDir)(nil)

// NewEventDir returns a source whose points are named "tfevent:" and the
// file's path below the directory.
func NewEventDir(cfg EventDirConfig) (*EventDir, error) {
	dir, err := watchedDir(cfg.Dir)
	if err == nil && len(cfg.Metrics) == 0 {
		err = errors.New("no metric is named")
	}
	if err != nil {
		return nil, fmt.Errorf("a source of event files: %w", err)
	}
	cfg.Dir = dir
	cfg.Clock = cfg.Clock.orReal()
	return &EventDir{cfg: cfg}, nil
}

// Points implements collector.Source. It makes no difference between sessions.
func (d *EventDir) Points(ctx context.Context) iter.Seq2[collector.Point, error] {
	return func(yield func(collector.Point, error) bool) {
		d.read(ctx, func(p *SessionPoint, err error) bool { return yield(p.Point, err) })
	}
}

// Sessions is Points with the session of each point.
func (d *EventDir) Sessions(ctx context.Context) iter.Seq2[SessionPoint, error] {
	return func(yield func(SessionPoint, error) bool) {
		d.read(ctx, func(p *SessionPoint, err error) bool { return yield(*p, err) })
	}
}

func (d *EventDir) read(ctx context.Context, yield func(*SessionPoint, error) bool) {
	r := &eventRun{
		cfg: d.cfg, yield: yield, events: parse.NewEvents(),
		tree: newEventTree(d.cfg.Dir, d.cfg.Only), names: newEventNames(d.cfg.Dir, d.cfg.Metrics),
		sessions: newEventSessions(len(d.cfg.Metrics)),
		recorded: newRecordedParameters(d.cfg.Given),
		said:     troubles{}, ids: map[fileID]*eventFile{}, next: -1,
	}
	r.names.curious = r.stranger
	if d.cfg.Recorded != nil || len(d.cfg.Given) > 0 {
		r.names.recorded = r.parameter
	}
	for _, load := range []func() error{r.loadState, r.loadSessions} {
		if err := load(); err != nil && !r.trouble(err) {
			return
		}
	}
	if note := d.cfg.Before.Note(); note != nil && !r.trouble(fmt.Errorf("tfevent: %w", note)) {
		return
	}
	follow(ctx, following{d.cfg.Clock, d.cfg.Drain, r, func(p collector.Point, err error) bool {
		return yield(&SessionPoint{Point: p}, err)
	}})
}

// eventRun is one run of an EventDir's Points.
type eventRun struct {
	cfg    EventDirConfig
	yield  func(*SessionPoint, error) bool
	out    SessionPoint // that is yielded; it is the consumer's only meanwhile
	events *parse.Events

	tree     *tree
	names    *eventNames
	sessions *eventSessions
	recorded *recordedParameters
	said     troubles

	files  []*eventFile // all, in the order in which they were found
	ids    map[fileID]*eventFile
	looked time.Time
	next   int // of the files, the last one looked at in turn
	hot    []*eventFile
	now    *eventFile // that is being read; nil while others are looked into
}

// pollTime is how long a poll may go on while there is more to read.
const pollTime = time.Second

// poll implements poller.
func (r *eventRun) poll(ctx context.Context) (sawData, ok bool) {
	now := r.cfg.Clock.Now()
	all := closed(r.cfg.Drain)
	if !r.tree.walk(now, all, r.found) {
		return false, false
	}
	due, ok := r.look(now, all)
	for ok && len(due) > 0 && ctx.Err() == nil {
		if due, ok = r.introduce(due); !ok {
			break
		}
		var progress bool
		due, progress, ok = r.readEach(ctx, due)
		sawData = sawData || progress
		if !all && r.cfg.Clock.Now().Sub(now) > pollTime {
			break
		}
	}
	return sawData, ok
}

// readEach gives each file its turn, in the order in which they began, and
// returns those that have more. A file of which nothing was reported yet waits
// for those that began before it, so that a program that started again is seen
// as what it is.
func (r *eventRun) readEach(ctx context.Context, due []*eventFile) (more []*eventFile, sawData, ok bool) {
	slices.SortStableFunc(due, func(a, b *eventFile) int {
		return cmp.Or(a.began.Compare(b.began), cmp.Compare(a.path, b.path))
	})
	for _, f := range due {
		if ctx.Err() != nil {
			break
		}
		if f.session == noSession && len(more) > 0 {
			more = append(more, f)
			continue
		}
		before := f.off
		again, ok := r.read(ctx, f)
		sawData = sawData || f.off > before
		if !ok {
			return nil, sawData, false
		}
		if again {
			more = append(more, f)
		}
	}
	return more, sawData, true
}

// found is told of new files.
func (r *eventRun) found(path string, trouble error) bool {
	if trouble != nil {
		return r.trouble(fmt.Errorf("tfevent: %w", trouble))
	}
	f := newEventFile(path, r.names.run(path))
	r.passOver(f)
	r.files = append(r.files, f)
	return true
}

// finish implements poller.
func (r *eventRun) finish() bool {
	if len(r.files) == 0 {
		return r.trouble(fmt.Errorf("tfevent: no event file was written below %s", r.cfg.Dir))
	}
	for _, f := range r.files {
		if err := f.left(); err != nil && !r.trouble(fmt.Errorf("tfevent:%s: %w", f.path, err)) {
			return false
		}
	}
	if err := r.recorded.differing(); err != nil && !r.trouble(err) {
		return false
	}
	for i, rivals := range r.names.rivals {
		if len(rivals) > 1 && !r.leftOut(i, rivals) {
			return false
		}
	}
	return r.prefix()
}

// parameter is told of what the program recorded.
func (r *eventRun) parameter(p parse.Recorded) {
	if r.now == nil {
		return // it is read again, unless it was there before the program
	}
	r.recorded.add(p)
	if r.cfg.Recorded != nil {
		r.cfg.Recorded(r.now.run.name, p)
	}
}

// leftOut says which places of a metric were not used, if there were many.
func (r *eventRun) leftOut(metric int, rivals map[place]bool) bool {
	names := make([]string, 0, len(rivals))
	for p := range rivals {
		names = append(names, p.String())
	}
	slices.Sort(names)
	more := ""
	if len(rivals) == maxRivals {
		more = " or more"
	}
	return r.trouble(fmt.Errorf("tfevent: %d%s places of the metric %s were left out: %s", len(rivals), more, r.cfg.Metrics[metric], quoted(names)))
}

// scalar yields the points of one value.
func (r *eventRun) scalar(f *eventFile, s *parse.Scalar) bool {
	if s.Tag == parse.SessionStart {
		return r.sessionStart(f, s)
	}
	if f.changes != r.names.changes {
		f.mine, f.changes = make([][]int, len(f.run.table.tags)), r.names.changes
	}
	if f.mine[s.Tag] == nil {
		if !r.claim(f, s) {
			return false
		}
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
func (r *eventRun) point(f *eventFile, metric int, s *parse.Scalar, shift int64) bool {
	seq := s.Offset + shift
	if !r.session(f, metric, s, seq) {
		return false
	}
	p := &r.out
	p.Session, p.Began = f.session, r.sessions.began[:f.session+1]
	p.Metric, p.Value, p.Step, p.Time = r.cfg.Metrics[metric], s.Value, s.Step, s.Time
	p.Source, p.Seq = f.source, seq
	if p.Time.IsZero() {
		p.Time = r.cfg.Clock.Now()
	}
	return r.yield(p, nil)
}

// trouble yields an error that was not yielded before.
func (r *eventRun) trouble(err error) bool {
	if !r.said.news(err) {
		return true
	}
	return r.yield(&SessionPoint{}, err)
}

// maxEventFiles bounds the files that are followed.
const maxEventFiles = 30_000

// HparamsFile begins the names of the event files that the collector itself
// writes for TensorBoard. They hold no measurement. TensorBoard reads the files
// of a directory in the order of their names, so these come first.
const HparamsFile = "events.out.tfevents.0000000000.vernier"

func isEventFile(name string) bool {
	return strings.Contains(name, "tfevents") && !strings.HasPrefix(name, HparamsFile) && !strings.HasSuffix(name, ".profile-empty")
}

func newEventTree(root, only string) *tree {
	t := newTree(root, "event files", maxEventFiles, isEventFile)
	t.links, t.only = true, only
	return t
}
