package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/vernier-ml/vernier/server/api"
)

// exitNotFound is how vernier logs ends when no log is kept.
const exitNotFound = 4

// endedLogs reads logs of trials whose pods are gone by the program vernier, which knows
// where the node agent keeps them; nil without a command.
func endedLogs(command []string) api.EndedLogs {
	if len(command) == 0 {
		return nil
	}
	return func(ctx context.Context, trial types.NamespacedName, experiment string, o *corev1.PodLogOptions) (io.ReadCloser, error) {
		args := append(slices.Clone(command[1:]), "--namespace", trial.Namespace, "logs",
			"--container", o.Container, "--tail", strconv.FormatInt(ptr.Deref(o.TailLines, -1), 10), "--previous="+strconv.FormatBool(o.Previous),
			"--", experiment+"/"+trial.Name)
		cmd := exec.CommandContext(ctx, command[0], args...)
		log := &endedLog{cmd: cmd}
		cmd.Stderr, cmd.WaitDelay = &log.said, time.Second // for what it has started
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			return nil, fmt.Errorf("read the kept log of trial %s: %w", trial, err)
		}
		log.pipe, log.out = out, bufio.NewReader(out)
		// A log that cannot be read has no first byte.
		if _, err := log.out.Peek(1); err != nil {
			if err := log.end(); err != nil {
				return nil, fmt.Errorf("read the kept log of trial %s: %w", trial, err)
			}
		}
		return log, nil
	}
}

// endedLog is what the program prints. It is read as it comes: a log may be larger than
// the memory of the manager.
type endedLog struct {
	cmd  *exec.Cmd
	pipe io.Closer
	out  *bufio.Reader
	said bytes.Buffer
	over bool
}

func (l *endedLog) Read(p []byte) (int, error) {
	if l.over {
		return 0, io.EOF
	}
	n, err := l.out.Read(p)
	if err != nil && n == 0 {
		if failed := l.end(); failed != nil {
			err = failed
		}
	}
	return n, err
}

// end waits for the program, which has printed all.
func (l *endedLog) end() error {
	if l.over {
		return nil
	}
	l.over = true
	err := l.cmd.Wait()
	if err == nil {
		return nil
	}
	said := strings.TrimPrefix(strings.TrimSpace(l.said.String()), "vernier: ")
	if l.cmd.ProcessState.ExitCode() == exitNotFound {
		return fmt.Errorf("%w: %s", api.ErrNoLog, said)
	}
	return fmt.Errorf("%w: %s", err, said)
}

// Close ends the program too where not all was read.
func (l *endedLog) Close() error {
	if !l.over {
		l.over = true
		_ = l.cmd.Process.Kill()
		_ = l.pipe.Close()
		_ = l.cmd.Wait()
	}
	return nil
}
