package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/contract"
	"github.com/vernier-ml/vernier/collector/parse"
	"github.com/vernier-ml/vernier/collector/source"
	"github.com/vernier-ml/vernier/collector/source/file"
	"github.com/vernier-ml/vernier/collector/source/wandb"
)

// fileState is a file of the sidecar in the shared directory.
const (
	fileState  = "file.state"  // what the File kind remembers
	fileBefore = "before.json" // what was there before the program started
)

// job is one attempt whose points are to be found.
type job struct {
	cfg   runConfig
	dir   string // of the attempt
	drain <-chan struct{}
	// next reports a further attempt, which the kind has seen begin.
	next func(n int, started time.Time, s collector.Source)
}

// opener makes the sources of a job once it is known what was acknowledged.
type opener func(acked map[string]int64) ([]collector.Source, error)

// kind is a way to measure.
type kind struct {
	name string
	// wraps: the program is run by "collector exec".
	wraps bool
	// needsPath: --path must be given.
	needsPath bool
	// prepare does what cannot wait for the service.
	prepare func(ctx context.Context, j job) (opener, error)
}

// kinds are all ways to measure, by name.
func kinds() []kind {
	return []kind{
		{name: "File", needsPath: true, prepare: prepareFile},
		{name: "PrometheusMetric", prepare: prepareScrape},
		{name: "Push", prepare: preparePush},
		{name: "StdOut", wraps: true, prepare: prepareStdOut},
		{name: "TensorFlowEvent", needsPath: true, prepare: prepareEvents},
	}
}

func kindNamed(name string) (kind, error) {
	var names []string
	for _, k := range kinds() {
		if k.name == name {
			return k, nil
		}
		names = append(names, k.name)
	}
	return kind{}, fmt.Errorf("--%s is %q; it must be one of %s", contract.FlagKind, name, strings.Join(names, ", "))
}

func (k kind) check(cfg runConfig) error {
	if k.needsPath && cfg.path == "" {
		return fmt.Errorf("--%s is needed for --%s=%s", contract.FlagPath, contract.FlagKind, k.name)
	}
	var err error
	switch k.name {
	case "StdOut":
		if _, err = parse.NewLine(cfg.format, cfg.metrics, cfg.filters); err != nil {
			err = fmt.Errorf("%w, and %s with --%s=File", err, file.FormatCSV, contract.FlagKind)
		}
	case "File":
		_, err = file.Open(written(job{cfg: cfg}))
	}
	if err != nil {
		return fmt.Errorf("--%s=%s: %w", contract.FlagFormat, cfg.format, err)
	}
	return nil
}

func prepareStdOut(_ context.Context, j job) (opener, error) {
	parser, err := parse.NewLine(j.cfg.format, j.cfg.metrics, j.cfg.filters)
	if err != nil {
		return nil, err
	}
	return func(acked map[string]int64) ([]collector.Source, error) {
		return one(file.NewStream(file.StreamConfig{
			Dir: filepath.Join(j.dir, streamName), Parser: parser, From: acked["stdout"], Drain: j.drain,
			EndedWell: func() bool { return endedWell(j.dir) }, Echo: j.cfg.echo,
			Wanted: &file.Wanted{Format: j.cfg.format, Metrics: j.cfg.metrics, Filters: j.cfg.filters}}))
	}, nil
}

func prepareFile(_ context.Context, j job) (opener, error) {
	before, err := before(j.cfg, func(name string) bool { return file.IsTable(name) || wandb.IsRunFile(name) })
	if err != nil {
		return nil, err
	}
	return func(map[string]int64) ([]collector.Source, error) {
		w := written(j)
		w.Before = before
		return one(file.Open(w))
	}, nil
}

// before looks at what the program will find. The program starts once the
// sidecar is ready, and not before.
func before(cfg runConfig, readable func(name string) bool) (*source.Before, error) {
	_, err := os.Stat(filepath.Join(cfg.dir, readyName))
	return source.RecordBefore(cfg.path, filepath.Join(cfg.dir, fileBefore), err == nil, readable)
}

// written is what the File kind reads.
func written(j job) file.Written {
	return file.Written{
		Path: j.cfg.path, Format: j.cfg.format, Metrics: j.cfg.metrics, Filters: j.cfg.filters, Explain: true,
		State: filepath.Join(j.cfg.dir, fileState), Drain: j.drain, Echo: j.cfg.echo,
	}
}

func one[S collector.Source](s S, err error) ([]collector.Source, error) {
	return []collector.Source{s}, err
}
