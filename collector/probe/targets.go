package probe

import (
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/parse"
	"github.com/vernier-ml/vernier/collector/source"
)

// timeless is a clock that tells the zero time: a point that has another got it
// from its source.
var timeless = source.Clock{Now: func() time.Time { return time.Time{} }}

// ended is a drain of what is written already.
func ended() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// plain is a trouble without the name of the source in front.
func plain(err error, prefix string) Trouble {
	return Trouble{Text: strings.TrimPrefix(err.Error(), prefix+": ")}
}

// written is a file of lines, a table, or a file of W&B's, or a directory of
// these two.
type written struct {
	cfg  Config
	ends *lineEnds
}

func newWritten(cfg Config) (*written, error) {
	// Made once, so that what does not go together is said first.
	w := &written{cfg: cfg, ends: &lineEnds{path: cfg.Path}}
	if _, err := w.Source([]string{"metric"}); err != nil {
		return nil, err
	}
	return w, nil
}

func (w *written) Source(metrics []string) (collector.Source, error) {
	if w.cfg.Format == source.FormatWandb && !strings.HasSuffix(w.cfg.Path, "/") {
		// A trial reads the directory; here the user has named one file of it.
		dir, base := filepath.Split(w.cfg.Path)
		return source.NewWandbDir(source.WandbDirConfig{Dir: cmp.Or(dir, "."), Only: base, Metrics: metrics, Drain: ended(), Clock: timeless})
	}
	return source.NewWritten(source.Written{
		Path: w.cfg.Path, Format: w.cfg.Format, Metrics: metrics, Filters: w.cfg.Filters, Drain: ended(), Clock: timeless,
	})
}

func (w *written) Names(context.Context) (names []string, hints map[string]string, err error) {
	switch w.cfg.Format {
	case source.FormatWandb:
		names, err = wandbNames(w.cfg.Path)
		return names, nil, err
	case source.FormatCSV:
		return tableNames(w.cfg.Path)
	}
	f, err := os.Open(w.cfg.Path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	search, err := parse.NewNames(namesConfig(w.cfg.Format, w.cfg.Filters))
	if err != nil {
		return nil, nil, err
	}
	if _, err := io.Copy(search, io.LimitReader(f, maxSearched)); err != nil {
		return nil, nil, err
	}
	search.End()
	return search.Names(), hintsOf(search), nil
}

// hintsOf are the hints of a search. Where nothing was found, the advice on the
// text as a whole stands under the empty name.
func hintsOf(search *parse.Names) map[string]string {
	hints := search.Hints()
	if advice := search.Advice(); advice != "" && len(search.Names()) == 0 {
		hints[""] = advice
	}
	return hints
}

// namesConfig is the search for the names in a text; its hints are for the
// command line.
func namesConfig(format string, filters []string) parse.NamesConfig {
	return parse.NamesConfig{Format: format, Filters: filters, MaxBytes: maxSearched, MaxNames: maxNames, Use: "add --"}
}

func (w *written) Trouble(err error) Trouble {
	t := plain(plainError(err, "wandb"), "file:"+w.cfg.Path)
	if t.Line = w.ends.line(t.Text); t.Line > 0 {
		t.Text = bytePlace.ReplaceAllString(t.Text, "")
	}
	return t
}

func plainError(err error, prefix string) error { return errors.New(plain(err, prefix).Text) }

func (w *written) Describe(r *Report) {
	r.Kind, r.Path, r.Format, r.Bytes = File, w.cfg.Path, w.cfg.Format, sizeOf(w.cfg.Path, func(e fs.DirEntry) bool {
		return e.Type().IsRegular() && (!strings.HasSuffix(w.cfg.Path, "/") || strings.HasSuffix(e.Name(), "."+strings.ToLower(w.cfg.Format)))
	})
}

// sizeOf is the size of a file, or of some files below a directory.
func sizeOf(path string, counts func(fs.DirEntry) bool) (sum int64) {
	// What cannot be looked at has been said by the source.
	_ = filepath.WalkDir(path, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || !counts(e) {
			return nil
		}
		if info, err := e.Info(); err == nil {
			sum += info.Size()
		}
		return nil
	})
	return sum
}

