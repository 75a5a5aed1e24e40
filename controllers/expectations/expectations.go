// Package expectations keeps a controller from acting on a cache that does not show
// yet what the controller itself wrote.
package expectations

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Expectations remember the resource version of the last write to each object. They
// may be used from several goroutines. They are an economy only: an object that is
// stale costs a conflict at the next write, not a wrong result.
type Expectations struct {
	mu    sync.Mutex
	wrote map[types.UID]string
}

// New returns expectations of nothing.
func New() *Expectations { return &Expectations{wrote: map[types.UID]string{}} }

// Wrote notes obj as the API server returned it from a write.
func (e *Expectations) Wrote(obj client.Object) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.wrote[obj.GetUID()] = obj.GetResourceVersion()
}

// Stale says whether obj, read from a cache, is older than the last write that
// was noted. The watch event of that write is still to come and wakes the
// controller again, so nothing needs to be done now.
func (e *Expectations) Stale(obj client.Object) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	last, ok := e.wrote[obj.GetUID()]
	if !ok {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(obj.GetResourceVersion(), last)
	if err != nil || order >= 0 {
		// The cache has caught up, or versions cannot be compared here.
		delete(e.wrote, obj.GetUID())
		return false
	}
	return true
}

// Forget drops what is known of a deleted object.
func (e *Expectations) Forget(uid types.UID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.wrote, uid)
}
