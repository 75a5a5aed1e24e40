package statefile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestAFileIsReplacedAsAWhole(t *testing.T) {
	for name, write := range map[string]func(string, []byte, fs.FileMode) error{"Write": Write, "Replace": Replace} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "f")
			if err := write(path, []byte("old"), 0o600); err != nil {
				t.Fatal(err)
			}
			reader, err := os.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer reader.Close()
			if err := write(path, []byte("new"), 0o640); err != nil {
				t.Fatal(err)
			}
			old := make([]byte, 8)
			if n, _ := reader.Read(old); string(old[:n]) != "old" {
				t.Errorf("a reader of the old file sees %q", old[:n])
			}
			data, err := os.ReadFile(path)
			info, statErr := os.Stat(path)
			if err := errors.Join(err, statErr); err != nil || string(data) != "new" || info.Mode().Perm() != 0o640 {
				t.Errorf("%q with mode %v, %v", data, info.Mode(), err)
			}
			if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
				t.Errorf("left beside it: %v, %v", entries, err)
			}
		})
	}
}

func TestAWriteThatFailsLeavesTheOldFileAndNothingElse(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	if err := os.MkdirAll(filepath.Join(path, "x"), 0o700); err != nil { // a directory that is in the way
		t.Fatal(err)
	}
	if err := Write(path, []byte("new"), 0o600); err == nil {
		t.Error("a directory was replaced")
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("left: %v, %v", entries, err)
	}
	if err := Write(filepath.Join(dir, "missing", "f"), nil, 0o600); err == nil {
		t.Error("a missing directory is no error")
	}
}

func TestWhatCannotBeReadIsMovedAside(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.json")
	var value map[string]int
	if err := ReadJSON(path, &value); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if err := WriteJSON(path, map[string]int{"a": 1}); err != nil {
		t.Fatal(err)
	}
	if err := ReadJSON(path, &value); err != nil || value["a"] != 1 {
		t.Errorf("read %v, %v", value, err)
	}
	for _, text := range []string{"", `{"a":`, "\x00\x00\x00"} { // as power cuts leave files
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := ReadJSON(path, &value); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%q: %v, want ErrCorrupt", text, err)
		}
		if kept, err := os.ReadFile(path + ".corrupt"); err != nil || string(kept) != text {
			t.Errorf("%q was kept as %q, %v", text, kept, err)
		}
		if err := ReadJSON(path, &value); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q is still there: %v", text, err)
		}
	}
}
