package push

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/journal"
)

// DefaultJournalLimit is the space that a journal may take, in bytes: about ten
// million points.
const DefaultJournalLimit = 512 << 20

// maxReportPoints bounds the points of one request, so that a line of the
// journal stays small enough to be held in memory.
const maxReportPoints = 10_000

// maxJournalLine bounds one line of the journal, in bytes. A body of maxBody may
// become several times as long, by escapes and by names that are repeated.
const maxJournalLine = 16 << 20

var (
	// errJournalFull says that a request was not taken for want of space.
	errJournalFull = errors.New("the space for pushed points is used up")
	// errJournalLine says that one request asks for too much.
	errJournalLine = errors.New("the request says too much: send it in parts")
	// errJournalClosed says that the trial is over.
	errJournalClosed = errors.New("the program has ended; nothing is taken any more")
)

// entry is what one request changed. It is one line of the journal: all of it is
// there or nothing, also when the collector is killed while it writes.
type entry struct {
	// Key is the request's own identity, hashed; empty means that it has none.
	Key string `json:"k,omitempty"`
	// Run is the MLflow run that the points belong to.
	Run string `json:"r,omitempty"`
	// Trainer is set for a report of Kubeflow Trainer's status.
	Trainer bool `json:"t,omitempty"`
	// Step is the newest step there, when it is a new one.
	Step   int64              `json:"s,omitempty"`
	Points []collector.Record `json:"p,omitempty"`
	// Event is a change of MLflow's runs and experiments.
	Event *mlflowEvent `json:"e,omitempty"`
}

// pushJournal keeps what was pushed in a file. The Seq of a point is the offset of
// its line plus its place in it: no line has fewer bytes than points.
type pushJournal struct {
	lines *journal.Journal
	apply func(entry) // takes note of each entry
	mu    sync.Mutex  // guards what apply notes, and the order of entries
}

// openJournal opens the file, or makes it, and calls apply with every entry.
func openJournal(path string, limit int64, apply func(entry)) (*pushJournal, error) {
	if limit <= 0 {
		limit = DefaultJournalLimit
	}
	lines, err := journal.Open(journal.Config{Path: path, Limit: limit, MaxLine: maxJournalLine})
	if err != nil {
		return nil, fmt.Errorf("open the journal of pushed points: %w", err)
	}
	j := &pushJournal{lines: lines, apply: apply}
	if err := j.scan(func(e entry) bool { apply(e); return true }); err != nil {
		return nil, errors.Join(err, lines.Close())
	}
	return j, nil
}

// scan calls take with all entries, until it has had enough. A line that cannot be
// read is left out: points tells of it, with its place.
func (j *pushJournal) scan(take func(entry) (more bool)) error {
	for line, err := range j.lines.Lines(context.Background(), 0) {
		if err != nil && !errors.Is(err, journal.ErrLongLine) {
			return err
		}
		if e, err := j.parse(line); err == nil && !take(e) {
			return nil
		}
	}
	return nil
}

// append writes what build returns, if that is a change, and returns once it is
// safe from the collector's death. No other entry comes between build and apply.
func (j *pushJournal) append(build func() (e entry, changed bool)) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.lines.Finished() {
		return errJournalClosed
	}
	e, changed := build()
	if !changed {
		return nil
	}
	text, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("write down what was pushed: %w", err)
	}
	switch err := j.lines.Append(text); {
	case errors.Is(err, journal.ErrFull):
		return errJournalFull
	case errors.Is(err, journal.ErrLongLine):
		return errJournalLine
	case err != nil:
		return fmt.Errorf("write down what was pushed: %w", err)
	}
	j.apply(e)
	return nil
}

// close ends the journal: what comes later is refused.
func (j *pushJournal) close() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines.Finish()
}

// points yields all points from the beginning, waits for more, and returns when
// the journal is closed and read, when ctx ends, or when yield has had enough.
func (j *pushJournal) points(ctx context.Context, yield func(collector.Point, error) bool) {
	for line, err := range j.lines.Follow(ctx) {
		var e entry
		if err == nil {
			e, err = j.parse(line)
		}
		if err != nil && !yield(collector.Point{}, err) {
			return
		}
		for i, p := range e.Points {
			if !yield(p.Point("push", line.Offset+int64(i)), nil) {
				return
			}
		}
	}
}

func (j *pushJournal) parse(line journal.Line) (e entry, err error) {
	if err := json.Unmarshal(line.Text, &e); err != nil {
		return entry{}, j.lines.At(line.Offset, err)
	}
	return e, nil
}
