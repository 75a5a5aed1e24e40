package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

func installCommand(_ context.Context, args []string, _, stderr io.Writer) int {
	if len(args) != 1 {
		return fail(stderr, exitUsage, "install", errors.New("name one destination: collector install DST"))
	}
	if err := installSelf(args[0]); err != nil {
		return fail(stderr, exitFailed, "install", err)
	}
	return 0
}

// installSelf copies this program to dst.
func installSelf(dst string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return install(self, dst)
}

// install copies the file src to dst, executable by all. A partial copy is never visible: dst
// gets its name last.
func install(src, dst string) (err error) {
	if err := os.MkdirAll(filepath.Dir(dst), 0o755); err != nil {
		return err
	}
	from, err := os.Open(src)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.CreateTemp(filepath.Dir(dst), ".install-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(to.Name())
		}
	}()
	_, err = io.Copy(to, from)
	if err := errors.Join(err, to.Chmod(0o755), to.Close()); err != nil {
		return fmt.Errorf("copy %s: %w", src, err)
	}
	return os.Rename(to.Name(), dst)
}
