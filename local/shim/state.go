package shim

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/vernier-ml/vernier/local/statefile"
)

const stateName = "state.json"

// ReadState reads what the shim of dir recorded last, whether it lives or not. It
// wraps fs.ErrNotExist when there never was one, and statefile.ErrCorrupt when it
// cannot be decoded.
func ReadState(dir string) (State, error) {
	path := filepath.Join(dir, stateName)
	var s State
	if err := statefile.ReadJSON(path, &s); err != nil {
		return State{}, err
	}
	if s.Version != Version {
		return State{}, fmt.Errorf("%s: %w: the file has %d, this program speaks %d", path, ErrVersion, s.Version, Version)
	}
	return s, nil
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
	slices.Reverse(kept)
	return kept
}
