package command

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// After the program has ended, a process that it left behind may hold its
// output open. What is still in the pipe is read until nothing comes for
// quietAfter, at most lingerAfter long.
const (
	quietAfter  = 100 * time.Millisecond
	lingerAfter = 2 * time.Second
)

// child starts the program, without a shell, in surroundings like those that it
// has without us, passes signals on to it, and waits. An error means that it did
// not start.
func (e *execution) child(path string) (exit, error) {
	// The program is killed when the thread that started it ends.
	runtime.LockOSThread()
	var tees tees
	out, err := tees.add(e.stdout, e.stream.Lane())
	if err != nil {
		return exit{}, err
	}
	errs, err := tees.add(e.stderr, e.stream.Lane())
	if err != nil {
		return exit{}, err
	}
	place := placeOf(os.Stdin)
	p, err := os.StartProcess(path, e.argv, &os.ProcAttr{Files: []*os.File{os.Stdin, out, errs}, Sys: place.attributes()})
	tees.run()
	if err != nil {
		tees.wait()
		return exit{}, err
	}
	done, told := make(chan struct{}), make(chan bool, 1)
	go func() { told <- place.pass(e.signals, p.Pid, done) }()
	end := reap(p.Pid)
	close(done)
	e.toldToEnd = <-told
	tees.wait()
	if place != besideUs {
		// What it left behind ends with the container; it is over now.
		unix.Kill(-p.Pid, unix.SIGKILL) //nolint:errcheck // most programs leave nothing behind
	}
	return end, nil
}

// place is where a program runs among sessions and process groups.
type place int

const (
	// ownSession is the place of a container's main process, which leads a session
	// of its own. The program then does too.
	ownSession place = iota
	// foreground is that of one with a terminal (tty: true), where we lead the session:
	// the program's group gets the terminal. In the background it could not read it.
	foreground
	// besideUs is for a terminal whose session is another's, a shell's: the program
	// stays in our group.
	besideUs
)

func placeOf(stdin *os.File) place {
	if _, err := unix.IoctlGetInt(int(stdin.Fd()), unix.TIOCGPGRP); err != nil {
		return ownSession
	}
	if leader, err := unix.Getsid(0); err == nil && leader == os.Getpid() {
		return foreground
	}
	return besideUs
}

func (p place) attributes() *syscall.SysProcAttr {
	a := processAttributes()
	switch p {
	case ownSession:
		a.Setsid = true
	case foreground:
		a.Foreground, a.Ctty = true, int(os.Stdin.Fd())
	}
	return a
}

// passedOn lists the signals that concern the program.
func passedOn() []os.Signal {
	signals := []os.Signal{unix.SIGTERM, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2,
		unix.SIGALRM, unix.SIGVTALRM, unix.SIGCONT, unix.SIGTSTP, unix.SIGWINCH, unix.SIGXCPU}
	// What was ignored when we were started, as under nohup, the program ignores too.
	for _, s := range []os.Signal{unix.SIGHUP, unix.SIGINT} {
		if !signal.Ignored(s) {
			signals = append(signals, s)
		}
	}
	// Writing to a closed output is an error to handle, not our end. To ignore the
	// signal would make the program ignore it.
	signal.Notify(make(chan os.Signal, 1), unix.SIGPIPE)
	return signals
}

// pass passes signals on until done, and returns whether one told the program to
// end. The program alone gets them, as from the kubelet: what it does with its
// children is its own matter. A terminal's signals reach all of our group anyway.
func (p place) pass(signals <-chan os.Signal, pid int, done <-chan struct{}) (told bool) {
	for {
		select {
		case s := <-signals:
			if p != besideUs || s != unix.SIGINT && s != unix.SIGQUIT && s != unix.SIGTSTP && s != unix.SIGWINCH {
				unix.Kill(pid, s.(syscall.Signal)) //nolint:errcheck // it may just have ended
			}
			told = told || tellsToEnd(s)
		case <-done:
			return told
		}
	}
}

func tellsToEnd(s os.Signal) bool {
	return s == unix.SIGTERM || s == unix.SIGINT || s == unix.SIGQUIT || s == unix.SIGHUP
}

// reap waits for the program. As the first process of a container it inherits
// orphans and reaps these too.
func reap(pid int) exit {
	for {
		var status unix.WaitStatus
		got, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return exit{Code: exitFailed, Error: fmt.Sprintf("wait for the program: %v", err)}
		case got == pid && status.Exited():
			return exit{Code: status.ExitStatus()}
		case got == pid && status.Signaled():
			return exit{Code: exitSignalled + int(status.Signal())}
		}
	}
}

// tees copy the outputs of the program.
type tees struct {
	list  []*tee
	group sync.WaitGroup
}

type tee struct {
	from, childEnd *os.File
	to             io.Writer
	keep           io.Writer
	ended          chan struct{} // closed when the program has ended
}

// add returns the file that the program writes to.
func (t *tees) add(to io.Writer, keep io.Writer) (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	t.list = append(t.list, &tee{r, w, to, keep, make(chan struct{})})
	return w, nil
}

func (t *tees) run() {
	for _, one := range t.list {
		one.childEnd.Close()
		t.group.Go(one.copy)
	}
}

// wait returns when the outputs are copied, after the program has ended.
func (t *tees) wait() {
	for _, one := range t.list {
		close(one.ended)
		one.from.SetReadDeadline(time.Now().Add(quietAfter)) //nolint:errcheck // pipes have deadlines
	}
	t.group.Wait()
}

// copy passes everything on until the program's end of the pipe is closed. An
// output of ours that fails is given up; the program must not notice.
func (t *tee) copy() {
	defer t.from.Close()
	buf := make([]byte, 64<<10)
	var until time.Time
	for {
		n, err := t.from.Read(buf)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			n, err = t.rest(buf)
		}
		t.keep.Write(buf[:n]) //nolint:errcheck // it never fails
		if t.to != nil {
			if _, err := t.to.Write(buf[:n]); err != nil {
				t.to = nil
			}
		}
		if err != nil {
			return
		}
		select {
		case <-t.ended:
			now := time.Now()
			if until.IsZero() {
				until = now.Add(lingerAfter)
			}
			if now.After(until) {
				return
			}
			t.from.SetReadDeadline(now.Add(quietAfter)) //nolint:errcheck // as above
		default:
		}
	}
}

// rest reads what is in the pipe without waiting. A deadline that has passed does
// not say that there is nothing: this goroutine may have been late.
func (t *tee) rest(buf []byte) (int, error) {
	conn, err := t.from.SyscallConn()
	if err != nil {
		return 0, err
	}
	n, readErr := 0, error(nil)
	if err := conn.Control(func(fd uintptr) { n, readErr = unix.Read(int(fd), buf) }); err != nil {
		return 0, err
	}
	if n == 0 {
		readErr = io.EOF
	}
	return max(n, 0), readErr
}
