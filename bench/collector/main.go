// Command collector (bench/collector) measures the collector: how fast it reads,
// beside TensorBoard's own readers in the same run; what the sidecar takes; and
// how the report service bears a thousand trials at once. It writes
// docs/benchmarks-collector.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
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

// config is what the flags say.
type config struct {
	only, docs, dir string
	// Reading: megabytes of each kind of data, and rounds.
	mb     int64
	rounds int
	venv   string
	// The sidecar: its program, gigabytes of each kind of input, and how long the
	// idle one is watched.
	collector string
	gb        float64
	idle      time.Duration
	load      loadConfig
	stores    []string
}

func (cfg *config) parse(args []string) error {
	flags := flag.NewFlagSet("bench/collector", flag.ContinueOnError)
	flags.StringVar(&cfg.only, "only", "", "some of read, peers, sidecar and load, separated by commas: they are printed, and the page stays as it is")
	flags.StringVar(&cfg.docs, "docs", "docs", "folder of the page")
	flags.StringVar(&cfg.dir, "dir", os.TempDir(), "where data is written; 600 MB free are needed")
	flags.Int64Var(&cfg.mb, "mb", 200, "megabytes of each kind of data to read")
	flags.IntVar(&cfg.rounds, "rounds", 5, "rounds of reading; the tables have the median and the range")
	flags.StringVar(&cfg.venv, "venv", "bin/venv-tensorboard", "Python environment with TensorBoard; made if it is not there")
	flags.StringVar(&cfg.collector, "collector", "bin/collector", "the collector")
	flags.Float64Var(&cfg.gb, "gb", 10, "gigabytes of each kind of input for the sidecar")
	flags.DurationVar(&cfg.idle, "idle", 20*time.Second, "how long the idle sidecar is watched")
	flags.IntVar(&cfg.load.trials, "trials", 1000, "trials at once, each with a connection of its own")
	flags.IntVar(&cfg.load.metrics, "metrics", 10, "metrics that each reports every second")
	flags.IntVar(&cfg.load.seconds, "seconds", 60, "how long each store is loaded")
	flags.DurationVar(&cfg.load.maxLag, "max-lag", 2*time.Second, "fail when a point takes longer")
	flags.Func("store", "URL of an empty store to load beside SQLite; may be repeated", func(s string) error {
		cfg.stores = append(cfg.stores, s)
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return err
	}
	if cfg.load.trials < 1 || cfg.load.metrics < 1 || cfg.load.seconds < 1 || cfg.rounds < 1 {
		return errors.New("trials, metrics, seconds and rounds must be positive")
	}
	return nil
}

// section is a part of the page.
type section struct {
	name, title, note string
	measure           func(context.Context) (rows table, remark string, err error)
}

func (cfg config) sections() ([]section, error) {
	all := []section{
		{"read", "Reading", "", cfg.read},
		{"peers", "Beside TensorBoard", peersNote, cfg.peers},
		{"sidecar", "The sidecar", sidecarNote, cfg.sidecars},
		{"load", "A thousand trials", loadNote, cfg.loads},
	}
	if cfg.only == "" {
		return all, nil
	}
	var chosen []section
	for name := range strings.SplitSeq(cfg.only, ",") {
		i := slices.IndexFunc(all, func(s section) bool { return s.name == name })
		if i < 0 {
			return nil, fmt.Errorf("-only %s: there are read, peers, sidecar and load", name)
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench/collector:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) > 0 && args[0] == "serve" {
		return serve(ctx, args[1:], out)
	}
	var cfg config
	if err := cfg.parse(args); err != nil {
		return err
	}
	sections, err := cfg.sections()
	if err != nil {
		return err
	}
	page := fmt.Sprintf("%s\n%s, %d cores, %s, %s.\n", pageHead, processor(), runtime.NumCPU(), runtime.Version(), time.Now().UTC().Format(time.DateOnly))
	fmt.Fprint(out, page)
	tables := filepath.Join(cfg.docs, "benchmarks")
	var failures error
	for _, s := range sections {
		rows, remark, err := s.measure(ctx)
		if len(rows) < 2 {
			return errors.Join(failures, err)
		}
		failures = errors.Join(failures, err)
		text := fmt.Sprintf("\n## %s\n", s.title)
		for _, part := range []string{s.note, remark, rows.markdown()} {
			if part != "" {
				text += "\n" + part
			}
		}
		fmt.Fprint(out, text)
		page += text
		if cfg.only == "" {
			failures = errors.Join(failures, os.MkdirAll(tables, 0o755), rows.writeCSV(filepath.Join(tables, "collector-"+s.name+".csv")))
		}
	}
	if cfg.only == "" {
		failures = errors.Join(failures, os.WriteFile(filepath.Join(cfg.docs, "benchmarks-collector.md"), []byte(page), 0o644))
	}
	return failures
}

// processor is the name that the system gives to it.
func processor() string {
	info, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(info)) {
		if name, ok := strings.CutPrefix(line, "model name"); ok {
			return strings.TrimLeft(strings.TrimSpace(name), ": \t")
		}
	}
	return runtime.GOARCH
}
