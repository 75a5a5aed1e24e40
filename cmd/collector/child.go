package main

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

// child starts the program in a process group of its own, without a shell,
// passes signals on to the group, and waits. An error means that it did not
// start.
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
	p, err := os.StartProcess(path, e.argv, &os.ProcAttr{Files: []*os.File{os.Stdin, out, errs}, Sys: processAttributes()})
	tees.run()
	if err != nil {
		tees.wait()
		return exit{}, err
	}
	done, told := make(chan struct{}), make(chan bool, 1)
	go func() { told <- pass(e.signals, p.Pid, done) }()
	end := reap(p.Pid)
	close(done)
	e.toldToEnd = <-told
	tees.wait()
	return end, nil
}

// passedOn lists the signals that concern the program.
func passedOn() []os.Signal {
	signals := []os.Signal{unix.SIGTERM, unix.SIGINT, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2,
		unix.SIGALRM, unix.SIGVTALRM, unix.SIGCONT, unix.SIGTSTP, unix.SIGWINCH, unix.SIGXCPU}
	// A program under nohup does not want to hear of it.
	if !signal.Ignored(unix.SIGHUP) {
		signals = append(signals, unix.SIGHUP)
	}
	// Writing to a closed output is an error to handle, not the end.
	signal.Ignore(unix.SIGPIPE)
	return signals
}

// pass passes signals on until done, and returns whether one told the program to
// end.
func pass(signals <-chan os.Signal, pid int, done <-chan struct{}) (told bool) {
	for {
		select {
		case s := <-signals:
			unix.Kill(-pid, s.(syscall.Signal)) //nolint:errcheck // the group may just have ended
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
		var usage unix.Rusage
		got, err := unix.Wait4(-1, &status, 0, &usage)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return exit{Code: exitFailed, Error: fmt.Sprintf("wait for the program: %v", err)}
		case got == pid && status.Exited():
			return exit{Code: status.ExitStatus(), MaxRSS: maxRSS(usage)}
		case got == pid && status.Signaled():
			return exit{Code: exitSignalled + int(status.Signal()), Signal: unix.SignalName(status.Signal()), MaxRSS: maxRSS(usage)}
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
