//go:build !linux

package shim

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"os"
)

// A shim runs on Linux only; elsewhere the package can be compiled into programs
// that do other things too.
var errLinux = fmt.Errorf("a shim needs Linux: %w", errors.ErrUnsupported)

// Spawn is not possible here.
func Spawn(context.Context, Options) (*Client, error) { return nil, errLinux }

// Serve is not possible here.
func Serve(context.Context, Options, *log.Logger, func() error) error { return errLinux }

// Enter is never called here.
func Enter() int { return ExitCodeStartError }

// ProbeMounts says that this system has no mount namespaces.
func ProbeMounts(context.Context, string, string) (MountMode, error) { return MountsNone, errLinux }

// KillShim is not possible here.
func KillShim(string) error { return errLinux }

// KillOrphans is not possible here.
func KillOrphans(context.Context, string) (int, error) { return 0, errLinux }

// Usages is not possible here.
func Usages() (map[string]Usage, error) { return nil, errLinux }

// Exec is not possible here.
func (c *Client) Exec(context.Context, string, int, []string, [3]*os.File, bool) (int, error) {
	return 0, errLinux
}

// Dial is not possible here.
func (c *Client) Dial(context.Context, string) (net.Conn, error) { return nil, errLinux }

func (c *Client) exchange(context.Context, request, ...*os.File) (response, []*os.File, error) {
	return response{}, nil, fmt.Errorf("%w: %w", ErrNotRunning, errLinux)
}

// DialIn is not possible here.
func DialIn(context.Context, string) (net.Conn, error) { return nil, errLinux }
