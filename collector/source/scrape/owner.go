package scrape

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/procfs"
)

// ErrNoListener says that no program listens at the port.
var ErrNoListener = errors.New("no program listens at the port")

// OwnListener returns a check for machines on which trials share the network:
// whether the program that listens at a TCP port has a variable, as
// "NAME=value", in its environment. It returns nil for such a program, an error
// that wraps ErrNoListener when there is none, and another error that names
// the program otherwise. A program whose environment may not be read counts as
// the right one. It looks into proc, where the machine's /proc is mounted, and
// again only when another socket listens.
func OwnListener(proc string, port int, variable string) func() error {
	var known []string
	return func() error {
		fs, err := procfs.NewFS(proc)
		if err != nil {
			return nil //nolint:nilerr // without /proc nothing can be said
		}
		sockets, err := listeners(fs, port)
		if err != nil {
			return nil //nolint:nilerr // as above
		}
		if len(sockets) == 0 {
			known = nil
			return fmt.Errorf("%w %d, which the program finds in VERNIER_METRICS_PORT", ErrNoListener, port)
		}
		if slices.Equal(sockets, known) {
			return nil
		}
		if err := ownedBy(fs, sockets, port, variable); err != nil {
			return err
		}
		known = sockets
		return nil
	}
}

// listeners returns the sockets that listen at a port, as a descriptor names them.
func listeners(fs procfs.FS, port int) (sockets []string, err error) {
	const listening = 0x0a
	v4, err := fs.NetTCP() //nolint:staticcheck // netlink may be forbidden in a pod
	if err != nil {
		return nil, err
	}
	v6, _ := fs.NetTCP6() //nolint:staticcheck // as above; there may be no IPv6
	for _, line := range slices.Concat(v4, v6) {
		if line.St == listening && line.LocalPort == uint64(port) { //nolint:gosec // a port is not negative
			sockets = append(sockets, fmt.Sprintf("socket:[%d]", line.Inode))
		}
	}
	return sockets, nil
}

// ownedBy looks for the processes that hold the sockets.
func ownedBy(fs procfs.FS, sockets []string, port int, variable string) error {
	processes, err := fs.AllProcs()
	if err != nil {
		return nil //nolint:nilerr // nothing can be said
	}
	other := ""
	for _, p := range processes {
		files, err := p.FileDescriptorTargets()
		if err != nil || !slices.ContainsFunc(files, func(f string) bool { return slices.Contains(sockets, f) }) {
			continue
		}
		environ, err := p.Environ()
		if err != nil || slices.Contains(environ, variable) {
			return nil //nolint:nilerr // in the environment of another user's process nothing can be looked up
		}
		command, _ := p.CmdLine() // only for the message
		other = fmt.Sprintf("process %d (%.60q)", p.PID, strings.Join(command, " "))
	}
	if other == "" {
		return nil // held by a process whose files may not be looked at
	}
	// The advice comes first: a trial's condition has the beginning only.
	return fmt.Errorf("port %d is not this trial's; trials share this machine's network: use httpGet.port: auto, or run one at a time; %s listens there", port, other)
}
