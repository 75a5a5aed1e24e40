package shim

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/creack/pty"
)

// drainTimeout bounds the wait for output that is still in a pipe once all
// processes of a run are gone, for a pipe that was handed to a stranger.
const drainTimeout = time.Second

// runKey identifies a run.
type runKey struct {
	name string
	run  int
}

func (k runKey) String() string { return fmt.Sprintf("%s/%d", k.name, k.run) }

// container is a run that this shim started.
type container struct {
	spec    ContainerSpec // as it was asked for
	started chan struct{} // closed when the program runs or never will
	ended   chan struct{} // closed when the end is recorded

	// Set before started is closed, not changed later.
	began   time.Time
	pid     int
	exit    <-chan exitStatus
	log     *criLog
	outputs []*os.File // our ends of the pipes, or the terminal
	copying sync.WaitGroup
	stdin   *os.File
	tty     *os.File
	// standIns are the directories of the machine that the container has copies of.
	standIns string

	mu     sync.Mutex
	oom    string // why the sampler killed it
	killed bool   // SIGKILL was asked for
	// terminated is set once SIGTERM was sent.
	terminated bool
}

func (c *container) key() runKey { return runKey{c.spec.Name, c.spec.Run} }

func (c *container) mark() string { return EnvContainer + "=" + c.key().String() }

// validate refuses specs that no machine could run.
func (s ContainerSpec) validate() error {
	switch {
	case s.Name == "" || strings.Contains(s.Name, "/"):
		return fmt.Errorf("start a container: the name %q must not be empty nor contain a slash", s.Name)
	case s.Run < 0:
		return fmt.Errorf("start %s: the run %d is negative", s.Name, s.Run)
	case len(s.Argv) == 0:
		return fmt.Errorf("start %s: the command is empty", s.Name)
	}
	return nil
}

// prepared is the spec with everything that the program will see: the marks in the
// environment, the working directory, and host paths where paths are mapped.
func (s ContainerSpec) prepared(podUID string, mode MountMode) ContainerSpec {
	s.Dir = cmp.Or(s.Dir, "/")
	// Of two values of a name some programs hand the first on to their children.
	s.Env = slices.DeleteFunc(slices.Clone(s.Env), func(v string) bool {
		return strings.HasPrefix(v, EnvPodUID+"=") || strings.HasPrefix(v, EnvContainer+"=")
	})
	if mode == MountsNone {
		s = mapPaths(s)
	}
	s.Env = append(s.Env, EnvPodUID+"="+podUID, fmt.Sprintf("%s=%s/%d", EnvContainer, s.Name, s.Run))
	return s
}

// stdio are the ends of a container's streams that its process gets.
type stdio struct {
	files [3]*os.File
	fresh []*os.File // to be closed once the process has them
}

func (io *stdio) close() {
	for _, f := range io.fresh {
		f.Close()
	}
}

// open makes the streams. On failure, what was made is left to closeStreams.
func (c *container) open() (*stdio, error) {
	child := &stdio{}
	if c.spec.TTY {
		master, slave, err := pty.Open()
		if err != nil {
			return child, fmt.Errorf("terminal: %w", err)
		}
		child.files, child.fresh = [3]*os.File{slave, slave, slave}, []*os.File{slave}
		c.tty, c.outputs = master, []*os.File{master}
		return child, nil
	}
	for i := 1; i <= 2; i++ {
		r, w, err := os.Pipe()
		if err != nil {
			return child, err
		}
		child.files[i], child.fresh = w, append(child.fresh, w)
		c.outputs = append(c.outputs, r)
	}
	in, err := os.Open(os.DevNull)
	if c.spec.Stdin {
		if err == nil {
			in.Close()
		}
		in, c.stdin, err = os.Pipe()
	}
	if err != nil {
		return child, err
	}
	child.files[0], child.fresh = in, append(child.fresh, in)
	return child, nil
}

// copyOutput logs the streams until they end.
func (c *container) copyOutput() {
	for i, f := range c.outputs {
		name := "stdout"
		if i == 1 {
			name = "stderr"
		}
		c.copying.Go(func() { c.log.copyStream(name, f) })
	}
}

// drain waits for the end of the output and closes everything. The processes of
// the run are gone, so what is left sits in the pipes. It returns what of the
// output was lost.
func (c *container) drain() string {
	for _, f := range c.outputs {
		_ = f.SetReadDeadline(time.Now().Add(drainTimeout))
	}
	c.copying.Wait()
	return c.closeStreams()
}

