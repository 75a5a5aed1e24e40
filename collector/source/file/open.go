package file

import (
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

// Written describes what a program writes to files.
type Written struct {
	// Path is a file, or a directory if it ends with a slash.
	Path string
	// Format is CSV or WANDB for a directory, and CSV or one of parse.Formats for
	// a file.
	Format string
	// Metrics are the wanted metrics.
	Metrics []string
	// Filters find metrics in text; see parse.NewText.
	Filters []string
	// Explain: at its end the source says which metrics were never found, with a
	// source.MissingError. Sources other than those of lines say it in any case.
	Explain bool
	// State is a file in which the source remembers what must outlive the process
	// (see Config.State); for a directory of tables, files whose names begin
	// so.
	State string
	// Before is what is passed over; nil: nothing.
	Before *source.Before
	// Until, if not nil, returns what lay there when the program was started again,
	// nil before that: nothing else is read then.
	Until func() *source.Before
	// Echo gets the lines that are read; nil: nothing does. See Config.
	Echo io.Writer
	// Drain is closed when the program has ended and all is written.
	Drain <-chan struct{}
	// Clock is the time; the zero value is the machine's.
	Clock source.Clock
}

// Open returns the source that reads a place in a format. Its error says
// which of them do not go together.
func Open(w Written) (collector.Source, error) {
	directory := strings.HasSuffix(w.Path, "/")
	switch {
	case directory && w.Format == FormatWandb:
		return wandb.New(wandb.Config{Dir: w.Path, Metrics: w.Metrics, Before: w.Before, Until: w.Until, Drain: w.Drain, Clock: w.Clock})
	case directory && w.Format == FormatCSV:
		return NewTables(TablesConfig{Dir: w.Path, Metrics: w.Metrics, State: w.State, Before: w.Before, Until: w.Until, Drain: w.Drain, Clock: w.Clock})
	case directory:
		return nil, fmt.Errorf("the directory %s cannot be read as %s; a directory holds %s or %s", w.Path, w.Format, FormatCSV, FormatWandb)
	case w.Format == FormatCSV && len(w.Filters) > 0:
		return nil, fmt.Errorf("filters are for the format %s alone, not for %s", parse.FormatText, w.Format)
	case w.Format == FormatCSV:
		return NewCSV(CSVConfig{Path: w.Path, Metrics: w.Metrics, State: w.State, Before: w.Before, Until: w.Until, Drain: w.Drain, Clock: w.Clock})
	case w.Format == FormatWandb:
		return nil, fmt.Errorf("%s is read from the directory of the runs, which ends with a slash; %s is a file", FormatWandb, w.Path)
	}
	parser, err := parse.NewLine(w.Format, w.Metrics, w.Filters)
	if err != nil {
		return nil, err
	}
	cfg := Config{Path: w.Path, Parser: parser, State: w.State, Before: w.Before, Until: w.Until, Echo: w.Echo, Drain: w.Drain, Clock: w.Clock}
	if w.Explain {
		cfg.Wanted = &Wanted{Format: w.Format, Metrics: w.Metrics, Filters: w.Filters}
	}
	return New(cfg)
}
