package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/vernier-ml/vernier/collector"
)

const (
	// maxTrialNames bounds the names of metrics, sources and attempts that are stored
	// of one trial: each is a row, and all of them are read at once. A trial may have
	// 30,000 event files.
	maxTrialNames = 100_000
	// recountPause is the least time between two counts of the store, and recountEvery
	// the most while reports come: other managers may write to it.
	recountPause = time.Minute
	recountEvery = 10 * time.Minute
	// nearQuota is the part of a namespace's quota from which on it is said.
	nearQuota = 0.8
	// pointBytes is what a point takes up in SQLite, with its indexes.
	pointBytes = 41
)

// Quota bounds what is stored, so that neither a program nor a namespace can fill
// the disk of all. Zero or less is no limit.
type Quota struct {
	// TrialPoints is of one trial.
	TrialPoints int64
	// NamespacePoints and NamespaceBytes are of all trials of a namespace. A point
	// counts as 41 bytes and its text.
	NamespacePoints, NamespaceBytes int64
}

// ErrQuota is wrapped by the errors of LimitStore where no more is taken of a trial.
var ErrQuota = errors.New("no more is stored of this trial")

// errNames is wrapped beside ErrQuota where a trial has too many names.
var (
	errNames        = errors.New("under its names")
	errTooManyNames = fmt.Errorf("%w %w", ErrQuota, errNames)
)

// errRecount is wrapped where a count of the store may show that there is room.
var errRecount = errors.New("the store is counted again within a minute: send these again")

// LimitStore returns s as a store that holds a quota. A point that is sent again may
// count again until the store is counted anew, which is done before anything is
// refused. A call for which that must wait fails, and may be repeated.
func LimitStore(s collector.Store, q Quota, registerer prometheus.Registerer) (*LimitedStore, error) {
	l := &LimitedStore{Store: s, quota: q, now: time.Now, trials: map[string]*usage{}, namespaces: map[string]*usage{}, said: map[string]bool{},
		used: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "vernier_store_namespace_used_ratio",
			Help: "Part of its quota that a namespace uses, of points or bytes, whichever is more.",
		}, []string{"namespace"})}
	return l, register(registerer, l.used)
}

// LimitedStore is a store that holds a quota.
type LimitedStore struct {
	collector.Store
	quota Quota
	now   func() time.Time
	used  *prometheus.GaugeVec

	// counting is held for writing while the store is counted, so that nothing is on
	// its way there.
	counting sync.RWMutex

	mu         sync.Mutex
	counted    time.Time // zero: never
	trials     map[string]*usage
	namespaces map[string]*usage
	said       map[string]bool // namespaces that are known to be near their quota
}

// usage is what is stored of a trial or a namespace: what was counted, and at most
// what came since.
type usage struct {
	namespace      string
	counted, since amount
}

type amount struct{ points, bytes, names int64 }

func (a *amount) add(b amount, sign int64) {
	a.points += sign * b.points
	a.bytes += sign * b.bytes
	a.names += sign * b.names
}

// Append implements collector.Store.
func (l *LimitedStore) Append(ctx context.Context, trial collector.TrialID, attempt collector.Attempt, points []collector.Point) error {
	a := amountOf(points)
	err := l.take(ctx, trial, a, func() error { return l.Store.Append(ctx, trial, attempt, points) })
	if !errors.Is(err, errNames) {
		return err
	}
	// Most reports come under names that are there.
	if known, failed := l.known(ctx, trial.UID, attempt.ID, points); failed != nil || !known {
		return errors.Join(failed, err)
	}
	a.names = 0
	return l.take(ctx, trial, a, func() error { return l.Store.Append(ctx, trial, attempt, points) })
}

// known says whether all names of a report are stored already.
func (l *LimitedStore) known(ctx context.Context, uid, attempt string, points []collector.Point) (bool, error) {
	states, err := l.Attempts(ctx, uid)
	if err != nil {
		return false, err
	}
	metrics, err := l.Metrics(ctx, uid)
	if err != nil {
		return false, err
	}
	i := slices.IndexFunc(states, func(s collector.AttemptState) bool { return s.Attempt.ID == attempt })
	return i >= 0 && !slices.ContainsFunc(points, func(p collector.Point) bool {
		_, source := states[i].Acked[p.Source]
		_, metric := slices.BinarySearch(metrics, p.Metric)
		return !source || !metric
	}), nil
}

// Finish implements collector.Store. The note says when the namespace is near its
// quota, so that the trial's condition does.
func (l *LimitedStore) Finish(ctx context.Context, trial collector.TrialID, attempt collector.Attempt, note string) error {
	if near := l.near(trial.Namespace); near != "" {
		if note != "" {
			near = note + "; " + near
		}
		note = clip(near, maxNote)
	}
	return l.Store.Finish(ctx, trial, attempt, note)
}

// Delete implements collector.Store.
func (l *LimitedStore) Delete(ctx context.Context, trialUID string) error {
	err := l.Store.Delete(ctx, trialUID)
	l.mu.Lock()
	defer l.mu.Unlock()
	if t := l.trials[trialUID]; t != nil && err == nil {
		n := l.of(l.namespaces, t.namespace)
		n.counted.add(t.counted, -1)
		n.since.add(t.since, -1)
		delete(l.trials, trialUID)
	}
	return err
}

