package server

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"sync"
	"time"

	"github.com/vernier-ml/vernier/collector"
)

const (
	// maxTrialNames bounds the names that are stored of one trial: each is a row,
	// too, and all of them are read at once. A trial may have 30,000 event files.
	maxTrialNames = 100_000
	// maxRooms bounds the trials of which is known how much is stored, and
	// maxRoomNames the names in them. What is forgotten is asked again.
	maxRooms     = 20_000
	maxRoomNames = 1 << 22
	// countTime bounds the counting of one trial's points.
	countTime = 5 * time.Minute
	// A trial is counted again once this part of the limit was stored since, or
	// when something was and so much time has passed.
	recountPart  = 16
	recountPause = time.Minute
)

// errTrialFull is wrapped by the errors of a store that takes no more of a trial.
var errTrialFull = errors.New("no more is stored of this trial")

// LimitStore returns s as a store that takes at most so many points of one trial,
// so that one program cannot fill the disk. Zero or less is no limit. A point that
// is sent again may count again until the trial is near the limit; then its points
// are counted. A call for which that must wait fails, and may be repeated.
func LimitStore(s collector.Store, points int64) collector.Store {
	if points <= 0 {
		return s
	}
	return &limitedStore{Store: s, limit: points, seed: maphash.MakeSeed(), rooms: map[string]*room{}}
}

type limitedStore struct {
	collector.Store
	limit int64
	seed  maphash.Seed

	mu    sync.Mutex
	rooms map[string]*room // by the trial's UID
	names int              // about as many as are in rooms
}

// room is how much is stored of a trial.
type room struct {
	turn chan struct{} // has an element while somebody looks at what follows

	known   bool // the store was asked
	names   map[uint64]bool
	counted time.Time // when they were counted; zero: never
	tried   time.Time // when it was tried last

	// Those that have waited for the store say how it ended, without a turn.
	mu     sync.Mutex
	base   int64 // so many were stored when they were counted; before: at most so many
	since  int64 // at most so many were stored since
	flying int64 // so many are on their way to the store
}

// most is how many points are stored at most, once all have arrived.
func (r *room) most() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.base + r.since + r.flying
}

// countDue says whether another count may tell more, and is worth its time.
func (r *room) countDue(limit int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	rested := r.tried.IsZero() || time.Since(r.tried) >= recountPause
	if r.counted.IsZero() {
		return rested
	}
	return r.since > 0 && (rested || r.since >= limit/recountPart)
}

// landed ends the way of n points to the store.
func (r *room) landed(n int64, stored bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.flying -= n
	if stored {
		r.since += n
	}
}

// Append implements collector.Store.
func (l *limitedStore) Append(ctx context.Context, trial collector.TrialID, attempt collector.Attempt, points []collector.Point) error {
	r := l.room(trial.UID)
	if err := l.take(ctx, r, trial, attempt, points); err != nil {
		return err
	}
	err := l.Store.Append(ctx, trial, attempt, points)
	r.landed(int64(len(points)), err == nil)
	return err
}

// Finish implements collector.Store.
func (l *limitedStore) Finish(ctx context.Context, trial collector.TrialID, attempt collector.Attempt, note string) error {
	if err := l.take(ctx, l.room(trial.UID), trial, attempt, nil); err != nil {
		return err
	}
	return l.Store.Finish(ctx, trial, attempt, note)
}

// Delete implements collector.Store.
func (l *limitedStore) Delete(ctx context.Context, trialUID string) error {
	err := l.Store.Delete(ctx, trialUID)
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.rooms, trialUID)
	return err
}

func (l *limitedStore) room(uid string) *room {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.rooms[uid]
	if r == nil {
		l.bound()
		r = &room{turn: make(chan struct{}, 1), names: map[uint64]bool{}}
		l.rooms[uid] = r
	}
	return r
}

func (l *limitedStore) bound() {
	if len(l.rooms) >= maxRooms || l.names > maxRoomNames {
		clear(l.rooms)
		l.names = 0
	}
}

