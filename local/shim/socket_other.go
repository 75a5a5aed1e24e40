//go:build !linux

package shim

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
)

const socketName = "shim.sock"

func dialSocket(ctx context.Context, dir string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(dir, socketName))
}

// listenSocket replaces a socket that a dead shim left; the caller holds dir's lock.
func listenSocket(dir string) (*net.UnixListener, error) {
	name := filepath.Join(dir, socketName)
	if len(name) > 103 {
		return nil, fmt.Errorf("the path %s is longer than a socket address (103 bytes): use a shorter directory", name)
	}
	if err := os.Remove(name); err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", name, err)
	}
	l.SetUnlinkOnClose(false)
	return l, os.Chmod(name, 0o600)
}