func amountOf(points []collector.Point) amount {
	a := amount{points: int64(len(points)), names: 1}
	metrics, sources := map[string]bool{}, map[string]bool{}
	for i := range points {
		p := &points[i]
		a.bytes += pointBytes + int64(len(p.Text))
		metrics[p.Metric], sources[p.Source] = true, true
	}
	a.names += int64(len(metrics) + len(sources))
	return a
}

// take stores what there is room for.
func (l *LimitedStore) take(ctx context.Context, trial collector.TrialID, a amount, store func() error) error {
	err := l.admitted(trial, a, store)
	if errors.Is(err, errRecount) {
		if err := l.count(ctx); err != nil {
			return err
		}
		err = l.admitted(trial, a, store)
	}
	return err
}

func (l *LimitedStore) admitted(trial collector.TrialID, a amount, store func() error) error {
	l.counting.RLock()
	defer l.counting.RUnlock()
	if err := l.reserve(trial, a); err != nil {
		return err
	}
	err := store()
	if err != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.of(l.trials, trial.UID).since.add(a, -1)
		l.of(l.namespaces, trial.Namespace).since.add(a, -1)
	}
	return err
}

// reserve notes that an amount is stored, or says why not.
func (l *LimitedStore) reserve(trial collector.TrialID, a amount) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.counted.IsZero() || l.now().Sub(l.counted) >= recountEvery {
		return errRecount
	}
	t, n := l.of(l.trials, trial.UID), l.of(l.namespaces, trial.Namespace)
	limits := []struct {
		counted, since, more, limit int64
		full                        error
		what                        string
	}{
		{t.counted.points, t.since.points, a.points, l.quota.TrialPoints, ErrQuota,
			"points of trial " + trial.Name + ": report less often (annotation vernier.ml/collector-rate), or raise --store-max-points of the manager"},
		{t.counted.names, t.since.names, a.names, maxTrialNames, errTooManyNames,
			"names of metrics, sources and attempts of trial " + trial.Name + ": report under fewer names"},
		{n.counted.points, n.since.points, a.points, l.quota.NamespacePoints, ErrQuota,
			"points of namespace " + trial.Namespace + ": delete old experiments, or raise --store-max-namespace-points of the manager"},
		{n.counted.bytes, n.since.bytes, a.bytes, l.quota.NamespaceBytes, ErrQuota,
			"bytes of namespace " + trial.Namespace + ": delete old experiments, or raise --store-max-namespace-bytes of the manager"},
	}
	for _, k := range limits {
		switch {
		case k.limit <= 0 || k.more == 0 || k.counted+k.since+k.more <= k.limit:
		case k.since > 0 && k.counted+k.more <= k.limit:
			return fmt.Errorf("%w: there may be %d, and at most %d are kept, %s", errRecount, k.counted+k.since, k.limit, k.what)
		default:
			return fmt.Errorf("%w: there are %d, and at most %d are kept, %s", k.full, k.counted, k.limit, k.what)
		}
	}
	t.namespace = trial.Namespace
	t.since.add(a, 1)
	n.since.add(a, 1)
	l.report(trial.Namespace, n)
	return nil
}

func (l *LimitedStore) of(all map[string]*usage, key string) *usage {
	u := all[key]
	if u == nil {
		u = &usage{}
		all[key] = u
	}
	return u
}

// count asks the store what it has, unless it did a moment ago. Others that wait for
// it find it done.
func (l *LimitedStore) count(ctx context.Context) error {
	l.counting.Lock()
	defer l.counting.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	if !l.counted.IsZero() && now.Sub(l.counted) < recountPause {
		return nil
	}
	infos, err := l.Inventory(ctx)
	if err != nil {
		return err
	}
	clear(l.trials)
	clear(l.namespaces)
	for _, t := range infos {
		a := amount{points: t.Points, bytes: t.Points*pointBytes + t.TextBytes, names: t.Names}
		l.of(l.trials, t.UID).counted.add(a, 1)
		l.trials[t.UID].namespace = t.Namespace
		l.of(l.namespaces, t.Namespace).counted.add(a, 1)
	}
	l.counted = now
	l.used.Reset()
	for namespace, u := range l.namespaces {
		l.report(namespace, u)
	}
	return nil
}

// report shows how much of its quota a namespace uses, and logs when it comes near.
func (l *LimitedStore) report(namespace string, u *usage) {
	part := l.part(u)
	l.used.WithLabelValues(clip(namespace, maxNote)).Set(part)
	if part >= nearQuota && !l.said[namespace] {
		slog.Warn("a namespace is near its quota of the store", "namespace", namespace,
			"points", u.counted.points+u.since.points, "bytes", u.counted.bytes+u.since.bytes, "used", part)
	}
	l.said[namespace] = part >= nearQuota
}

// part is that of the quota of a namespace, of points or of bytes.
func (l *LimitedStore) part(u *usage) float64 {
	part := 0.0
	if l.quota.NamespacePoints > 0 {
		part = float64(u.counted.points+u.since.points) / float64(l.quota.NamespacePoints)
	}
	if l.quota.NamespaceBytes > 0 {
		part = max(part, float64(u.counted.bytes+u.since.bytes)/float64(l.quota.NamespaceBytes))
	}
	return part
}

func (l *LimitedStore) near(namespace string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	u := l.namespaces[namespace]
	if u == nil || l.part(u) < nearQuota {
		return ""
	}
	return fmt.Sprintf("namespace %s uses %.0f %% of what the store keeps of it: delete old experiments", namespace, 100*l.part(u))
}
