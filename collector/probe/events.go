package probe

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/parse"
	"github.com/vernier-ml/vernier/collector/source/events"
)

// maxRecorded bounds the recorded parameters that are shown.
const maxRecorded = 1000

// eventDir is a directory of TensorBoard's event files.
type eventDir struct {
	dir      string
	only     string   // the one file in dir that is read; empty: all
	passed   []Passed // what else dir holds
	bytes    int64
	recorded []Recorded
	known    map[Recorded]bool
}

func newEvents(dir, only string) *eventDir {
	return &eventDir{dir: dir, only: only, known: map[Recorded]bool{}}
}

func (d *eventDir) Source(metrics []string) (collector.Source, error) {
	return events.New(events.Config{Dir: d.dir, Only: d.only, Metrics: metrics, Recorded: d.record, Drain: ended(), Clock: timeless})
}

// Names are the tags with scalars, in their runs, as a metric would name them.
func (d *eventDir) Names(ctx context.Context) (found []string, hints map[string]string, err error) {
	all, reader := names{}, parse.NewEvents()
	d.bytes, err = eachFile(ctx, d.place(), isEventFile, func(path string, f *os.File) error {
		run, err := filepath.Rel(d.dir, filepath.Dir(path))
		if err != nil {
			return err
		}
		run = filepath.ToSlash(run)
		wanted := parse.NewWanted(nil, func(tag []byte) { all.add(filepath.ToSlash(filepath.Join(run, string(tag)))) })
		if d.only != "" || !strings.HasPrefix(filepath.Base(path), events.HparamsFile) { // that the collector wrote itself
			wanted = wanted.Recording(func(p parse.Recorded) { d.record(strings.TrimPrefix(run, "."), p) })
		}
		// What is wrong with the file is said by the source.
		_, _ = reader.Read(f, 0, wanted, func(parse.Scalar) bool { return true })
		return nil
	})
	return all.list, nil, err
}

func (d *eventDir) Describe(r *Report) {
	r.Kind, r.Path, r.Recorded, r.PassedOver, r.Bytes = TensorFlowEvent, d.place(), d.recorded, d.passed, d.bytes
}

// place is the directory, or the one file of it that is read.
func (d *eventDir) place() string { return filepath.Join(d.dir, d.only) }

func isEventFile(base string) bool { return strings.Contains(base, "tfevents") }

// Recorded is a parameter that the program recorded for TensorBoard.
type Recorded struct {
	// Run is the path of the run below the directory; empty for the directory
	// itself.
	Run   string `json:"run,omitempty"`
	Name  string `json:"name"`
	Value string `json:"value"`
}

// record keeps what the program recorded, each once.
func (d *eventDir) record(run string, p parse.Recorded) {
	one := Recorded{Run: run, Name: p.Name, Value: p.Value}
	if len(d.recorded) < maxRecorded && !d.known[one] {
		d.known[one] = true
		d.recorded = append(d.recorded, one)
	}
}
