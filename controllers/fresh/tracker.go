// Package fresh keeps a controller from acting on a cache that has not yet seen
// what the controller itself wrote.
package fresh

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Tracker remembers the resource version of the last write to each object. It
// may be used from several goroutines. It is an economy only: an object that is
// stale costs a conflict at the next write, not a wrong result.
type Tracker struct {
	mu    sync.Mutex
	wrote map[types.UID]string
}

// NewTracker returns an empty tracker.
func NewTracker() *Tracker { return &Tracker{wrote: map[types.UID]string{}} }

// Wrote notes obj as the API server returned it from a write.
func (t *Tracker) Wrote(obj client.Object) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wrote[obj.GetUID()] = obj.GetResourceVersion()
}

// Stale says whether obj, read from a cache, is older than the last write that
// was noted. The watch event of that write is still to come and wakes the
// controller again, so nothing needs to be done now.
func (t *Tracker) Stale(obj client.Object) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	last, ok := t.wrote[obj.GetUID()]
	if !ok {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(obj.GetResourceVersion(), last)
	if err != nil || order >= 0 {
		// The cache has caught up, or versions cannot be compared here.
		delete(t.wrote, obj.GetUID())
		return false
	}
	return true
}

// Forget drops what is known of a deleted object.
func (t *Tracker) Forget(uid types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.wrote, uid)
}
