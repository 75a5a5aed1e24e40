package probe

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/vernier-ml/vernier/collector/source/file"
)

// Passed is what a directory holds besides what was read.
type Passed struct {
	// What it is: "tables (*.csv)" or the like.
	What string `json:"what"`
	// Count is the number of files, Example the first one's path.
	Count   int    `json:"count"`
	Example string `json:"example"`
	// Format makes the probe read them; empty for files that must be named.
	Format string `json:"format,omitempty"`
}

// dirKinds are the kinds of files that are looked for in a directory, and the
// order in which they are chosen. The last one is read only by name.
var dirKinds = []struct {
	what, format string
	base         *regexp.Regexp
}{
	{"event files (*tfevents*)", "", regexp.MustCompile(`tfevents`)},
	{"W&B files (*.wandb)", file.FormatWandb, regexp.MustCompile(`\.wandb$`)},
	{"tables (*.csv)", file.FormatCSV, regexp.MustCompile(`\.csv$`)},
	{"files of lines (*.log, *.txt, *.json, *.jsonl)", "", regexp.MustCompile(`\.(log|txt|json|jsonl)$`)},
}

// lookAround counts the files below a directory by their kinds.
func lookAround(dir string) ([]Passed, error) {
	found := make([]Passed, len(dirKinds))
	for i, k := range dirKinds {
		found[i] = Passed{What: k.what, Format: k.format}
	}
	lines := len(found) - 1
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		for i, k := range dirKinds {
			// W&B keeps logs and summaries of its own beside its files.
			if !k.base.MatchString(e.Name()) || i == lines && strings.Contains(path, "run-") {
				continue
			}
			if found[i].Count++; found[i].Count == 1 {
				found[i].Example = path
			}
			break
		}
		return nil
	})
	return found, err
}

// openDir finds out what a directory holds.
func openDir(cfg Config) (Target, error) {
	below := Config{Path: strings.TrimRight(cfg.Path, "/") + "/", Format: cfg.Format, Filters: cfg.Filters}
	if cfg.Format != "" {
		return newWritten(below)
	}
	found, err := lookAround(cfg.Path)
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(p Passed) bool { return p.Count == 0 })
	if len(found) == 0 || found[0].What == dirKinds[len(dirKinds)-1].what {
		return nil, fmt.Errorf("%w: %s holds no event files (*tfevents*), W&B files (*.wandb) or tables (*.csv); name a file in it", ErrNothing, cfg.Path)
	}
	if below.Format = found[0].Format; below.Format == "" {
		target := newEvents(cfg.Path, "")
		target.passed = found[1:]
		return target, nil
	}
	target, err := newWritten(below)
	if err == nil {
		target.passed = found[1:]
	}
	return target, err
}
