package shim

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// defaultPath is searched when the environment has no PATH, as container runtimes do.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// checkDir says why a directory cannot be a working directory.
func checkDir(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("the working directory %s does not exist: %w", dir, err)
	case err != nil:
		return fmt.Errorf("the working directory: %w", err)
	case !info.IsDir():
		return fmt.Errorf("the working directory %s is not a directory: %w", dir, syscall.ENOTDIR)
	}
	return nil
}

// findProgram resolves the command of a spec with the spec's own PATH. A command
// with a slash is relative to the working directory.
func findProgram(command string, env []string, dir string) (string, error) {
	if command == "" {
		return "", fmt.Errorf("the command is empty: %w", syscall.ENOENT)
	}
	if strings.Contains(command, "/") {
		path := command
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		if err := checkProgram(path); err != nil {
			return "", fmt.Errorf("command %q: %w", command, err)
		}
		return path, nil
	}
	search := searchPath(env)
	var refused error
	for _, d := range filepath.SplitList(search) {
		if !filepath.IsAbs(d) {
			d = filepath.Join(dir, d)
		}
		path := filepath.Join(d, command)
		err := checkProgram(path)
		if err == nil {
			return path, nil
		}
		// A directory of PATH that may not be searched hides nothing of ours.
		var unseen *fs.PathError
		if refused == nil && !errors.As(err, &unseen) {
			refused = err
		}
	}
	if refused != nil {
		return "", fmt.Errorf("command %q: %w; PATH is %s", command, refused, search)
	}
	return "", fmt.Errorf("command %q: not found in PATH %s: %w", command, search, os.ErrNotExist)
}

func searchPath(env []string) string {
	path := defaultPath
	for _, e := range env {
		if value, ok := strings.CutPrefix(e, "PATH="); ok {
			path = value // the last one counts, as for execve's reader
		}
	}
	return path
}

func checkProgram(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("%s is a directory: %w", path, syscall.EACCES)
	case info.Mode()&0o111 == 0:
		return fmt.Errorf("%s is not executable (mode %#o); try chmod +x: %w", path, info.Mode().Perm(), syscall.EACCES)
	}
	return nil
}

// explainExec says what execve's error means for a program that findProgram found.
func explainExec(path string, err error) error {
	switch {
	case errors.Is(err, syscall.ENOENT):
		return fmt.Errorf("%s exists, but the interpreter in its first line, or its loader, does not: %w", path, err)
	case errors.Is(err, syscall.ENOEXEC):
		return fmt.Errorf("%s is no program for this machine; a script needs a first line like #!/bin/sh: %w", path, err)
	case errors.Is(err, syscall.E2BIG):
		return fmt.Errorf("%s: the arguments and the environment are too long together: %w", path, err)
	}
	return fmt.Errorf("%s: %w", path, err)
}
