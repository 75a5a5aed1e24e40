package source

import (
	"errors"
	"fmt"
	"path/filepath"
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
