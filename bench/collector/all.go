package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

const pageHead = `# The collector's benchmark

Written by ` + "`make bench-collector`" + `; the figures are also in [benchmarks/](benchmarks/) as CSV. Rates are per second of CPU time over all threads, so waiting for a core does not count. The speed of the core does: on the machine used here, the same code could take twice as long from one minute to the next, with nothing else running, and the ranges show it. A parser reads from memory; a source reads the file, as the sidecar does. Each cell is the median of the rounds, with the range.
`

const peersNote = `The readers take turns on the same files, and ratios are per round. Python's start-up is not counted, and Python gets a twentieth of the data. The data server keeps 1,000 values of each tag and also serves images and graphs; our reader yields every value of the requested tags and nothing else. Katib's collector is not part of this run: its text parser was measured elsewhere at 12 to 25 MB/s when every line matches, and its TensorFlow collector uses TensorFlow's Python package.
`

const sidecarNote = `A real sidecar (` + "`collector run`" + `) reads the input, which is written in pieces of 256 MB that are removed after reading, and reports to a real service with SQLite, with the default cap on the rate. Resident memory includes the program's own pages, about 9 MiB. The idle sidecar is measured afterwards.
`

const loadNote = `One process simulates the sidecars, each with its own client, token and connection; the report service is another process. Lag is the time from when a point was due until its storage is acknowledged. Both processes, and the database if there is one, share the machine's cores.
`

// largeInput is how much one sidecar reads, in bytes.
const largeInput = 10e9

// allConfig is everything.
type allConfig struct {
	read    readConfig
	sidecar sidecarConfig
	venv    string
	stores  []string
	seconds int
	docs    string
}

func allCommand(ctx context.Context, args []string, out io.Writer) error {
	var cfg allConfig
	flags := cfg.read.flags("all")
	cfg.sidecar.register(flags)
	flags.StringVar(&cfg.venv, "venv", venvPath, "Python environment with TensorBoard; made if it is not there")
	flags.StringVar(&cfg.docs, "docs", "docs", "folder of the page")
	flags.IntVar(&cfg.seconds, "seconds", 60, "how long each store is loaded")
	flags.Func("store", "URL of an empty store to load beside SQLite; may be repeated", func(s string) error {
		cfg.stores = append(cfg.stores, s)
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return err
	}
	return cfg.run(ctx, out)
}

func (cfg allConfig) run(ctx context.Context, out io.Writer) error {
	page := &page{folder: cfg.docs}
	fmt.Fprintf(&page.text, "%s\n%s, %d cores, %s, %s.\n", pageHead, processor(), runtime.NumCPU(), runtime.Version(), time.Now().UTC().Format(time.DateOnly))
	fmt.Fprintln(out, "reading")
	read, err := cfg.read.read(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "reading beside TensorBoard")
	peers, versions, err := cfg.read.peers(ctx, cfg.venv)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "the sidecar")
	sidecar, err := cfg.sidecar.measure(ctx)
	if err != nil {
		return err
	}
	large := cfg.sidecar // does memory grow with the input?
	large.only, large.bytes = "TFEvent v1", largeInput
	more, err := large.measure(ctx)
	if err != nil {
		return err
	}
	sidecar.rows = append(sidecar.rows, more.rows...)
	fmt.Fprintln(out, "the report service")
	loads, failures := cfg.load(ctx)
	err = errors.Join(
		page.section("Reading", "", "read", read),
		page.section("Beside TensorBoard", peersNote+"\n"+versions+".\n", "peers", peers),
		page.section("The sidecar", sidecarNote, "sidecar", sidecar),
		page.section("A thousand trials", loadNote, "load", loads),
		os.WriteFile(filepath.Join(cfg.docs, "benchmarks-collector.md"), []byte(page.text.String()), 0o644))
	if err == nil {
		fmt.Fprint(out, page.text.String())
	}
	return errors.Join(err, failures)
}

// load loads SQLite and the other stores. What fails is in the table and in the
// error.
func (cfg allConfig) load(ctx context.Context) (rows table, failures error) {
	rows = table{header: loadHeader}
	dir, err := os.MkdirTemp("", "bench-load-*")
	if err != nil {
		return rows, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	for _, url := range append([]string{"sqlite:" + filepath.Join(dir, "points.db")}, cfg.stores...) {
		load := loadConfig{store: url, trials: 1000, metrics: 10, seconds: cfg.seconds, maxLag: 2 * time.Second}
		r, err := load.measure(ctx)
		if err == nil {
			rows.add(r.row()...)
			err = r.check()
		}
		if err != nil {
			failures = errors.Join(failures, fmt.Errorf("load of %s: %w", scheme(url), err))
		}
	}
	return rows, failures
}

// page is the page being written.
type page struct {
	folder string
	text   strings.Builder
}

// section adds a table, and writes it as CSV too.
func (p *page) section(title, note, name string, rows table) error {
	fmt.Fprintf(&p.text, "\n## %s\n\n", title)
	if note != "" {
		fmt.Fprintf(&p.text, "%s\n", note)
	}
	if err := rows.markdown(&p.text); err != nil {
		return err
	}
	folder := filepath.Join(p.folder, "benchmarks")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(folder, "collector-"+name+".csv"))
	if err != nil {
		return err
	}
	return errors.Join(rows.csv(f), f.Close())
}

// processor is the name that the system gives to it.
func processor() string {
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	for line := range strings.Lines(string(info)) {
		if name, ok := strings.CutPrefix(line, "model name"); ok {
			return strings.TrimLeft(strings.TrimSpace(name), ": \t")
		}
	}
	return runtime.GOARCH
}
