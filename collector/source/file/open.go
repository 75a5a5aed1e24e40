// Package file follows what programs write to files: lines, tables, and the output
// that a StreamWriter keeps.
package file

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/parse"
	"github.com/vernier-ml/vernier/collector/source"
	"github.com/vernier-ml/vernier/collector/source/wandb"
)

// Formats that are not of lines, as the API names them.
const (
	// FormatCSV is a table, or a directory of tables.
	FormatCSV = "CSV"
	// FormatWandb is W&B's offline files, which lie in a directory.
	FormatWandb = "WANDB"
)

// Config says what is read.
type Config struct {
	// Path is a file, or a directory if it ends with a slash. It need not exist yet.
	Path string
	// Format is CSV or WANDB for a directory, and CSV or one of parse.Formats for
	// a file.
	Format string
	// Metrics are the wanted metrics.
	Metrics []string
	// Filters find metrics in text; see parse.NewText.
	Filters []string
	// Explain: a source of lines says at its end which metrics were never found,
	// with a source.MissingError. Other sources always say it.
	Explain bool
	// State is a file in which the source remembers what it has seen at Path, so
	// that Seq is the same after the collector was killed; for a directory of
	// tables, files whose names begin so. It must outlive the process and belong to
	// one attempt of one trial. Empty: not remembered; then a collector that starts
	// after a rotation or truncation numbers the new file as if it were the first.
	State string
	// Before is what is passed over; nil: nothing.
	Before *source.Before
	// Until, if not nil, returns what lay there when the program was started again,
	// nil before that: nothing else is read then.
	Until func() *source.Before
	// From is the Seq up to which all output of a stream is stored (the largest one
	// stored plus one), 0 when unknown. What was dropped before it is no loss.
	From int64
	// Echo gets the lines that are read, without zeros; nil: nothing does.
	Echo io.Writer
	// Drain is closed when the program has ended and all is written.
	Drain <-chan struct{}
	// Clock is the time; the zero value is the machine's.
	Clock source.Clock
}

// Open returns the source that reads a place in a format. Its error says
// which of them do not go together.
func Open(cfg Config) (collector.Source, error) {
	cfg.Clock = cfg.Clock.OrReal()
	directory := strings.HasSuffix(cfg.Path, "/")
	switch {
	case cfg.Path == "":
		return nil, errors.New("no file is named")
	case len(cfg.Metrics) == 0:
		return nil, errors.New("no metric is named")
	case directory && cfg.Format == FormatWandb:
		return wandb.New(wandb.Config{Dir: cfg.Path, Metrics: cfg.Metrics, Before: cfg.Before, Until: cfg.Until, Drain: cfg.Drain, Clock: cfg.Clock})
	case directory && cfg.Format == FormatCSV:
		return newTables(cfg)
	case directory:
		return nil, fmt.Errorf("the directory %s cannot be read as %s; a directory holds %s or %s", cfg.Path, cfg.Format, FormatCSV, FormatWandb)
	case cfg.Format == FormatCSV && len(cfg.Filters) > 0:
		return nil, fmt.Errorf("filters are for the format %s alone, not for %s", parse.FormatText, cfg.Format)
	case cfg.Format == FormatCSV:
		return newTable(cfg), nil
	case cfg.Format == FormatWandb:
		return nil, fmt.Errorf("%s is read from the directory of the runs, which ends with a slash; %s is a file", FormatWandb, cfg.Path)
	}
	return newLog(cfg)
}

// polled is the source that polls what begin returns.
func (c Config) polled(name string, begin func(said *source.Troubles) source.Poller) collector.Source {
	return &source.Polled{Name: name, Before: c.Before, Drain: c.Drain, Clock: c.Clock, Begin: begin}
}
