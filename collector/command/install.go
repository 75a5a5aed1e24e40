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
	self, err := os.Executable()
	if err == nil {
		err = install(self, args[0])
	}
	if err != nil {
		return fail(stderr, exitFailed, "install", err)
	}
	return 0
}

// install puts the file src at dst, executable by all. Nobody ever sees half of
// it: it gets its name last.
func install(src, dst string) error {
	dir := filepath.Dir(dst)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	temp, err := os.MkdirTemp(dir, ".install-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(temp) }()
	half := filepath.Join(temp, "collector")
	if err := link(src, half); err != nil {
		if err := copyFile(src, half); err != nil {
			return fmt.Errorf("copy %s: %w", src, err)
		}
	}
	if err := os.Rename(half, dst); err != nil {
		return err
	}
	return nil
}

// link makes a hard link, which costs no time and no space. It does so only for
// a file that has the right mode, because the mode belongs to the original too.
func link(src, dst string) error {
	info, err := os.Stat(src)
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o555 != 0o555 {
		return errors.New("not executable by all")
	}
	return os.Link(src, dst)
}

func copyFile(src, dst string) error {
	from, err := os.Open(src)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.OpenFile(dst, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	// The umask may have taken bits away.
	return errors.Join(err, to.Chmod(0o755), to.Close())
}
