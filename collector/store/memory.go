package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/vernier-ml/vernier/collector"
)

// memory keeps points in the process, for tests and for runs whose curves
// need not be kept.
type memory struct {
	mu     sync.RWMutex
	closed bool
	trials map[string]*memoryTrial // by UID
}

type memoryTrial struct {
	id       collector.TrialID
	touched  time.Time
	attempts map[string]*memoryAttempt // by ID
}

type memoryAttempt struct {
	state  collector.AttemptState
	points map[pointKey]collector.Point
}

type pointKey struct {
	source string
	seq    int64
}

var _ collector.Store = (*memory)(nil)

func openMemory(_ context.Context, rest string) (collector.Store, error) {
	if rest != "" {
		return nil, fmt.Errorf("nothing may follow %q", "memory:")
	}
	return &memory{trials: map[string]*memoryTrial{}}, nil
}

func (m *memory) Append(ctx context.Context, trial collector.TrialID, attempt collector.Attempt, points []collector.Point) error {
	if err := check(trial, attempt, points); err != nil {
		return err
	}
	return m.write(ctx, func() {
		a := m.attempt(trial, attempt)
		for _, p := range points {
			nanos, ok := storable(p.Time)
			p.Time = restored(nanos, ok)
			key := pointKey{p.Source, p.Seq}
			if _, known := a.points[key]; !known {
				a.points[key] = p
			}
			a.state.Acked[p.Source] = max(a.state.Acked[p.Source], p.Seq+1)
		}
	})
}

func (m *memory) Finish(ctx context.Context, trial collector.TrialID, attempt collector.Attempt, note string) error {
	if err := errors.Join(check(trial, attempt, nil), checkNote(note)); err != nil {
		return err
	}
	return m.write(ctx, func() {
		a := m.attempt(trial, attempt)
		a.state.Final, a.state.Note = true, note
	})
}

func (m *memory) Delete(ctx context.Context, trialUID string) error {
	return m.write(ctx, func() { delete(m.trials, trialUID) })
}

func (m *memory) Attempts(ctx context.Context, trialUID string) ([]collector.AttemptState, error) {
	var states []collector.AttemptState
	err := m.read(ctx, func() {
		for _, a := range m.sorted(trialUID) {
			state := a.state
			state.Acked = maps.Clone(state.Acked)
			states = append(states, state)
		}
	})
	return states, err
}

func (m *memory) Scan(ctx context.Context, trialUID string, metrics []string, yield func(collector.Attempt, collector.Point) error) error {
	var attempts []collector.Attempt
	var points [][]collector.Point
	err := m.read(ctx, func() {
		for _, a := range slices.Backward(m.sorted(trialUID)) {
			var of []collector.Point
			for _, p := range a.points {
				if len(metrics) == 0 || slices.Contains(metrics, p.Metric) {
					of = append(of, p)
				}
			}
			slices.SortFunc(of, func(a, b collector.Point) int {
				return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Seq, b.Seq))
			})
			attempts, points = append(attempts, a.state.Attempt), append(points, of)
		}
	})
	if err != nil {
		return err
	}
	for i, a := range attempts {
		for _, p := range points[i] {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := yield(a, p); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *memory) Metrics(ctx context.Context, trialUID string) ([]string, error) {
	names := map[string]bool{}
	err := m.read(ctx, func() {
		for _, a := range m.sorted(trialUID) {
			for _, p := range a.points {
				names[p.Metric] = true
			}
		}
	})
	return slices.Sorted(maps.Keys(names)), err
}

func (m *memory) Inventory(ctx context.Context) ([]collector.TrialInfo, error) {
	var infos []collector.TrialInfo
	err := m.read(ctx, func() {
		for _, uid := range slices.Sorted(maps.Keys(m.trials)) {
			info := collector.TrialInfo{TrialID: m.trials[uid].id, Touched: m.trials[uid].touched}
			metrics := map[string]bool{}
			for _, a := range m.trials[uid].attempts {
				info.Points += int64(len(a.points))
				info.Names += 1 + int64(len(a.state.Acked))
				for _, p := range a.points {
					info.TextBytes += int64(len(p.Text))
					metrics[p.Metric] = true
				}
			}
			info.Names += int64(len(metrics))
			infos = append(infos, info)
		}
	})
	return infos, err
}

func (m *memory) Stat(ctx context.Context) (collector.Stat, error) {
	stat := collector.Stat{Engine: "memory"}
	err := m.read(ctx, func() {
		experiments := map[[2]string]bool{}
		for _, t := range m.trials {
			if t.id.Experiment != "" {
				experiments[[2]string{t.id.Namespace, t.id.Experiment}] = true
			}
			for _, a := range t.attempts {
				stat.Points += int64(len(a.points))
			}
		}
		stat.Trials, stat.Experiments = int64(len(m.trials)), int64(len(experiments))
	})
	return stat, err
}

func (m *memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed, m.trials = true, nil
	return nil
}

func (m *memory) write(ctx context.Context, act func()) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.do(ctx, act)
}

func (m *memory) read(ctx context.Context, act func()) error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.do(ctx, act)
}

func (m *memory) do(ctx context.Context, act func()) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if m.closed {
		return ErrClosed
	}
	act()
	return nil
}

// attempt returns the attempt, made if it is new. The first identity and start
// time seen are kept; an experiment that was not known is added.
func (m *memory) attempt(trial collector.TrialID, attempt collector.Attempt) *memoryAttempt {
	t := m.trials[trial.UID]
	if t == nil {
		t = &memoryTrial{id: trial, attempts: map[string]*memoryAttempt{}}
		m.trials[trial.UID] = t
	}
	t.touched = time.Now().UTC()
	if t.id.Experiment == "" {
		t.id.Experiment = trial.Experiment
	}
	a := t.attempts[attempt.ID]
	if a == nil {
		nanos, ok := storable(attempt.Started)
		attempt.Started = restored(nanos, ok)
		a = &memoryAttempt{
			state:  collector.AttemptState{Attempt: attempt, Acked: map[string]int64{}},
			points: map[pointKey]collector.Point{},
		}
		t.attempts[attempt.ID] = a
	}
	return a
}

func (m *memory) sorted(trialUID string) []*memoryAttempt {
	t := m.trials[trialUID]
	if t == nil {
		return nil
	}
	return slices.SortedFunc(maps.Values(t.attempts), func(a, b *memoryAttempt) int {
		return collector.CompareAttempts(a.state.Attempt, b.state.Attempt)
	})
}
