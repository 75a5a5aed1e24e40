package probe

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/vernier-ml/vernier/collector/parse"
	"github.com/vernier-ml/vernier/collector/source"
)

// Config says what is probed.
type Config struct {
	// Path is a file, a directory, or the address of an endpoint.
	Path string
	// Format of lines or of a directory; empty means that it is guessed.
	Format string
	// Filters find metrics in text.
	Filters []string
}

// Open finds out what there is at a path.
func Open(cfg Config) (Target, error) {
	if strings.HasPrefix(cfg.Path, "http://") || strings.HasPrefix(cfg.Path, "https://") {
		return &endpoint{url: cfg.Path}, nil
	}
	info, err := os.Stat(cfg.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w: %s does not exist", ErrNothing, cfg.Path)
	case err != nil:
		return nil, err
	case info.IsDir():
		return openDir(cfg)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is neither a file nor a directory", cfg.Path)
	}
	switch base := filepath.Base(cfg.Path); {
	case strings.Contains(base, "tfevents"), strings.HasSuffix(base, ".wandb"):
		cfg.Path = filepath.Dir(cfg.Path) // the collector reads directories of them
		return openDir(cfg)
	}
	if cfg.Format == "" && strings.HasSuffix(cfg.Path, ".csv") {
		cfg.Format = source.FormatCSV
	}
	if cfg.Format == "" {
		if cfg.Format, err = guess(cfg.Path); err != nil {
			return nil, err
		}
	}
	return newWritten(cfg)
}

// openDir finds out what a directory holds.
func openDir(cfg Config) (Target, error) {
	events, wandb, tables := 0, 0, 0
	err := filepath.WalkDir(cfg.Path, func(_ string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case !e.Type().IsRegular():
		case strings.Contains(e.Name(), "tfevents"):
			events++
		case strings.HasSuffix(e.Name(), ".wandb"):
			wandb++
		case strings.HasSuffix(e.Name(), ".csv"):
			tables++
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	switch {
	case cfg.Format == "" && events > 0:
		return &eventDir{dir: cfg.Path}, nil
	case cfg.Format == "" && wandb > 0:
		cfg.Format = source.FormatWandb
	case cfg.Format == "" && tables > 0:
		cfg.Format = source.FormatCSV
	case cfg.Format == "":
		return nil, fmt.Errorf("%w: %s holds no event files (*tfevents*), W&B files (*.wandb) or tables (*.csv); name a file in it", ErrNothing, cfg.Path)
	}
	cfg.Path = strings.TrimRight(cfg.Path, "/") + "/"
	return newWritten(cfg)
}

// guess looks at the first characters of a file.
func guess(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, 4096))
	if err != nil {
		return "", err
	}
	if strings.HasPrefix(strings.TrimLeft(string(b), " \t\r\n\ufeff"), "{") {
		return parse.FormatJSON, nil
	}
	return parse.FormatText, nil
}
