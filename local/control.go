package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/vernier-ml/vernier/local/agent"
	"github.com/vernier-ml/vernier/local/statefile"
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
	own, ended := 0, make(chan error, 1) // the process that this call has started, and its end
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
		case own == 0 && !running:
			if own, err = spawn(h, b, ended); err != nil {
				return false, err
			}
		case own == 0 && status.State == StateStopping:
			waiting = "the end of the instance that is being stopped"
		case (own == 0 || status.PID == own) && status.State == StateReady && waiting == "":
			return own != 0, nil
		}
		if waiting != said && waiting != "" && (own == 0 || status.PID == own) {
			said = waiting
			progress(waiting)
		}
		select {
		case err := <-ended:
			if running, _ := h.isRunning(); running {
				own = 0 // another up was faster
				continue
			}
			status, _ := ReadStatus(h)
			return true, fmt.Errorf("the supervisor ended (%w): %s; see its log %s:\n%s", err, status.Message, h.log("supervisor"), tailOf(h.log("supervisor")))
		case <-ctx.Done():
			return own != 0, fmt.Errorf("the instance in %s did not become ready: %w; see vernier status and %s", h, ctx.Err(), h.path("logs"))
		case <-poll.C:
		}
	}
}

// spawn starts a supervisor that outlives this process. Its end is told to ended.
func spawn(h Home, b Binaries, ended chan<- error) (pid int, err error) {
	_ = rotate(h.log("supervisor")) // a long log keeps nothing from starting
	out, err := os.OpenFile(h.log("supervisor"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	defer out.Close()
	cmd := exec.Command(b.path("vernier"), "--home", string(h), "supervise")
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("start the supervisor: %w", err)
	}
	go func() { ended <- cmd.Wait() }()
	return cmd.Process.Pid, nil
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
	err = wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(context.Context) (bool, error) {
		running, err := h.isRunning()
		return !running, err
	})
	if err != nil {
		return fmt.Errorf("the supervisor (process %d) has not ended: %w", status.PID, err)
	}
	return nil
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
	if !h.Exists() {
		return nil, fmt.Errorf("%s is not the home of an instance", h)
	}
	for _, name := range slices.Concat(homeFolders, homeFiles) {
		if err := agent.RemoveTree(h.path(name)); err != nil {
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

// State is how far an instance has come.
type State string

// The states of an instance.
const (
	StateStarting State = "Starting"
	StateReady    State = "Ready"
	StateStopping State = "Stopping"
	StateStopped  State = "Stopped"
	StateFailed   State = "Failed"
)

// Status is what the supervisor says of its instance.
type Status struct {
	State   State  `json:"state"`
	Message string `json:"message,omitempty"`
	// PID of the supervisor.
	PID     int       `json:"pid"`
	Started time.Time `json:"started"`
	// Ready is when everything was ready for the first time.
	Ready time.Time `json:"ready,omitzero"`
	// DBManager is where Katib's SDK reads metrics.
	DBManager string `json:"dbManager,omitempty"`
	// API is the URL of the programmatic API, whose token is in Home.APIToken.
	API string `json:"api,omitempty"`
	// PodNetwork says whether pods can have networks of their own, or why not.
	PodNetwork string            `json:"podNetwork,omitempty"`
	Components []ComponentStatus `json:"components"`
}

// ComponentStatus is what the supervisor says of one component.
type ComponentStatus struct {
	Name string `json:"name"`
	// PID is 0 while the component is not running.
	PID      int  `json:"pid"`
	Started  bool `json:"-"`
	Ready    bool `json:"ready"`
	Restarts int  `json:"restarts"`
	// Since is when the process was started.
	Since     time.Time `json:"since"`
	LastError string    `json:"lastError,omitempty"`
	// ResidentBytes is the process's resident memory; filled in by ReadStatus.
	ResidentBytes int64 `json:"residentBytes,omitempty"`
}

func (s *Status) component(name string) *ComponentStatus {
	i := slices.IndexFunc(s.Components, func(c ComponentStatus) bool { return c.Name == name })
	if i < 0 {
		s.Components = append(s.Components, ComponentStatus{Name: name})
		i = len(s.Components) - 1
	}
	return &s.Components[i]
}

// ReadStatus reads what the supervisor of a home last said. The state is
// Stopped when no supervisor runs, whatever the last one said.
func ReadStatus(h Home) (Status, error) {
	s, err := readStatus(h)
	if errors.Is(err, fs.ErrPermission) {
		err = fmt.Errorf("read the home %s: %w; %s", h, err, otherHome)
	}
	return s, err
}

func readStatus(h Home) (Status, error) {
	var s Status
	err := statefile.ReadJSON(h.path("run", "status.json"), &s)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, statefile.ErrCorrupt) {
		return Status{}, err
	}
	running, err := h.isRunning()
	switch {
	case err != nil:
		return Status{}, err
	case running && (s.PID == 0 || syscall.Kill(s.PID, 0) != nil):
		// A supervisor that has just begun: the file is that of an earlier one.
		return Status{State: StateStarting}, nil
	case !running && s.State != StateFailed:
		s.State = StateStopped
	}
	if !running {
		s.Components = nil
	}
	for i, c := range s.Components {
		s.Components[i].ResidentBytes = residentBytes(c.PID)
	}
	return s, nil
}

// isRunning says whether a supervisor has the home.
func (h Home) isRunning() (bool, error) {
	file, err := os.OpenFile(h.path("run", "lock"), os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer file.Close()
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return true, nil
	}
	return false, err
}

// residentBytes is the resident memory of a process, or 0 where it cannot be
// read.
func residentBytes(pid int) int64 {
	if pid == 0 {
		return 0
	}
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(data)) {
		var kilobytes int64
		if n, _ := fmt.Sscanf(line, "VmRSS: %d kB", &kilobytes); n == 1 {
			return kilobytes << 10
		}
	}
	return 0
}
