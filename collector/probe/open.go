package probe

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/vernier-ml/vernier/collector/parse"
	"github.com/vernier-ml/vernier/collector/source/file"
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
	if cfg.Format != "" && !slices.Contains(Formats(), cfg.Format) {
		return nil, fmt.Errorf("the format %q is not known; there are %s", cfg.Format, strings.Join(Formats(), ", "))
	}
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
	return openFile(cfg)
}

// openFile finds out what a file is. It is read alone, whatever lies beside it.
func openFile(cfg Config) (Target, error) {
	real, err := filepath.EvalSymlinks(cfg.Path) // of a link's name only what it leads to is known
	if err != nil {
		return nil, err
	}
	binary := ""
	if cfg.Format == "" {
		if binary, err = guessBinary(cfg.Path); err != nil {
			return nil, err
		}
	}
	switch {
	case binary == TensorFlowEvent:
		return newEvents(filepath.Dir(real), filepath.Base(real)), nil
	case binary == file.FormatWandb, cfg.Format == file.FormatWandb:
		cfg.Path, cfg.Format = real, file.FormatWandb
	case cfg.Format == "" && strings.HasSuffix(cfg.Path, ".csv"):
		cfg.Format = file.FormatCSV
	case cfg.Format == "":
		if cfg.Format, err = guess(cfg.Path, cfg.Filters); err != nil {
			return nil, err
		}
	}
	return newWritten(cfg)
}

// Formats are what Config.Format may be.
func Formats() []string { return append(parse.Formats(), file.FormatCSV, file.FormatWandb) }
