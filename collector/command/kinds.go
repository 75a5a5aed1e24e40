package command

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

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

// opener makes the sources of an attempt once it is known what was acknowledged.
type opener func(acked map[string]int64) ([]collector.Source, error)

// kind is a way to measure.
type kind struct {
	name string
	// wraps: the program is run by "collector exec".
	wraps bool
	// needsPath: --path must be given.
	needsPath bool
	// splitsFiles: further starts of the program are told apart by what is in its files.
	splitsFiles bool
	// prepare does what cannot wait for the service.
	prepare func(ctx context.Context, r *runner, a *attempt) (opener, error)
}

// kinds are all ways to measure, by name.
func kinds() []kind {
	return []kind{
		{name: "File", needsPath: true, splitsFiles: true, prepare: prepareFile},
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
		_, err = file.Open(written(cfg, &attempt{}))
	}
	if err != nil {
		return fmt.Errorf("--%s=%s: %w", contract.FlagFormat, cfg.format, err)
	}
	return nil
}

func prepareStdOut(_ context.Context, r *runner, a *attempt) (opener, error) {
	return func(acked map[string]int64) ([]collector.Source, error) {
		s, err := file.OpenStream(file.Config{
			Path: filepath.Join(a.dir, streamName), Format: r.cfg.format, Metrics: r.cfg.metrics, Filters: r.cfg.filters, Explain: true,
			From: acked["stdout"], Drain: a.over.Done(), Echo: r.cfg.echo})
		return []collector.Source{s}, err
	}, nil
}

func prepareFile(_ context.Context, r *runner, a *attempt) (opener, error) {
	var first *source.Before
	var err error
	if a.n == 0 {
		first, err = before(r.cfg, readableTable)
	} else {
		first, err = source.RecordBefore(r.cfg.path, filepath.Join(a.dir, fileBefore), true, readableTable)
	}
	if err == nil {
		err = writeEnv(r.cfg, nil)
	}
	if err != nil {
		return nil, err
	}
	return func(map[string]int64) ([]collector.Source, error) {
		w := written(r.cfg, a)
		w.Before, w.Until, w.Drain = first, a.until.Load, a.over.Done()
		s, err := file.Open(w)
		return []collector.Source{&readToEnd{s, a.read}}, err
	}, nil
}

// readableTable says which files of a directory the File kind reads.
func readableTable(name string) bool { return file.IsTable(name) || wandb.IsRunFile(name) }

// before looks at what the program will find. The program starts once the
// sidecar is ready, and not before.
func before(cfg runConfig, readable func(name string) bool) (*source.Before, error) {
	_, err := os.Stat(filepath.Join(cfg.dir, readyName))
	return source.RecordBefore(cfg.path, filepath.Join(cfg.dir, fileBefore), err == nil, readable)
}

// written is what the File kind reads.
func written(cfg runConfig, a *attempt) file.Config {
	state := fileState
	if a.n > 0 {
		state += "." + strconv.Itoa(a.n)
	}
	return file.Config{
		Path: cfg.path, Format: cfg.format, Metrics: cfg.metrics, Filters: cfg.filters, Explain: true,
		State: filepath.Join(cfg.dir, state), Echo: cfg.echo,
	}
}
