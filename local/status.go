package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/vernier-ml/vernier/local/statefile"
)

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
	DBManager  string            `json:"dbManager,omitempty"`
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
