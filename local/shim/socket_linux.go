package shim

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

const socketName = "shim.sock"

// withSocket calls f with a path of dir's socket that fits into a socket address.
// The address has room for 107 bytes, so it goes through a descriptor of dir.
func withSocket(dir string, f func(path string) error) error {
	d, err := os.OpenFile(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer d.Close()
	return f(fmt.Sprintf("/proc/self/fd/%d/%s", d.Fd(), socketName))
}

func dialSocket(ctx context.Context, dir string) (conn net.Conn, err error) {
	err = withSocket(dir, func(path string) error {
		conn, err = (&net.Dialer{}).DialContext(ctx, "unix", path)
		return err
	})
	return conn, err
}

// listenSocket replaces a socket that a dead shim left; the caller holds dir's lock.
func listenSocket(dir string) (l *net.UnixListener, err error) {
	name := filepath.Join(dir, socketName)
	if err := os.Remove(name); err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	err = withSocket(dir, func(path string) error {
		l, err = net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", name, err)
	}
	l.SetUnlinkOnClose(false)
	return l, os.Chmod(name, 0o600)
}
