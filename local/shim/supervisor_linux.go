package shim

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/creack/pty"

	"github.com/vernier-ml/vernier/local/statefile"
)

// Supervisor owns the containers of one pod.
type Supervisor struct {
	dir    string
	podUID string
	mounts MountMode
	now    func() time.Time
	log    *log.Logger
	reaper *reaper
	stop   func() // ends the shim

	mu         sync.Mutex
	state      State
	changed    chan struct{} // closed and replaced when state was published
	containers map[runKey]*container
	closing    bool
	used       time.Time // when a client last asked, or a container last ended
}

// newSupervisor takes over what an earlier shim of the directory recorded.
func newSupervisor(ctx context.Context, o Options, now func() time.Time, logger *log.Logger) (*Supervisor, error) {
	s := &Supervisor{
		dir: o.Dir, podUID: o.PodUID, mounts: o.Mounts, now: now, log: logger,
		changed: make(chan struct{}), containers: make(map[runKey]*container),
	}
	old, err := ReadState(o.Dir)
	if errors.Is(err, statefile.ErrCorrupt) {
		logger.Print(err)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err == nil && old.PodUID != o.PodUID {
		return nil, fmt.Errorf("%w: %s belongs to pod %s", ErrConflict, o.Dir, old.PodUID)
	}
	switch err := os.Mkdir(filepath.Join(o.Dir, stagingName), 0o700); {
	case err != nil && !errors.Is(err, fs.ErrExist):
		return nil, err
	case err != nil: // we are not the first: another shim died here
		if n, err := KillOrphans(ctx, o.PodUID); err != nil {
			return nil, err
		} else if n > 0 {
			logger.Printf("killed %d processes that an earlier shim left behind", n)
		}
	}
	if s.reaper, err = newReaper(now); err != nil {
		return nil, err
	}
	s.state = State{
		Version: Version, PodUID: o.PodUID, Revision: old.Revision, Runs: lose(old.Runs, now()),
		Mounts: s.mounts,
		PID:    os.Getpid(), StartTicks: startTicks(os.Getpid()), BootID: bootID(),
	}
	if len(old.Runs) == 0 {
		// Nothing to keep yet, and a file saved for each pod is time saved.
		s.state.Revision++
		return s, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s, s.publish()
}

// lose ends the runs that were running when the shim died.
func lose(runs []Run, now time.Time) []Run {
	for i := range runs {
		if r := &runs[i]; r.Phase != Exited {
			r.Phase, r.FinishedAt, r.Reason = Exited, now, ReasonLost
			r.ExitCode, r.Signal = 128+int(syscall.SIGKILL), int(syscall.SIGKILL)
			r.Message = "the process that watched the container died, so the container was killed and its exit code is not known"
		}
	}
	return runs
}

// publish makes a change durable and then visible. The caller holds mu.
func (s *Supervisor) publish() error {
	s.state.Revision++
	s.state.Runs = forget(s.state.Runs)
	for key, c := range s.containers {
		if _, kept := s.state.Find(key.name, key.run); !kept && isClosed(c.ended) {
			delete(s.containers, key)
		}
	}
	err := statefile.WriteJSON(filepath.Join(s.dir, stateName), s.state)
	if err != nil {
		// The next change tries again; until then only this process knows.
		s.log.Printf("state is not saved: %v", err)
	}
	close(s.changed)
	s.changed = make(chan struct{})
	return err
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// snapshot returns the state and a channel that is closed when there is a newer one.
func (s *Supervisor) snapshot() (State, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.state
	state.Runs = slices.Clone(s.state.Runs)
	return state, s.changed
}

// next returns the state once its revision is greater than after, or as it is
// when ctx or watchLimit is over.
func (s *Supervisor) next(ctx context.Context, after uint64) State {
	ctx, cancel := context.WithTimeout(ctx, watchLimit)
	defer cancel()
	for {
		state, changed := s.snapshot()
		if state.Revision > after {
			return state
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return state
		}
	}
}

// update replaces what is known of a run and publishes it.
func (s *Supervisor) update(run Run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, r := range s.state.Runs {
		if r.Name == run.Name && r.Run == run.Run {
			s.state.Runs[i] = run
		}
	}
	_ = s.publish() // logged there; the container does not care
}

// start starts a run, or says what became of it if it was started before.
func (s *Supervisor) start(spec ContainerSpec) (Run, error) {
	if err := spec.validate(); err != nil {
		return Run{}, err
	}
	c, err := s.admit(spec)
	if err != nil {
		return Run{}, err
	}
	if c == nil {
		return s.await(runKey{spec.Name, spec.Run})
	}
	run := Run{Name: spec.Name, Run: spec.Run, Phase: Running}
	if err := s.launch(c); err != nil {
		now := s.now()
		run.Phase, run.StartedAt, run.FinishedAt = Exited, now, now
		run.ExitCode, run.Reason, run.Message = ExitCodeStartError, ReasonStartError, "start "+spec.Name+": "+err.Error()
		c.closeStreams()
		s.update(run)
		close(c.ended)
		close(c.started)
		return run, nil
	}
	run.PID, run.StartedAt, run.StandIns = c.pid, c.began, c.standIns
	s.update(run)
	close(c.started)
	go s.watch(c, run)
	return run, nil
}

// admit enters a new run into the state. It returns nil when the run is known.
func (s *Supervisor) admit(spec ContainerSpec) (*container, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.state.Find(spec.Name, spec.Run); known {
		return nil, nil
	}
	if s.closing {
		return nil, fmt.Errorf("start %s/%d: %w: it is shutting down", spec.Name, spec.Run, ErrNotRunning)
	}
	if last, found := s.state.Latest(spec.Name); found {
		if last.Run > spec.Run {
			return nil, fmt.Errorf("start %s/%d: %w: run %d was already started", spec.Name, spec.Run, ErrConflict, last.Run)
		}
		if last.Phase != Exited {
			return nil, fmt.Errorf("start %s/%d: %w: run %d has not ended", spec.Name, spec.Run, ErrConflict, last.Run)
		}
	}
	c := &container{spec: spec, started: make(chan struct{}), ended: make(chan struct{})}
	s.containers[c.key()] = c
	s.state.Runs = append(s.state.Runs, Run{Name: spec.Name, Run: spec.Run, Phase: Starting})
	return c, nil
}

// await returns a known run once it is past its start.
func (s *Supervisor) await(key runKey) (Run, error) {
	if c := s.container(key); c != nil {
		<-c.started
	}
	state, _ := s.snapshot()
	run, _ := state.Find(key.name, key.run)
	return run, nil
}

func (s *Supervisor) container(key runKey) *container {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.containers[key]
}

// watch follows a run to its end and records it.
func (s *Supervisor) watch(c *container, run Run) {
	exited := make(chan struct{})
	var sampling sync.WaitGroup
	if c.spec.MemoryLimitBytes > 0 {
		sampling.Go(func() {
			watchMemory(s.tree(c), c.spec.MemoryLimitBytes, exited, func(message string) {
				c.mu.Lock()
				c.oom = message
				c.mu.Unlock()
				s.killRun(c)
			})
		})
	}
	status := <-c.exit
	close(exited)
	sampling.Wait()

	var remarks []string
	if err := s.tree(c).sweep(); err != nil {
		remarks = append(remarks, err.Error())
	}
	remarks = append(remarks, c.drain())
	message, err := readMessage(c.spec.TerminationPath)
	if err != nil {
		remarks = append(remarks, "termination message: "+err.Error())
	}
	run = c.result(run, status, remarks...)
	run.TerminationMessage = message
	s.update(run)
	s.use()
	close(c.ended)
}

func (s *Supervisor) tree(c *container) tree {
	return tree{reaper: s.reaper, main: c.pid, mark: c.mark(), sole: func() bool { return s.running(c) == 0 }}
}

// running counts the runs other than c that have not ended.
func (s *Supervisor) running(c *container) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runningLocked(c)
}

func (s *Supervisor) runningLocked(c *container) int {
	n := 0
	for _, other := range s.containers {
		if other != c && !isClosed(other.ended) {
			n++
		}
	}
	return n
}

func (s *Supervisor) use() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used = s.now()
}

func (s *Supervisor) killRun(c *container) {
	if _, err := s.tree(c).kill(); err != nil {
		s.log.Printf("kill %s: %v", c.key(), err)
	}
}

// onLive acts upon a run. One that has ended is left alone.
func (s *Supervisor) onLive(key runKey, act func(*container) error) error {
	if c := s.container(key); c != nil {
		<-c.started
		if isClosed(c.ended) {
			return nil
		}
		return act(c)
	}
	state, _ := s.snapshot()
	if _, known := state.Find(key.name, key.run); !known {
		return fmt.Errorf("%w: %s", ErrUnknownRun, key)
	}
	return nil
}

func (s *Supervisor) signal(c *container, sig syscall.Signal) error {
	if !c.ask(sig) {
		return nil
	}
	if sig == syscall.SIGKILL {
		s.killRun(c)
		return nil
	}
	if err := s.reaper.signal(c.pid, sig); err != nil {
		return fmt.Errorf("signal %s with %v: %w", c.key(), sig, err)
	}
	return nil
}

func (c *container) writeStdin(data []byte, eof bool) error {
	in := c.stdin
	if c.tty != nil {
		in, eof = c.tty, false // a terminal's input ends with ^D, not by closing
	}
	if in == nil {
		return fmt.Errorf("write to %s: it was started without standard input", c.key())
	}
	if _, err := in.Write(data); err != nil {
		return fmt.Errorf("write to %s: %w", c.key(), err)
	}
	if eof {
		return in.Close()
	}
	return nil
}

func (c *container) resize(rows, cols uint16) error {
	if c.tty == nil {
		return fmt.Errorf("resize %s: it has no terminal", c.key())
	}
	return pty.Setsize(c.tty, &pty.Winsize{Rows: rows, Cols: cols})
}
