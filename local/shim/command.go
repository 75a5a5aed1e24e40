package shim

import (
	"errors"
	"os/exec"
)

// Command prepares argv to run beside a container with that spec: the same
// environment, working directory, user and mounts, in a session of its own. Only
// Binary, PodUID and Mounts of the options are used; Mounts must be the mode of
// the running shim.
//
// The mounts are made afresh, so the files of volumes are the same, but what the
// container created on a tmpfs that stands in for a directory of the host is not
// seen. The process is the caller's child: the caller sets its streams, waits for
// it and kills its process group when the container ends. For a terminal, pass the
// command to pty.Start. When the program cannot be started, it exits with code 127
// (not found) or 126 and says why on standard error.
func Command(o Options, spec ContainerSpec, argv []string) (*exec.Cmd, error) {
	if len(argv) == 0 {
		return nil, errors.New("run a command in container " + spec.Name + ": the command is empty")
	}
	spec.Argv = argv
	return command(o, spec)
}
