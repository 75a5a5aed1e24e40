package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"github.com/vernier-ml/vernier/local/agent"
)

// stopLimit bounds the time that pods are given to end when the instance stops.
const stopLimit = 40 * time.Second

// stopPods ends the processes of all pods; no agent runs any more.
func (s *supervisor) stopPods() {
	ctx, cancel := context.WithTimeout(context.Background(), stopLimit)
	defer cancel()
	if err := agent.StopPods(ctx, s.home.AgentRoot()); err != nil {
		s.log.Error(err, "cannot stop all pods")
	}
}

// upLimit bounds the whole start.
const upLimit = 3 * time.Minute

// Up starts the supervisor of a home, unless it runs already, and waits until
// the instance is ready. One that is being stopped is waited for and started
// again. started says whether this call started it. progress is told what is
// being waited for.
func Up(ctx context.Context, h Home, b Binaries, progress func(string)) (started bool, err error) {
	if err := h.create(); err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, upLimit)
	defer cancel()
	poll := time.NewTicker(50 * time.Millisecond)
	defer poll.Stop()
	var own *supervisorProcess
	said := ""
	for {
		status, err := ReadStatus(h)
		if err != nil {
			return false, err
		}
		running, err := h.isRunning()
		if err != nil {
			return false, err
		}
		waiting := waitingFor(status)
		switch {
		case own == nil && !running:
			if own, err = spawn(h, b); err != nil {
				return false, err
			}
		case own == nil && status.State == StateStopping:
			waiting = "the end of the instance that is being stopped"
		case (own == nil || status.PID == own.pid) && status.State == StateReady && waiting == "":
			return own != nil, nil
		}
		if waiting != said && waiting != "" && (own == nil || status.PID == own.pid) {
			said = waiting
			progress(waiting)
		}
		select {
		case err := <-own.end():
			if running, _ := h.isRunning(); running {
				own = nil // another up was faster
				continue
			}
			status, _ := ReadStatus(h)
			return true, fmt.Errorf("the supervisor ended (%w): %s; see its log %s:\n%s", err, status.Message, h.log("supervisor"), tailOf(h.log("supervisor")))
		case <-ctx.Done():
			return own != nil, fmt.Errorf("the instance in %s did not become ready: %w; see vernier status and %s", h, ctx.Err(), h.path("logs"))
		case <-poll.C:
		}
	}
}

// supervisorProcess is a supervisor that this process has started.
type supervisorProcess struct {
	pid   int
	ended chan error
}

// end yields the supervisor's end; never for none.
func (p *supervisorProcess) end() <-chan error {
	if p == nil {
		return nil
	}
	return p.ended
}

// spawn starts a supervisor that outlives this process.
func spawn(h Home, b Binaries) (*supervisorProcess, error) {
	if err := rotate(h.log("supervisor")); err != nil {
		return nil, err
	}
	out, err := os.OpenFile(h.log("supervisor"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	cmd := exec.Command(b.Vernier, "--home", string(h), "supervise")
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the supervisor: %w", err)
	}
	p := &supervisorProcess{pid: cmd.Process.Pid, ended: make(chan error, 1)}
	go func() { p.ended <- cmd.Wait() }()
	return p, nil
}

func waitingFor(s Status) string {
	for _, c := range s.Components {
		if !c.Ready {
			return c.Name
		}
	}
	return ""
}

// Down stops the instance of a home: its pods, then its components. It waits
// until the supervisor has ended. It is not an error if none runs.
func Down(ctx context.Context, h Home) error {
	status, err := ReadStatus(h)
	if err != nil {
		return err
	}
	running, err := h.isRunning()
	if err != nil {
		return err
	}
	if !running {
		// A supervisor that was killed may have left pods.
		return agent.StopPods(ctx, h.AgentRoot())
	}
	if status.PID <= 0 {
		return fmt.Errorf("a supervisor runs in %s but has not said its process id; try again", h)
	}
	if err := syscall.Kill(status.PID, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("stop the supervisor (process %d): %w", status.PID, err)
	}
	poll := time.NewTicker(50 * time.Millisecond)
	defer poll.Stop()
	for {
		running, err := h.isRunning()
		if err != nil {
			return err
		}
		if !running {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the supervisor (process %d) has not ended: %w", status.PID, ctx.Err())
		case <-poll.C:
		}
	}
}

// Delete removes what a stopped instance has in its home, and the home if nothing
// else is in it. kept names what else there is.
func Delete(h Home) (kept []string, err error) {
	running, err := h.isRunning()
	if err != nil {
		return nil, err
	}
	if running {
		return nil, fmt.Errorf("the instance in %s runs: stop it first", h)
	}
	if !h.exists() {
		return nil, fmt.Errorf("%s is not the home of an instance", h)
	}
	for _, name := range slices.Concat(homeFolders, homeFiles) {
		if err := os.RemoveAll(h.path(name)); err != nil {
			return nil, err
		}
	}
	entries, err := os.ReadDir(string(h))
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		kept = append(kept, e.Name())
	}
	if len(kept) > 0 {
		return kept, nil
	}
	return nil, os.Remove(string(h))
}
