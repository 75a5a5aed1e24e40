package agent

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// RemoveTree removes a directory and all that is below it, also directories that trials
// made read-only, as Go's module cache is: only root could remove what is in those.
// Nothing may write to it meanwhile. One that is not there is no error.
func RemoveTree(dir string) error {
	err := os.RemoveAll(dir)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	return os.RemoveAll(dir)
}
