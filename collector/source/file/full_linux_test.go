package file

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// While the disk is full, what was kept before must not be removed in favour of
// nothing: it may be unread.
func TestStreamWriterKeepsOutputWhileTheDiskIsFull(t *testing.T) {
	dir := t.TempDir()
	switch err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); {
	case errors.Is(err, unix.EPERM):
		t.Skip("mounts need root")
	case err != nil:
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	w, err := NewStreamWriter(filepath.Join(dir, "stream"), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	out := w.Lane()
	line := "loss=0.5 " + strings.Repeat("x", 4096-10) + "\n"
	for range 4 {
		_, _ = out.Write([]byte(line))
	}
	for i, err := 0, error(nil); err == nil; i++ { // the program's checkpoints take the rest
		err = os.WriteFile(filepath.Join(dir, "checkpoint"+string(rune('a'+i))), make([]byte, 4096), 0o600)
	}
	for range 20 {
		_, _ = out.Write([]byte(line))
		_ = os.WriteFile(filepath.Join(dir, "more"), make([]byte, 64<<10), 0o600)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	kept := 0
	begins, err := segments(filepath.Join(dir, "stream"))
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range begins {
		text, err := os.ReadFile(filepath.Join(dir, "stream", segmentName(b)))
		if err != nil {
			t.Fatal(err)
		}
		kept += strings.Count(string(text), "loss=0.5 ")
	}
	if kept != 4 || len(begins) != 1 {
		t.Errorf("%d lines are kept in %d segments, want 4 in 1", kept, len(begins))
	}
}
