package command

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
)

// reportedName is a file of an attempt that is stored to its end, and whose output is
// gone: a sidecar that starts again passes it over.
const reportedName = "reported"

// outputs removes the kept output of attempts that are stored to their end, but of
// the newest, of which a sidecar that starts again makes its summary.
type outputs struct {
	mu     sync.Mutex
	newest int
	stored map[int]bool
}

// begin notes that an attempt begins.
func (o *outputs) begin(dir string, n int) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.newest = max(o.newest, n)
	return o.free(dir)
}

// end notes that an attempt is stored to its end.
func (o *outputs) end(dir string, n int) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.stored == nil {
		o.stored = map[int]bool{}
	}
	o.stored[n] = true
	return o.free(dir)
}

func (o *outputs) free(dir string) (err error) {
	for n := range o.stored {
		if n >= o.newest {
			continue
		}
		delete(o.stored, n)
		// The mark first: without its output the attempt must not be read again.
		mark := os.WriteFile(filepath.Join(attemptDir(dir, n), reportedName), nil, 0o644)
		if mark == nil {
			mark = os.RemoveAll(filepath.Join(attemptDir(dir, n), streamName))
		}
		err = errors.Join(err, mark)
	}
	return err
}

// reported says whether an attempt is stored to its end and its output gone.
func reported(dir string, n int) bool {
	_, err := os.Stat(filepath.Join(attemptDir(dir, n), reportedName))
	return err == nil
}
