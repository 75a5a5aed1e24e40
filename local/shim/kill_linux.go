package shim

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/vernier-ml/vernier/local/statefile"
)

// KillShim ends the shim of a pod directory with SIGKILL, its main processes with
// it. It is for a shim that does not answer; Shutdown is the orderly way. Nothing
// happens when the process that the state names is gone, or is another one by now.
func KillShim(dir string) error {
	state, err := ReadState(dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, statefile.ErrCorrupt) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("kill the shim of %s: %w", dir, err)
	}
	if state.PID <= 1 || state.BootID != bootID() || state.StartTicks != startTicks(state.PID) {
		return nil
	}
	if err := syscall.Kill(state.PID, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("kill the shim of %s (process %d): %w", dir, state.PID, err)
	}
	return nil
}
