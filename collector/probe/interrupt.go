package probe

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// passPatience is how long a program of this process' own group has to end by
	// a signal that the whole group may have got, before it is passed on.
	passPatience = time.Second
	// toldPatience is how long after a program has failed a signal is waited for:
	// the whole group gets one at once, but the program may end by it before it is
	// handed on in this process. Of a program that has ended as by such a signal,
	// which is rare when there was none, it is signalledPatience.
	toldPatience      = 250 * time.Millisecond
	signalledPatience = 5 * time.Second
	// killPatience bounds the wait for the end of a program that was killed.
	killPatience = time.Second
)

// watch passes the first signal on to the program, and kills it when ctx ends.
// It says whether a signal to this process came before the program's end.
func (c *Command) watch(ctx context.Context, program *os.Process) (interrupted bool) {
	select {
	case s := <-c.Interrupts: // nil: never
		interrupted = true
		c.pass(s, program)
	case <-ctx.Done():
	case <-c.done:
		return c.told()
	}
	select {
	case <-ctx.Done():
		_ = program.Kill() // it may have ended
		// What the program has started may hold its output open.
		_ = c.output.CloseWithError(io.ErrClosedPipe) // always nil
	case <-c.done:
	}
	return interrupted
}

// told reports whether what has ended the program was a signal to this process
// too.
func (c *Command) told() bool {
	select {
	case <-c.Interrupts:
		return true
	default:
	}
	if c.Interrupts == nil || c.err == nil {
		return false
	}
	patience := toldPatience
	if endedAsBySignal(c.err) {
		patience = signalledPatience
	}
	select {
	case <-c.Interrupts:
		return true
	case <-time.After(patience):
	case <-c.stopped:
	}
	return false
}

// endedAsBySignal reports whether a program has ended by a signal that tells
// programs to end, or as a shell does whose program has.
func endedAsBySignal(err error) bool {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return false
	}
	code := exitCode(exit)
	return code == signalled+int(syscall.SIGINT) || code == signalled+int(syscall.SIGTERM)
}

// pass gives the program a signal, unless it has it from the terminal. Two of
// them would end a program that deals with one.
func (c *Command) pass(s os.Signal, program *os.Process) {
	group, err := syscall.Getpgid(program.Pid)
	if err == nil && group == syscall.Getpgrp() {
		if s == os.Interrupt && inForeground() {
			return
		}
		select {
		case <-time.After(passPatience):
		case <-c.done:
			return
		}
	}
	_ = program.Signal(s) // it may have ended
}

// inForeground reports whether Ctrl-C at the terminal reaches this process'
// group.
func inForeground() bool {
	terminal, err := os.Open("/dev/tty")
	if err != nil {
		return false // there is none
	}
	defer terminal.Close()
	group, err := unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCGPGRP)
	return err == nil && group == syscall.Getpgrp()
}
