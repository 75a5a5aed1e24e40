// Package statefile keeps the small files that an instance must find again,
// also after a power cut.
package statefile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// ErrCorrupt says that a file could not be decoded and was moved aside, to its
// name with the suffix ".corrupt".
var ErrCorrupt = errors.New("the file is corrupt and was moved aside")

// Write replaces a file. A reader sees the old content or the new one, never a
// part; when Write returns, the new content is on disk.
func Write(path string, data []byte, mode fs.FileMode) error {
	if err := replace(path, data, mode, true); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// Replace is Write for files that are made anew at each start: nothing waits for
// the disk, and after a power cut the file may be empty or missing.
func Replace(path string, data []byte, mode fs.FileMode) error {
	if err := replace(path, data, mode, false); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

func replace(path string, data []byte, mode fs.FileMode, durable bool) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".tmp-*")
	if err != nil {
		return err
	}
	_, err = tmp.Write(data)
	if err == nil {
		err = tmp.Chmod(mode)
	}
	if err == nil && durable {
		err = tmp.Sync()
	}
	if err = errors.Join(err, tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(tmp.Name()))
	}
	if !durable {
		return nil
	}
	return SyncDir(filepath.Dir(path))
}

// SyncDir makes the names in a directory durable.
func SyncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// WriteJSON is Write for a value, with mode 0600.
func WriteJSON(path string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return Write(path, append(data, '\n'), 0o600)
}

// ReadJSON reads a file into value. It wraps fs.ErrNotExist when there is none,
// and ErrCorrupt when it cannot be decoded; value is then unchanged, or of no use.
func ReadJSON(path string, value any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, value); err != nil {
		return Quarantine(path, err)
	}
	return nil
}

// Quarantine moves a file aside that cannot be read because of why, and returns
// an ErrCorrupt that says so.
func Quarantine(path string, why error) error {
	return errors.Join(fmt.Errorf("%s: %w: %w", path, ErrCorrupt, why), os.Rename(path, path+".corrupt"))
}
