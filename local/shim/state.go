package shim

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

const stateName = "state.json"

// ReadState reads what the shim of dir recorded last, whether it lives or not. It
// wraps fs.ErrNotExist when there never was one.
func ReadState(dir string) (State, error) {
	path := filepath.Join(dir, stateName)
	data, err := os.ReadFile(path)
	if err != nil {
		return State{}, err
	}
	var s State
	if err := json.Unmarshal(data, &s); err != nil {
		return State{}, fmt.Errorf("%s: %w", path, err)
	}
	if s.Version != Version {
		return State{}, fmt.Errorf("%s: %w: the file has %d, this program speaks %d", path, ErrVersion, s.Version, Version)
	}
	return s, nil
}

// writeState replaces the file as a whole: a reader sees the old state or the new
// one, also after a power failure.
func writeState(dir string, s State) error {
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, stateName)
	f, err := os.OpenFile(path+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(data, '\n'))
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", f.Name(), err)
	}
	return os.Rename(f.Name(), path)
}

// forget drops the oldest runs of each container beyond KeepRuns. A run that has
// not ended is always kept.
func forget(runs []Run) []Run {
	newer := make(map[string]int)
	kept := make([]Run, 0, len(runs))
	for i := len(runs) - 1; i >= 0; i-- {
		r := runs[i]
		if newer[r.Name] < KeepRuns || r.Phase != Exited {
			kept = append(kept, r)
		}
		newer[r.Name]++
	}
	for i, j := 0, len(kept)-1; i < j; i, j = i+1, j-1 {
		kept[i], kept[j] = kept[j], kept[i]
	}
	return kept
}
