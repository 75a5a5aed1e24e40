package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"
)

// component is one process that the supervisor keeps running.
type component struct {
	name string
	path string
	args []string
	env  []string // added to the supervisor's own
	// ready is nil when the process does its work.
	ready func(ctx context.Context) error
	// grace is the time between SIGTERM and SIGKILL at shutdown.
	grace time.Duration
}

// A component that ends is started again after firstBackoff, doubled each time
// up to lastBackoff, and reset once it ran for resetAfter.
const (
	firstBackoff = 100 * time.Millisecond
	lastBackoff  = 5 * time.Second
	resetAfter   = 10 * time.Second
)

// backoff yields the pauses before the next starts of a component.
type backoff struct{ wait.Backoff }

func (b *backoff) after(ran time.Duration) time.Duration {
	if b.Duration == 0 || ran >= resetAfter {
		b.Backoff = wait.Backoff{Duration: firstBackoff, Factor: 2, Cap: lastBackoff, Steps: math.MaxInt32}
	}
	return b.Step()
}

// starter starts processes from one thread that never ends: a child asks the
// kernel to be killed when its parent thread ends, so that nothing of an
// instance outlives a supervisor that was killed.
type starter struct{ requests chan func() }

func newStarter() *starter {
	s := &starter{requests: make(chan func())}
	go func() {
		runtime.LockOSThread()
		for request := range s.requests {
			request()
		}
	}()
	return s
}

func (s *starter) start(cmd *exec.Cmd) error {
	result := make(chan error)
	s.requests <- func() { result <- cmd.Start() }
	return <-result
}

// keeper runs one component until its context ends.
type keeper struct {
	component component
	starter   *starter
	logFile   string
	log       logr.Logger
	// changed is told the pid of each start, and 0 when the process has ended.
	changed func(pid int, ended error)
	// stopping is closed when the component should end and stay ended.
	stopping <-chan struct{}
}

// run starts the component again and again; it returns when the component has
// ended after stopping was closed.
func (k *keeper) run(ctx context.Context) {
	var pause backoff
	for {
		started := time.Now()
		err := k.runOnce(ctx)
		k.changed(0, err)
		select {
		case <-k.stopping:
			return
		default:
		}
		wait := pause.after(time.Since(started))
		k.log.Info("component ended; starting it again", "component", k.component.name, "error", fmt.Sprint(err), "after", wait.String())
		select {
		case <-k.stopping:
			return
		case <-time.After(wait):
		}
	}
}

func (k *keeper) runOnce(ctx context.Context) error {
	if err := rotate(k.logFile); err != nil {
		k.log.Error(err, "cannot shorten a log", "component", k.component.name)
	}
	out, err := os.OpenFile(k.logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	cmd := exec.Command(k.component.path, k.component.args...)
	// etcd ends at once when a variable of its own differs from a flag.
	ours := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "ETCD_") })
	cmd.Env = slices.Concat(ours, k.component.env)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = childAttributes()
	if err := k.starter.start(cmd); err != nil {
		return err
	}
	k.changed(cmd.Process.Pid, nil)
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	trim := time.NewTicker(trimEvery)
	defer trim.Stop()
	for stopping := false; !stopping; {
		select {
		case err := <-ended:
			return err
		case <-trim.C:
			if err := rotate(k.logFile); err != nil {
				k.log.Error(err, "cannot shorten a log", "component", k.component.name)
			}
		case <-k.stopping:
			stopping = true
		}
	}
	return k.stop(ctx, cmd, ended)
}

// stop ends the process: SIGTERM, and SIGKILL after the component's grace.
func (k *keeper) stop(ctx context.Context, cmd *exec.Cmd, ended <-chan error) error {
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return <-ended
	}
	grace := time.NewTimer(k.component.grace)
	defer grace.Stop()
	select {
	case err := <-ended:
		return err
	case <-grace.C:
	case <-ctx.Done():
	}
	_ = cmd.Process.Kill()
	return <-ended
}

const (
	// maxLog is the size at which a log is copied aside and emptied, so that
	// about two times that is kept.
	maxLog    = 16 << 20
	trimEvery = 30 * time.Second
)

// rotate copies a log that is larger than maxLog aside and empties it. Its
// writers append, so they go on at its new end; a line that is written at the
// very moment may be lost.
func rotate(file string) error {
	info, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() < maxLog {
		return nil
	}
	if err != nil {
		return err
	}
	from, err := os.Open(file)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.OpenFile(file+".1", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	if err = errors.Join(err, to.Close()); err != nil {
		return errors.Join(fmt.Errorf("copy %s aside: %w", file, err), os.Remove(to.Name()))
	}
	return os.Truncate(file, 0)
}
