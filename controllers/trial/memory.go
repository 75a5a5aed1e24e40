package trial

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// readShare is the part of the time, one in so many, that is spent at most on
// reading the store for one running trial: a curve may have millions of points.
const readShare = 20

// liveShare is how much each running trial adds to the time between two live views
// of one: all together are written to at most 50 times a second.
const liveShare = 20 * time.Millisecond

// memory holds what the controller saw pass by. All of it may be lost: a trial
// then waits a little longer, or runs a job again that went away meanwhile.
type memory struct {
	mu     sync.Mutex
	trials map[types.UID]memories
	// deleted are the UIDs of deleted trials whose points are still stored.
	deleted map[types.NamespacedName][]types.UID
}

type memories struct {
	// since is when the trial was first seen at a stage that is waited out.
	stage stage
	since time.Time
	// resting is until when the store is not read again while it runs.
	resting time.Time
	// gone is the last state of its job, which was deleted.
	gone *unstructured.Unstructured
}

func newMemory() *memory {
	return &memory{trials: map[types.UID]memories{}, deleted: map[types.NamespacedName][]types.UID{}}
}

// change changes what is remembered of a trial, and returns it.
func (m *memory) change(trial types.UID, f func(*memories)) memories {
	m.mu.Lock()
	defer m.mu.Unlock()
	of := m.trials[trial]
	f(&of)
	m.trials[trial] = of
	return of
}

func (m *memory) of(trial types.UID) memories {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.trials[trial]
}

// since is since when a trial has been seen at a stage.
func (m *memory) since(trial types.UID, at stage, now time.Time) time.Time {
	return m.change(trial, func(of *memories) {
		if of.since.IsZero() || of.stage != at {
			of.stage, of.since = at, now
		}
	}).since
}

func (m *memory) jobGone(trial types.UID, job *unstructured.Unstructured) {
	m.change(trial, func(of *memories) { of.gone = job })
}

// lastJob is the last state of a deleted job, or nil.
func (m *memory) lastJob(trial types.UID) *unstructured.Unstructured { return m.of(trial).gone }

// wasRead notes that the store was read for a running trial until now.
func (m *memory) wasRead(trial types.UID, took time.Duration, now time.Time) {
	m.change(trial, func(of *memories) {
		of.resting = now.Add(max(liveEvery, readShare*took, time.Duration(len(m.trials))*liveShare))
	})
}

// rest is how long the store is not read again for a running trial; zero or less
// means that it may be.
func (m *memory) rest(trial types.UID, now time.Time) time.Duration {
	until := m.of(trial).resting
	if until.IsZero() {
		return 0
	}
	return until.Sub(now)
}

// forgetJob drops what is known of a trial's job: there is a new one, or none
// is needed any more.
func (m *memory) forgetJob(trial types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.trials, trial)
}

// forgetJobs drops what is known of a trial that is gone by the last state of its
// job, which goes after it.
func (m *memory) forgetJobs(trial types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.trials, func(_ types.UID, of memories) bool {
		return of.gone != nil && of.gone.GetNamespace() == trial.Namespace && of.gone.GetName() == trial.Name
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
