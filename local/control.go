package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/vernier-ml/vernier/local/agent"
)

// stopPods ends the processes of all pods; no agent runs any more.
func (s *supervisor) stopPods() {
	ctx, cancel := context.WithTimeout(context.Background(), stopLimit)
	defer cancel()
	if err := agent.StopPods(ctx, s.home.AgentRoot()); err != nil {
		s.log.Error(err, "cannot stop all pods")
	}
}

// Up starts the supervisor of a home, unless it runs already, and waits until
// the instance is ready. started says whether this call started it. progress is
// told what is being waited for.
func Up(ctx context.Context, h Home, b Binaries, progress func(string)) (started bool, err error) {
	if err := h.create(); err != nil {
		return false, err
	}
	running, err := h.isRunning()
	if err != nil {
		return false, err
	}
	var supervisor *exec.Cmd
	if !running {
		supervisor, err = spawn(h, b)
		if err != nil {
			return false, err
		}
		started = true
	}
	return started, awaitUp(ctx, h, supervisor, progress)
}

// spawn starts a supervisor that outlives this process.
func spawn(h Home, b Binaries) (*exec.Cmd, error) {
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
	cmd.SysProcAttr = detached()
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the supervisor: %w", err)
	}
	return cmd, nil
}

// upLimit bounds the whole start.
const upLimit = 3 * time.Minute

func awaitUp(ctx context.Context, h Home, supervisor *exec.Cmd, progress func(string)) error {
	ctx, cancel := context.WithTimeout(ctx, upLimit)
	defer cancel()
	ended := make(chan error, 1)
	if supervisor != nil {
		go func() { ended <- supervisor.Wait() }()
	}
	poll := time.NewTicker(50 * time.Millisecond)
	defer poll.Stop()
	said := ""
	for {
		status, err := ReadStatus(h)
		if err != nil {
			return err
		}
		ours := supervisor == nil || status.PID == supervisor.Process.Pid
		if ours && status.State == StateReady && waitingFor(status) == "" {
			return nil
		}
		if waiting := waitingFor(status); ours && waiting != said && waiting != "" {
			said = waiting
			progress(waiting)
		}
		select {
		case err := <-ended:
			status, _ := ReadStatus(h)
			return fmt.Errorf("the supervisor ended (%w): %s; the end of its log %s:\n%s", err, status.Message, h.log("supervisor"), tailOf(h.log("supervisor")))
		case <-ctx.Done():
			return fmt.Errorf("the instance in %s did not become ready: %w; see vernier status and %s", h, ctx.Err(), h.path("logs"))
		case <-poll.C:
		}
	}
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
		return h.stopLeftovers(ctx)
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

// stopLeftovers ends the pods that a killed supervisor left behind.
func (h Home) stopLeftovers(ctx context.Context) error {
	return agent.StopPods(ctx, h.AgentRoot())
}

// Delete removes the home of a stopped instance.
func Delete(h Home) error {
	running, err := h.isRunning()
	if err != nil {
		return err
	}
	if running {
		return fmt.Errorf("the instance in %s runs: stop it first", h)
	}
	if !h.exists() {
		return fmt.Errorf("%s is not the home of an instance", h)
	}
	return os.RemoveAll(string(h))
}