func (c *container) closeStreams() string {
	for _, f := range c.outputs {
		f.Close()
	}
	if c.stdin != nil {
		c.stdin.Close()
	}
	if c.log == nil {
		return ""
	}
	return c.log.close()
}

// emptyMessage makes the termination message file, empty and writable for any user
// of the container. What an earlier run left there is replaced, not opened: it may
// be a link, or a pipe without a reader.
func emptyMessage(path string) error {
	if path == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Chmod(0o666)
}

// readMessage reads the beginning of a termination message. Only a regular file is
// read: opening a pipe without a writer would never end.
func readMessage(path string) (string, error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil // an empty path too
	}
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is not a regular file any more", path)
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxTerminationMessage))
	return strings.ToValidUTF8(string(data), "\uFFFD"), err
}

// ask notes that a signal is wanted. It is false for a second SIGTERM: the one that
// ends the whole machine and the agent's order are the same wish.
func (c *container) ask(sig syscall.Signal) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch sig {
	case syscall.SIGKILL:
		c.killed = true
	case syscall.SIGTERM:
		if c.terminated {
			return false
		}
		c.terminated = true
	}
	return true
}

// result says how a run ended.
func (c *container) result(r Run, status exitStatus, remarks ...string) Run {
	c.mu.Lock()
	oom, killed := c.oom, c.killed
	c.mu.Unlock()
	r.Phase, r.FinishedAt = Exited, status.at
	r.ExitCode, r.Signal = status.code, status.signal
	switch {
	case oom != "":
		r.Reason = ReasonOOMKilled
		r.ExitCode, r.Signal = 128+int(syscall.SIGKILL), int(syscall.SIGKILL)
	case status.code == 0:
		r.Reason = ReasonCompleted
	default:
		r.Reason = ReasonError
	}
	if status.signal == int(syscall.SIGKILL) && oom == "" && !killed {
		remarks = append(remarks, "killed with SIGKILL, but not by the node: perhaps the machine ran out of memory (the kernel's log tells)")
	}
	remarks = append([]string{oom}, remarks...)
	r.Message = strings.Join(slices.DeleteFunc(remarks, func(s string) bool { return s == "" }), "; ")
	return r
}

// launch starts the program of c. An error means that it never ran.
func (s *Supervisor) launch(c *container) (err error) {
	if c.log, err = openLog(c.spec.LogPath, s.now); err != nil {
		return err
	}
	if err := emptyMessage(c.spec.TerminationPath); err != nil {
		return fmt.Errorf("termination message file: %w", err)
	}
	child, err := c.open()
	defer child.close()
	if err != nil {
		return err
	}
	c.began = s.now()
	if err := s.fork(c, child); err != nil {
		return err
	}
	c.copyOutput()
	return nil
}

func attributes(c *container, child *stdio) *syscall.ProcAttr {
	attr := &syscall.ProcAttr{Sys: &syscall.SysProcAttr{Setsid: true, Setctty: c.spec.TTY}}
	attr.Sys.Pdeathsig = syscall.SIGKILL // it dies with the shim
	for _, f := range child.files {
		attr.Files = append(attr.Files, f.Fd())
	}
	return attr
}

func toExit(status syscall.WaitStatus, at time.Time) exitStatus {
	if status.Signaled() {
		return exitStatus{code: 128 + int(status.Signal()), signal: int(status.Signal()), at: at}
	}
	return exitStatus{code: status.ExitStatus(), at: at}
}

// fork starts `shim enter`, in namespaces of its own where there can be, and waits
// until it has become the program.
func (s *Supervisor) fork(c *container, child *stdio) error {
	e, err := entryOf(c.spec.prepared(s.podUID, s.mounts), s.mounts)
	if err != nil {
		return err
	}
	e.Staging, e.Parent = filepath.Join(s.dir, stagingName), os.Getpid()
	c.standIns = strings.Join(makeMountPoints(e.Mounts), ", ")
	f, err := e.file()
	if err != nil {
		return err
	}
	defer f.Close()
	report, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer report.Close()

	attr := attributes(c, child)
	attr.Files = append(attr.Files, f.Fd(), w.Fd())
	attr.Env = []string{EnvPodUID + "=" + s.podUID, c.mark()}
	namespaces(attr.Sys, s.mounts)
	pid, exit, err := s.reaper.fork("/proc/self/exe", []string{"shim", "enter"}, attr)
	w.Close()
	if err != nil {
		return fmt.Errorf("start a process: %w", err)
	}
	text, err := io.ReadAll(report)
	if err == nil && len(text) > 0 {
		err = errors.New(string(text))
	}
	if err != nil {
		<-exit
		return err
	}
	c.pid, c.exit = pid, exit
	return nil
}
