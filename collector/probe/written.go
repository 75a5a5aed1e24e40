package probe

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/parse"
	"github.com/vernier-ml/vernier/collector/source"
	"github.com/vernier-ml/vernier/collector/source/file"
	"github.com/vernier-ml/vernier/collector/source/wandb"
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

// names collects names, each once.
type names struct {
	list  []string
	known map[string]bool
}

func (n *names) add(name string) {
	if n.known == nil {
		n.known = map[string]bool{}
	}
	if len(n.list) < maxNames && !n.known[name] {
		n.known[name] = true
		n.list = append(n.list, name)
	}
}

// eachFile opens the files that are read: the one at the path, or those below it
// whose base name is one of a kind. It returns their size.
func eachFile(ctx context.Context, path string, kind func(base string) bool, visit func(path string, f *os.File) error) (size int64, err error) {
	err = filepath.WalkDir(path, func(file string, e fs.DirEntry, err error) error {
		if err = cmp.Or(err, ctx.Err()); err != nil || !e.Type().IsRegular() || file != path && !kind(e.Name()) {
			return err
		}
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		defer f.Close()
		if info, err := f.Stat(); err == nil {
			size += info.Size()
		}
		return visit(file, f)
	})
	return size, err
}

// written is a file of lines, a table, or a file of W&B's, or a directory of
// these two.
type written struct {
	cfg    Config
	passed []Passed // what else the directory holds
	bytes  int64
}

func newWritten(cfg Config) (*written, error) {
	w := &written{cfg: cfg}
	_, err := w.Source([]string{"metric"}) // so that what does not go together is said first
	return w, err
}

func (w *written) Source(metrics []string) (collector.Source, error) {
	if w.cfg.Format == file.FormatWandb && !strings.HasSuffix(w.cfg.Path, "/") {
		// A trial reads the directory; here the user has named one file of it.
		dir, base := filepath.Split(w.cfg.Path)
		return wandb.New(wandb.Config{Dir: cmp.Or(dir, "."), Only: base, Metrics: metrics, Drain: ended(), Clock: timeless})
	}
	return file.Open(file.Config{
		Path: w.cfg.Path, Format: w.cfg.Format, Metrics: metrics, Filters: w.cfg.Filters, Drain: ended(), Clock: timeless,
	})
}

func (w *written) Names(ctx context.Context) (found []string, hints map[string]string, err error) {
	visit := w.lineNames
	switch w.cfg.Format {
	case file.FormatWandb:
		visit = wandbNames
	case file.FormatCSV:
		visit = tableNames
	}
	all, hints := names{}, map[string]string{}
	w.bytes, err = eachFile(ctx, w.cfg.Path, w.isRead, func(_ string, f *os.File) error { return visit(f, &all, hints) })
	return all.list, hints, err
}

// isRead says which files below a directory are read.
func (w *written) isRead(base string) bool {
	return strings.HasSuffix(base, "."+strings.ToLower(w.cfg.Format))
}

// lineNames finds names in lines.
func (w *written) lineNames(f *os.File, all *names, hints map[string]string) error {
	search, err := parse.NewNames(namesConfig(w.cfg.Format, w.cfg.Filters))
	if err != nil {
		return err
	}
	if _, err := io.Copy(search, io.LimitReader(f, maxSearched)); err != nil {
		return err
	}
	search.End()
	all.list = search.Names()
	for name, hint := range hintsOf(search) {
		hints[name] = hint
	}
	return nil
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
	return parse.NamesConfig{Format: format, Filters: filters, MaxBytes: maxSearched, MaxNames: maxNames, Flags: true}
}

// wandbNames finds the names in a W&B file.
func wandbNames(f *os.File, all *names, _ map[string]string) error {
	for _, name := range parse.WandbNames(f, maxNames) {
		all.add(name)
	}
	return nil
}

// tableNames finds the columns of a table. The hint under the empty name says what
// separates the columns of one that cannot be read.
func tableNames(f *os.File, all *names, hints map[string]string) error {
	head, err := io.ReadAll(io.LimitReader(f, maxHeader))
	if err != nil {
		return err
	}
	table := parse.NewCSV(nil)
	for n := 1; n > 0 && table.Columns() == nil; head = head[n:] {
		var record []byte
		record, n = parse.CSVRecord(append(head, '\n'))
		n = min(n, len(head))
		_, _ = table.Parse(nil, record) // a header has no values
	}
	if separator := parse.Separator(table.Columns()); separator != 0 {
		hints[""] = parse.NotCommas(separator)
		return nil
	}
	for _, name := range table.Columns() {
		if name != "" && !parse.IsStep(name) {
			all.add(name)
		}
	}
	return nil
}

var bytePlace = regexp.MustCompile(`^the line at byte (\d+)(?:: )?`)

// locate says of a trouble at which line it was.
func (w *written) locate(t *Trouble) {
	t.Text = strings.TrimPrefix(t.Text, "file:"+w.cfg.Path+": ")
	if m := bytePlace.FindStringSubmatch(t.Text); m != nil {
		place, _ := strconv.ParseInt(m[1], 10, 64) // digits, of a place in a file
		if before := w.linesBefore(place); before >= 0 {
			t.Line, t.Text = before+1, t.Text[len(m[0]):]
		}
	}
}

// linesBefore counts the lines before a place in the file; -1 when it cannot be
// read.
func (w *written) linesBefore(place int64) int {
	f, err := os.Open(w.cfg.Path)
	if err != nil {
		return -1
	}
	defer f.Close()
	count := 0
	for before, buf := io.LimitReader(f, place), make([]byte, 64<<10); ; {
		n, err := before.Read(buf)
		count += bytes.Count(buf[:n], []byte("\n"))
		if err != nil {
			return count
		}
	}
}

func (w *written) Describe(r *Report) {
	r.Kind, r.Path, r.Format, r.PassedOver, r.Bytes = File, w.cfg.Path, w.cfg.Format, w.passed, w.bytes
	for i := range r.Troubles {
		w.locate(&r.Troubles[i])
	}
}