// take reserves room for points, or says that there is none.
func (l *limitedStore) take(ctx context.Context, r *room, trial collector.TrialID, attempt collector.Attempt, points []collector.Point) error {
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := l.learn(ctx, r, trial.UID); err != nil {
		return err
	}
	n := int64(len(points))
	if err := l.fits(ctx, r, trial, n); err != nil {
		return err
	}
	fresh := l.fresh(r, attempt, points)
	if len(fresh) > 0 && len(r.names)+len(fresh) > maxTrialNames {
		return fmt.Errorf("%w: %s has names of %d metrics, sources and attempts, and at most %d are kept: report under fewer names",
			errTrialFull, trial.Name, len(r.names), maxTrialNames)
	}
	l.remember(r, fresh)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.flying += n
	return nil
}

// fits says whether there is room for n points. Only a count shows that there is
// none: points that are sent again are taken for new ones.
func (l *limitedStore) fits(ctx context.Context, r *room, trial collector.TrialID, n int64) error {
	if n == 0 || r.most()+n <= l.limit {
		return nil
	}
	if r.countDue(l.limit) {
		if err := l.count(ctx, r, trial.UID); err != nil {
			return err
		}
	}
	most := r.most()
	switch {
	case most+n <= l.limit:
		return nil
	case r.counted.IsZero() || r.base+n <= l.limit:
		return fmt.Errorf("%s may have up to %d points, and at most %d are kept: they are counted again within a minute, so send these again",
			trial.Name, most, l.limit)
	}
	return fmt.Errorf("%w: %s has %d points, and at most %d are kept: report less often (annotation vernier.ml/collector-rate), or raise --store-max-points of the manager",
		errTrialFull, trial.Name, r.base, l.limit)
}

// learn asks the store, once, what it has of a trial. Points are not counted: there
// are no more of a source than the sequence that is acknowledged.
func (l *limitedStore) learn(ctx context.Context, r *room, uid string) error {
	if r.known {
		return nil
	}
	states, err := l.Attempts(ctx, uid)
	if err != nil {
		return err
	}
	metrics, err := l.Metrics(ctx, uid)
	if err != nil {
		return err
	}
	var names []uint64
	most := int64(0)
	for _, m := range metrics {
		names = append(names, l.name("metric", m))
	}
	for _, state := range states {
		names = append(names, l.name("attempt", state.Attempt.ID))
		for source, next := range state.Acked {
			names = append(names, l.name(state.Attempt.ID, source))
			most = min(most, l.limit) + min(next, l.limit) // of any size
		}
	}
	l.remember(r, names)
	r.known = true
	r.mu.Lock()
	defer r.mu.Unlock()
	r.base = most
	return nil
}

// count counts the points of a trial. It goes on when the caller gives up, who will
// ask again.
func (l *limitedStore) count(ctx context.Context, r *room, uid string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), countTime)
	defer cancel()
	r.mu.Lock()
	before := r.since
	r.mu.Unlock()
	n, err := l.Count(ctx, uid)
	r.tried = time.Now()
	if err != nil {
		return err
	}
	r.counted = r.tried
	r.mu.Lock()
	defer r.mu.Unlock()
	r.base, r.since = n, r.since-before // what arrived meanwhile may not be among n
	return nil
}

// fresh are the names of a report that the trial does not have yet.
func (l *limitedStore) fresh(r *room, attempt collector.Attempt, points []collector.Point) (names []uint64) {
	seen := map[uint64]bool{}
	look := func(of, name string) {
		if h := l.name(of, name); !r.names[h] && !seen[h] {
			seen[h] = true
			names = append(names, h)
		}
	}
	look("attempt", attempt.ID)
	metric, source := "", ""
	for i := range points {
		p := &points[i]
		if p.Metric != metric {
			metric = p.Metric
			look("metric", metric)
		}
		if p.Source != source {
			source = p.Source
			look(attempt.ID, source)
		}
	}
	return names
}

// name stands for a name of a kind: trials choose them, and they may be long.
func (l *limitedStore) name(of, name string) uint64 {
	var h maphash.Hash
	h.SetSeed(l.seed)
	_, _ = h.WriteString(of) // never fails
	_ = h.WriteByte(0)       // likewise
	_, _ = h.WriteString(name)
	return h.Sum64()
}

func (l *limitedStore) remember(r *room, names []uint64) {
	for _, h := range names {
		r.names[h] = true
	}
	if len(names) > 0 {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.names += len(names)
		l.bound()
	}
}
