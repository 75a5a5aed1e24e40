package agent

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// asOther runs a function without the rights of root, if the tests have them. Its thread
// is given up.
func asOther(t *testing.T, uid int, do func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		if os.Getuid() == 0 {
			runtime.LockOSThread()
			if err := unix.Setfsuid(uid); err != nil {
				t.Error(err)
			}
		}
		do()
	}()
	<-done
}

func TestReadOnlyDirectoriesAreRemoved(t *testing.T) {
	const other = 65534
	parent := t.TempDir()
	t.Chdir(parent) // the other user may not come here by its path
	const tree = "tree"
	deep := filepath.Join(tree, "mod", "cache@v1")
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.Mkdir(outside, 0o555); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(deep, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(deep, "go.mod"), nil, 0o444); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(parent, func(path string, _ fs.DirEntry, err error) error {
		if err == nil && os.Getuid() == 0 {
			err = os.Lchown(path, other, other)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{deep, filepath.Dir(deep)} {
		if err := os.Chmod(dir, 0o555); err != nil {
			t.Fatal(err)
		}
	}
	asOther(t, other, func() {
		if os.RemoveAll(tree) == nil {
			t.Error("it can be removed as it is: this test shows nothing")
		}
		if err := RemoveTree(tree); err != nil {
			t.Error(err)
		}
		if err := RemoveTree(tree); err != nil {
			t.Errorf("where nothing is: %v", err)
		}
	})
	if _, err := os.Lstat(tree); !os.IsNotExist(err) {
		t.Errorf("it is still there: %v", err)
	}
	if info, err := os.Stat(outside); err != nil || info.Mode().Perm() != 0o555 {
		t.Errorf("what a link names has become %v, %v", info, err)
	}
}
