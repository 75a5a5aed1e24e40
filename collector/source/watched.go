package source

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
)

// watchedDir returns where a directory that is watched lies, wherever this
// process goes. It need not exist yet.
func watchedDir(dir string) (string, error) {
	if dir == "" {
		return "", errors.New("no directory is named")
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("directory %s: %w", dir, err)
	}
	return abs, nil
}

// newFiles finds the regular files below a directory whose names have an ending,
// each once. Links are not followed.
type newFiles struct {
	dir, ending string
	limit       int    // of files
	what        string // they are called, in the plural
	known       map[string]bool
}

// walk tells found of the files that are new, by their paths, and trouble of what
// is in the way, until either returns false.
func (n *newFiles) walk(ctx context.Context, found func(path string) bool, trouble func(error) bool) (ok bool) {
	ok = true
	err := filepath.WalkDir(n.dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil || !ok:
			return fs.SkipAll
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			ok = trouble(err)
			return nil
		case !e.Type().IsRegular() || !strings.HasSuffix(e.Name(), n.ending) || n.known[path]:
			return nil
		case len(n.known) == n.limit:
			ok = trouble(fmt.Errorf("there are more than %d %s below %s; the rest is not read", n.limit, n.what, n.dir))
			return fs.SkipAll
		}
		n.known[path] = true
		ok = found(path)
		return nil
	})
	if err != nil {
		ok = ok && trouble(err)
	}
	return ok
}

// maxTroubles bounds the errors that one source yields.
const maxTroubles = 1000

// troubles are the errors that a source has yielded.
type troubles map[string]bool

// news reports whether an error is to be yielded, and takes note of it: each is
// told once.
func (t troubles) news(err error) bool {
	text := err.Error()
	if t[text] || len(t) >= maxTroubles {
		return false
	}
	t[text] = true
	return true
}
