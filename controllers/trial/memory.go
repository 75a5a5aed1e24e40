package trial

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// memory holds what the controller saw pass by. All of it may be lost: a trial
// then waits a little longer, or runs a job again that went away meanwhile.
type memory struct {
	mu sync.Mutex
	// succeeded is when the job of a trial was first seen as succeeded.
	succeeded map[types.UID]time.Time
	// stopping is when a trial was first seen as one to be stopped early.
	stopping map[types.UID]time.Time
	// gone is the last state of a job that was deleted, by the trial's UID.
	gone map[types.UID]*unstructured.Unstructured
	// resting is until when the store is not read again for a running trial.
	resting map[types.UID]time.Time
	// deleted are the UIDs of deleted trials whose points are still stored.
	deleted map[types.NamespacedName][]types.UID
}

func newMemory() *memory {
	return &memory{
		succeeded: map[types.UID]time.Time{},
		stopping:  map[types.UID]time.Time{},
		gone:      map[types.UID]*unstructured.Unstructured{},
		resting:   map[types.UID]time.Time{},
		deleted:   map[types.NamespacedName][]types.UID{},
	}
}

// succeededFor is how long the job of a trial has been seen as succeeded.
func (m *memory) succeededFor(trial types.UID, now time.Time) time.Duration {
	return m.since(m.succeeded, trial, now)
}

// stoppingFor is how long a trial has been seen as one to be stopped early.
func (m *memory) stoppingFor(trial types.UID, now time.Time) time.Duration {
	return m.since(m.stopping, trial, now)
}

func (m *memory) since(seen map[types.UID]time.Time, trial types.UID, now time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	first, ok := seen[trial]
	if !ok {
		seen[trial], first = now, now
	}
	return now.Sub(first)
}

func (m *memory) jobGone(trial types.UID, job *unstructured.Unstructured) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.gone[trial] = job
}

// lastJob is the last state of a deleted job, or nil.
func (m *memory) lastJob(trial types.UID) *unstructured.Unstructured {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.gone[trial]
}

// readShare is the part of the time, one in so many, that is spent at most on
// reading the store for one running trial: a curve may have millions of points.
const readShare = 20

// wasRead notes that the store was read for a running trial until now.
func (m *memory) wasRead(trial types.UID, took time.Duration, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.resting[trial] = now.Add(max(liveEvery, readShare*took))
}

// rest is how long the store is not read again for a running trial; zero or less
// means that it may be.
func (m *memory) rest(trial types.UID, now time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	until, ok := m.resting[trial]
	if !ok {
		return 0
	}
	return until.Sub(now)
}

// forgetJob drops what is known of a trial's job: there is a new one, or none
// is needed any more.
func (m *memory) forgetJob(trial types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.gone, trial)
	delete(m.succeeded, trial)
	delete(m.stopping, trial)
	delete(m.resting, trial)
}

// forgetJobs drops the last states of the jobs of a trial that is gone: its job
// goes after it, and nobody asks for that state any more.
func (m *memory) forgetJobs(trial types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.gone, func(_ types.UID, job *unstructured.Unstructured) bool {
		return job.GetNamespace() == trial.Namespace && job.GetName() == trial.Name
	})
}

func (m *memory) trialDeleted(key types.NamespacedName, uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.deleted[key] = append(m.deleted[key], uid)
}

// takeDeleted returns the deleted trials of a name, and forgets them.
func (m *memory) takeDeleted(key types.NamespacedName) []types.UID {
	m.mu.Lock()
	defer m.mu.Unlock()
	uids := m.deleted[key]
	delete(m.deleted, key)
	return uids
}
