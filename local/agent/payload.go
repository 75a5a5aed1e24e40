package agent

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// payloadFile is one file of a volume whose content comes from the API.
type payloadFile struct {
	Data []byte
	Mode fs.FileMode
}

// payload is the content of such a volume, by path relative to its root.
type payload map[string]payloadFile

const dataLink = "..data"

// writePayload makes dir hold exactly the payload. All files change at once:
// they lie in a directory that the link "..data" names, and the link is
// replaced by rename.
func writePayload(dir string, files payload) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name := range files {
		if !filepath.IsLocal(name) || strings.HasPrefix(name, "..") {
			return fmt.Errorf("volume file %q: the path must be relative and stay inside the volume", name)
		}
	}
	old, err := os.Readlink(filepath.Join(dir, dataLink))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if old != "" && files.isIn(filepath.Join(dir, old)) {
		return nil
	}
	version, err := os.MkdirTemp(dir, "..v_")
	if err != nil {
		return err
	}
	if err := writeVersion(version, files); err != nil {
		return errors.Join(err, os.RemoveAll(version))
	}
	link := filepath.Join(dir, dataLink+"_tmp")
	if err := errors.Join(ignoreMissing(os.Remove(link)), os.Symlink(filepath.Base(version), link),
		os.Rename(link, filepath.Join(dir, dataLink))); err != nil {
		return err
	}
	if err := linkTop(dir, files); err != nil {
		return err
	}
	if old != "" {
		return os.RemoveAll(filepath.Join(dir, old))
	}
	return nil
}

func writeVersion(version string, files payload) error {
	if err := os.Chmod(version, 0o755); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(version, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, files[name].Data, 0o600); err != nil {
			return err
		}
		// WriteFile's mode is cut by the umask.
		if err := os.Chmod(path, files[name].Mode); err != nil {
			return err
		}
	}
	return nil
}

// linkTop keeps one link into "..data" for each first element of the paths.
func linkTop(dir string, files payload) error {
	want := map[string]bool{}
	for name := range files {
		top, _, _ := strings.Cut(filepath.ToSlash(name), "/")
		want[top] = true
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		switch name := e.Name(); {
		case strings.HasPrefix(name, ".."):
		case want[name]:
			delete(want, name)
		default:
			if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
				return err
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if err := os.Symlink(filepath.Join(dataLink, name), filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// isIn reports whether a version directory holds exactly the files.
func (files payload) isIn(version string) bool {
	found := payload{}
	err := filepath.WalkDir(version, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		found[strings.TrimPrefix(path, version+"/")] = payloadFile{data, info.Mode().Perm()}
		return err
	})
	return err == nil && maps.EqualFunc(files, found, func(a, b payloadFile) bool {
		return a.Mode == b.Mode && bytes.Equal(a.Data, b.Data)
	})
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
