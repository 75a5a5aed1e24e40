package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/parse"
	"github.com/vernier-ml/vernier/collector/report"
	"github.com/vernier-ml/vernier/collector/source"
)

// Files of the sidecar in the shared directory.
const (
	fileState = "file.state" // what the File kind remembers
	csvState  = "csv.state"  // and what it remembers of tables
)

// formatCSV is the format of a table, which is no format of lines.
const formatCSV = "CSV"

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
	return kind{}, fmt.Errorf("--%s is %q; it must be one of %s", report.FlagKind, name, strings.Join(names, ", "))
}

func (k kind) check(cfg runConfig) error {
	if k.needsPath && cfg.path == "" {
		return fmt.Errorf("--%s is needed for --%s=%s", report.FlagPath, report.FlagKind, k.name)
	}
	if k.name == "File" && cfg.format == formatCSV {
		_, err := parse.NewCSV(cfg.metrics)
		return err
	}
	_, err := newParser(cfg)
	return err
}

func newParser(cfg runConfig) (parse.Line, error) {
	switch cfg.format {
	case "TEXT":
		return parse.NewText(cfg.metrics, cfg.filters)
	case "JSON":
		return parse.NewJSON(cfg.metrics)
	case "LOGFMT":
		return parse.NewLogfmt(cfg.metrics)
	}
	return nil, fmt.Errorf("--%s is %q; it must be TEXT, JSON, LOGFMT, or CSV with --%s=File", report.FlagFormat, cfg.format, report.FlagKind)
}

func prepareStdOut(_ context.Context, j job) (opener, error) {
	parser, err := newParser(j.cfg)
	if err != nil {
		return nil, err
	}
	return func(acked map[string]int64) ([]collector.Source, error) {
		return one(source.NewStream(source.StreamConfig{
			Dir: filepath.Join(j.dir, streamName), Parser: parser, From: acked["stdout"], Drain: j.drain}))
	}, nil
}

func prepareFile(_ context.Context, j job) (opener, error) {
	if j.cfg.format == formatCSV {
		return func(map[string]int64) ([]collector.Source, error) {
			return one(source.NewCSV(source.CSVConfig{
				Path: j.cfg.path, Metrics: j.cfg.metrics, State: filepath.Join(j.cfg.dir, csvState), Drain: j.drain}))
		}, nil
	}
	parser, err := newParser(j.cfg)
	if err != nil {
		return nil, err
	}
	return func(map[string]int64) ([]collector.Source, error) {
		return one(source.NewFile(source.FileConfig{
			Path: j.cfg.path, Parser: parser, State: filepath.Join(j.cfg.dir, fileState), Drain: j.drain}))
	}, nil
}

func one[S collector.Source](s S, err error) ([]collector.Source, error) {
	return []collector.Source{s}, err
}