// lineEnds finds the numbers of lines by their places in a file.
type lineEnds struct {
	path  string
	at    int64 // what is before this was counted
	count int
}

var bytePlace = regexp.MustCompile(`^the line at byte (\d+)(?:: )?`)

// line is the number of the line that a message is about, or 0.
func (l *lineEnds) line(message string) int {
	m := bytePlace.FindStringSubmatch(message)
	if m == nil {
		return 0
	}
	place, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil {
		return 0
	}
	f, err := os.Open(l.path)
	if err != nil {
		return 0
	}
	defer f.Close()
	if place < l.at {
		l.at, l.count = 0, 0
	}
	between := io.NewSectionReader(f, l.at, place-l.at)
	buf := make([]byte, 64<<10)
	for {
		n, err := between.Read(buf)
		l.count += bytes.Count(buf[:n], []byte("\n"))
		if err != nil {
			break
		}
	}
	l.at = place
	return l.count + 1
}

// wandbNames are the names in all W&B files at a path.
func wandbNames(path string) (names []string, err error) {
	known := map[string]bool{}
	reader := parse.NewAnyWandb()
	err = filepath.WalkDir(path, func(file string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() || file != path && !strings.HasSuffix(e.Name(), ".wandb") {
			return err
		}
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		defer f.Close()
		for offset := int64(0); len(names) < maxNames; {
			next, err := reader.Read(f, offset, true, func(s parse.Sample) bool {
				if !known[s.Metric] {
					known[s.Metric] = true
					names = append(names, s.Metric)
				}
				return len(names) < maxNames
			})
			if !errors.Is(err, parse.ErrWandbRecord) || next <= offset {
				break // what is wrong with the file is said by the source
			}
			offset = next
		}
		return nil
	})
	return names, err
}

// tableNames are the columns of all tables at a path. The hint under the empty
// name says what separates the columns of a table that cannot be read.
func tableNames(path string) (names []string, hints map[string]string, err error) {
	hints = map[string]string{}
	err = filepath.WalkDir(path, func(file string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() || file != path && !strings.HasSuffix(file, ".csv") {
			return err
		}
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		defer f.Close()
		reader := csv.NewReader(io.LimitReader(f, maxHeader))
		reader.LazyQuotes = true
		header, err := reader.Read()
		if err != nil {
			return nil //nolint:nilerr // what is wrong with the table is said by the source
		}
		if separator := parse.Separator(header); separator != 0 {
			hints[""] = parse.NotCommas(separator)
			return nil
		}
		for _, name := range header {
			if name = strings.TrimSpace(strings.TrimPrefix(name, "\ufeff")); name != "" && !slices.Contains(names, name) && !parse.IsStep(name) && len(names) < maxNames {
				names = append(names, name)
			}
		}
		return nil
	})
	return names, hints, err
}

// endpoint is what a Prometheus client library serves.
type endpoint struct {
	url   string
	bytes int64
	names []string
	late  bool // the second answer
}

// scrapePatience is how long an answer may take, as in a trial.
const scrapePatience = 10 * time.Second

func (e *endpoint) Source(metrics []string) (collector.Source, error) {
	return source.NewScrape(source.ScrapeConfig{URL: e.url, Metrics: metrics, LastPatience: scrapePatience, Drain: ended(), Clock: timeless})
}

func (e *endpoint) Trouble(err error) Trouble {
	e.late = e.late || errors.Is(err, context.DeadlineExceeded)
	return plain(err, "prometheus")
}

// hint implements hinter.
func (e *endpoint) hint(name string) string {
	base, _, labels := strings.Cut(name, "{")
	switch {
	case !slices.Contains(e.names, strings.TrimSpace(base)):
		return ""
	case e.late:
		return fmt.Sprintf("the address showed %s, and did not answer again within %s", base, scrapePatience)
	case labels:
		return base + " is there, with other labels"
	}
	return ""
}

func (e *endpoint) Describe(r *Report) { r.Kind, r.Path, r.Bytes = PrometheusMetric, e.url, e.bytes }

func (e *endpoint) Names(ctx context.Context) (names []string, hints map[string]string, err error) {
	names, e.bytes, err = source.ScrapeNames(ctx, e.url)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrNothing, err)
	}
	slices.Sort(names)
	e.names = names
	return names, nil, nil
}
