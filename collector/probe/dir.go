package probe

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/vernier-ml/vernier/collector/source"
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
func dirKinds() []dirKind {
	return []dirKind{
		{Passed{What: "event files (*tfevents*)"}, func(base string) bool { return strings.Contains(base, "tfevents") }},
		{Passed{What: "W&B files (*.wandb)", Format: source.FormatWandb}, suffixed(".wandb")},
		{Passed{What: "tables (*.csv)", Format: source.FormatCSV}, suffixed(".csv")},
		{Passed{What: "files of lines (*.log, *.txt, *.json, *.jsonl)"}, suffixed(".log", ".txt", ".json", ".jsonl")},
	}
}

type dirKind struct {
	Passed
	is func(base string) bool
}

func suffixed(endings ...string) func(string) bool {
	return func(base string) bool {
		return slices.ContainsFunc(endings, func(end string) bool { return strings.HasSuffix(base, end) })
	}
}

// lookAround counts the files below a directory by their kinds.
func lookAround(dir string) ([]dirKind, error) {
	kinds := dirKinds()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		i := slices.IndexFunc(kinds, func(k dirKind) bool { return k.is(e.Name()) })
		// W&B keeps logs and summaries of its own beside its files.
		if i < 0 || i == len(kinds)-1 && strings.Contains(path, "run-") {
			return nil
		}
		if kinds[i].Count++; kinds[i].Count == 1 {
			kinds[i].Example = path
		}
		return nil
	})
	return kinds, err
}

// openDir finds out what a directory holds.
func openDir(cfg Config) (Target, error) {
	if cfg.Format != "" {
		return newDir(cfg, false)
	}
	kinds, err := lookAround(cfg.Path)
	if err != nil {
		return nil, err
	}
	lines := len(kinds) - 1
	chosen := slices.IndexFunc(kinds[:lines], func(k dirKind) bool { return k.Count > 0 })
	if chosen < 0 {
		return nil, fmt.Errorf("%w: %s holds no event files (*tfevents*), W&B files (*.wandb) or tables (*.csv); name a file in it", ErrNothing, cfg.Path)
	}
	cfg.Format = kinds[chosen].Format
	target, err := newDir(cfg, chosen == 0)
	if err != nil {
		return nil, err
	}
	d := chosenDir{Target: target}
	for i, k := range kinds {
		if i != chosen && k.Count > 0 {
			d.passed = append(d.passed, k.Passed)
		}
	}
	return d, nil
}

func newDir(cfg Config, events bool) (Target, error) {
	if events {
		return newEvents(cfg.Path, ""), nil
	}
	cfg.Path = strings.TrimRight(cfg.Path, "/") + "/"
	return newWritten(cfg)
}

// chosenDir is a directory of which one kind of files was chosen.
type chosenDir struct {
	Target
	passed []Passed
}

// Describe implements Target.
func (d chosenDir) Describe(r *Report) {
	d.Target.Describe(r)
	r.PassedOver = d.passed
}
