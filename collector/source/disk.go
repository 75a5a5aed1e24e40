package source

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// File is an open regular file.
type File struct {
	*os.File
	// Info is what the file was when it was opened.
	Info fs.FileInfo
}

// Open opens a regular file, and refuses anything else without waiting for it: a
// program of the pod may put a FIFO where a file is expected.
func Open(path string) (File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return File{}, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", path)
	}
	if err != nil {
		return File{}, errors.Join(err, f.Close())
	}
	return File{f, info}, nil
}

// PrintSize is how many bytes at the beginning of a file, and before a place in
// it, are remembered to notice that the file has become another.
const PrintSize = 64

// Holds reports whether the file has these bytes at a place.
func (f File) Holds(want []byte, at int64) bool {
	b := make([]byte, len(want))
	n, _ := f.ReadAt(b, at) // a file that cannot be read does not hold them
	return bytes.Equal(b[:n], want)
}

// FileID tells files apart, whatever their names.
type FileID struct{ Device, Inode uint64 }

// IDOf returns the identity of a file.
func IDOf(info fs.FileInfo) FileID {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return FileID{uint64(s.Dev), s.Ino} //nolint:unconvert // its type differs between systems
	}
	return FileID{}
}

// AbsDir returns where a directory lies, wherever this process goes. It need not
// exist yet.
func AbsDir(dir string) (string, error) {
	if dir == "" {
		return "", errors.New("no directory is named")
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("directory %s: %w", dir, err)
	}
	return abs, nil
}

// maxState bounds a file in which a source remembers something, in bytes.
const maxState = 64 << 20

// LoadState reads v, as JSON, from a file in which a source remembers something.
// It leaves v alone when the path is empty or nothing was remembered.
func LoadState(path string, v any) error {
	if path == "" {
		return nil
	}
	err := ReadJSON(path, maxState, v)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// ReadJSON reads v from a file of at most limit bytes. Other programs of the pod may
// write where the file lies, and put anything there.
func ReadJSON(path string, limit int64, v any) error {
	f, err := Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	switch {
	case err != nil:
		return err
	case int64(len(b)) > limit:
		return fmt.Errorf("%s has more than %d bytes", path, limit)
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// SaveState writes v for LoadState. An empty path remembers nothing.
func SaveState(path string, v any) error {
	if path == "" {
		return nil
	}
	return WriteJSON(path, v, 0o600)
}

// WriteJSON writes a file that is never seen half.
func WriteJSON(path string, v any, mode fs.FileMode) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", b, mode); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
