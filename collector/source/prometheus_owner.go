package source

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// ErrNobodyListens says that no program listens at the port.
var ErrNobodyListens = errors.New("no program listens at the port")

// OwnListener returns a check for machines on which trials share the network:
// whether the program that listens at a TCP port has a variable, as
// "NAME=value", in its environment. It returns nil for such a program, an error
// that wraps ErrNobodyListens when there is none, and another error that names
// the program otherwise. A program whose environment may not be read counts as
// the right one. It looks into /proc (which must be the machine's), and again
// only when another socket listens.
func OwnListener(proc string, port int, variable string) func() error {
	var known string
	return func() error {
		sockets, err := listeners(proc, port)
		if err != nil {
			return nil //nolint:nilerr // without /proc/net nothing can be said
		}
		if len(sockets) == 0 {
			known = ""
			return fmt.Errorf("%w %d, which the program finds in VERNIER_METRICS_PORT", ErrNobodyListens, port)
		}
		if all := strings.Join(sockets, " "); all != known {
			if err := ownedBy(proc, sockets, port, variable); err != nil {
				return err
			}
			known = all
		}
		return nil
	}
}

// listeners returns the inodes of the sockets that listen at a port.
func listeners(proc string, port int) ([]string, error) {
	var inodes []string
	suffix := fmt.Sprintf(":%04X", port)
	for i, name := range []string{"tcp", "tcp6"} {
		f, err := os.Open(filepath.Join(proc, "net", name))
		if err != nil {
			if i > 0 {
				continue // no IPv6
			}
			return nil, err
		}
		lines := bufio.NewScanner(f)
		for lines.Scan() {
			// sl local_address rem_address st queues tr retrnsmt uid timeout inode
			fields := strings.Fields(lines.Text())
			if len(fields) > 9 && fields[3] == "0A" && strings.HasSuffix(fields[1], suffix) {
				inodes = append(inodes, fields[9])
			}
		}
		if err := errors.Join(lines.Err(), f.Close()); err != nil {
			return nil, err
		}
	}
	return inodes, nil
}

// ownedBy looks for the processes that hold the sockets.
func ownedBy(proc string, sockets []string, port int, variable string) error {
	entries, err := os.ReadDir(proc)
	if err != nil {
		return nil //nolint:nilerr // nothing can be said
	}
	other := ""
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil || !holds(filepath.Join(proc, e.Name(), "fd"), sockets) {
			continue
		}
		environ, err := readSome(filepath.Join(proc, e.Name(), "environ"))
		if err != nil || hasVariable(environ, variable) {
			return nil //nolint:nilerr // another user's process, in whose environment nothing can be looked up
		}
		command, _ := readSome(filepath.Join(proc, e.Name(), "cmdline")) // only for the message
		other = fmt.Sprintf("process %s (%.60q)", e.Name(), strings.TrimSpace(string(bytes.ReplaceAll(command, []byte{0}, []byte(" ")))))
	}
	if other == "" {
		return nil // held by a process whose files may not be looked at
	}
	// The advice comes first: a trial's condition has the beginning only.
	return fmt.Errorf("port %d is not this trial's; trials share this machine's network: use httpGet.port: auto, or run one at a time; %s listens there", port, other)
}

// holds says whether a folder of file descriptors has one of the sockets.
func holds(fds string, sockets []string) bool {
	entries, err := os.ReadDir(fds)
	if err != nil {
		return false
	}
	for _, e := range entries {
		link, err := os.Readlink(filepath.Join(fds, e.Name()))
		if err != nil {
			continue
		}
		for _, s := range sockets {
			if link == "socket:["+s+"]" {
				return true
			}
		}
	}
	return false
}

func hasVariable(environ []byte, variable string) bool {
	for one := range bytes.SplitSeq(environ, []byte{0}) {
		if string(one) == variable {
			return true
		}
	}
	return false
}

// readSome reads at most 1 MiB of a file of /proc.
func readSome(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, 1<<20))
}
