package report

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/vernier-ml/vernier/bench/suggest/play"
	"github.com/vernier-ml/vernier/bench/suggest/stat"
)

// The markers in the page between which the report is written.
const (
	begin = "<!-- suggest: begin -->"
	end   = "<!-- suggest: end -->"
)

// Options of a report.
type Options struct {
	// Page to write into, between its markers.
	Page string
	// Folder for plots and the tables of single tasks.
	Folder string
	// Pages is the folder with a page for each algorithm, to write into between
	// the same markers; empty: none.
	Pages string
}

// Write the report.
func Write(records []play.Record, o Options) error {
	records = newest(records)
	b := newBook(records)
	var p page
	preamble := preamble(records)
	p.line("%s\n", preamble)
	if err := os.MkdirAll(o.Folder, 0o755); err != nil {
		return err
	}
	plots, err := filepath.Rel(filepath.Dir(o.Page), o.Folder)
	if err != nil {
		return fmt.Errorf("from page %s to folder %s: %w", o.Page, o.Folder, err)
	}
	b.extents(&p)
	for _, g := range Groups() {
		b.section(&p, g, filepath.ToSlash(plots))
		if err := b.plot(g, filepath.Join(o.Folder, g.Name+".svg")); err != nil {
			return err
		}
	}
	b.againstRandom(&p)
	if o.Pages != "" {
		if err := b.pages(o.Pages, filepath.Join(o.Folder, "algorithms.csv"), preamble); err != nil {
			return err
		}
	}
	if err := writeCSV(filepath.Join(o.Folder, "suggest.csv"), b.lines()); err != nil {
		return err
	}
	return splice(o.Page, p.String())
}

// newest keeps of each method, in each regime, the records of the version that
// came last.
func newest(records []play.Record) []play.Record {
	version := map[[2]string]string{}
	for _, r := range records {
		version[[2]string{r.Method, r.Regime}] = r.Version
	}
	return slices.DeleteFunc(slices.Clone(records), func(r play.Record) bool { return version[[2]string{r.Method, r.Regime}] != r.Version })
}

// splice puts text between the markers of a page, which is made when there is
// none.
func splice(name, text string) error {
	old, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		old, err = []byte(begin+"\n"+end+"\n"), nil
	}
	if err != nil {
		return err
	}
	head, rest, ok := bytes.Cut(old, []byte(begin))
	_, tail, ok2 := bytes.Cut(rest, []byte(end))
	if !ok || !ok2 {
		return fmt.Errorf("%s has no lines %q and %q to write between", name, begin, end)
	}
	return os.WriteFile(name, []byte(string(head)+begin+"\n\n"+text+end+string(tail)), 0o644)
}

func preamble(records []play.Record) string {
	var versions []string
	for _, r := range records {
		if ours(r.Version) && !slices.Contains(versions, r.Version) {
			versions = append(versions, r.Version)
		}
	}
	return fmt.Sprintf("Written %s on %d cores (%s/%s), %d games; ours: %v.", time.Now().UTC().Format(time.DateOnly), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, len(records), versions)
}

// lines are the head of a table, and a line for each task and method.
func (b *book) lines() [][]string {
	out := [][]string{{"problem", "regime", "budget", "method", "version", "seeds", "median_regret", "mean_score", "mean_auc", "success", "cpu_p50_ms", "cpu_p95_ms", "errors", "last_error"}}
	for _, t := range slices.SortedFunc(maps.Keys(b.games), task.compare) {
		methods := map[string][]game{}
		for _, g := range b.games[t] {
			methods[g.Method] = append(methods[g.Method], g)
		}
		for _, m := range slices.Sorted(maps.Keys(methods)) {
			r := rowOf(m, map[task][]game{t: methods[m]}, []task{t})
			var regrets []float64
			for _, g := range methods[m] {
				regrets = append(regrets, g.regret)
			}
			out = append(out, []string{
				t.problem, t.regime, strconv.Itoa(t.budget), m, r.version, strconv.Itoa(r.games), number(stat.Median(regrets)),
				number(r.score), number(r.auc), number(r.success), number(1e3 * r.cpu), number(1e3 * r.tail), strconv.Itoa(r.errors), short(r.why),
			})
		}
	}
	return out
}

func writeCSV(name string, lines [][]string) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(csv.NewWriter(file).WriteAll(lines), file.Close())
}

// Print shows what each method did on each task whose optimum is known.
func Print(out io.Writer, records []play.Record) error {
	lines := newBook(records).lines()
	if len(lines) == 1 {
		return nil
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, line := range lines {
		fmt.Fprintln(w, strings.Join(line, "\t"))
	}
	return w.Flush()
}

func number(x float64) string { return strconv.FormatFloat(x, 'g', 4, 64) }
