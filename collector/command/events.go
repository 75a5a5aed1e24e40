package command

import (
	"context"
	"iter"
	"path/filepath"
	"time"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/source/events"
)

// fileEvents is what the TensorFlowEvent kind remembers.
const fileEvents = "events.state"

func prepareEvents(ctx context.Context, r *runner, a *attempt) (opener, error) {
	before, err := before(r.cfg, events.IsEventFile)
	if err != nil {
		return nil, err
	}
	dir, err := events.New(events.Config{
		Dir: r.cfg.path, Metrics: r.cfg.metrics, Before: before, Given: r.cfg.given(),
		State: filepath.Join(r.cfg.dir, fileEvents), Drain: a.over.Done()})
	if err != nil {
		return nil, err
	}
	return r.sessions(ctx, a, dir.Sessions), nil
}

// sessions is the first session of an event directory, or of a journal. The others
// become attempts of their own: what a program measured before it went back to an
// earlier step is void from that step on, as between the attempts of a program that
// is started anew.
type sessions struct {
	points func(ctx context.Context) iter.Seq2[events.SessionPoint, error]
	// next begins an attempt. It is later than the first, whatever the program's clock
	// says.
	next func(n int, started time.Time, s collector.Source)
	// later are the sessions from 1 on. They outlive one reading.
	later []session
}

func (r *runner) sessions(ctx context.Context, first *attempt, points func(ctx context.Context) iter.Seq2[events.SessionPoint, error]) opener {
	next := func(n int, started time.Time, s collector.Source) {
		if least := first.Started.Add(time.Duration(n)); started.Before(least) {
			started = least
		}
		a := &attempt{Attempt: r.identity(n, started), n: n, over: first.over}
		r.report(ctx, a, func(map[string]int64) ([]collector.Source, error) { return []collector.Source{s}, nil })
	}
	return func(map[string]int64) ([]collector.Source, error) {
		return []collector.Source{&sessions{points: points, next: next}}, nil
	}
}

// Points implements collector.Source.
func (s *sessions) Points(ctx context.Context) iter.Seq2[collector.Point, error] {
	return func(yield func(collector.Point, error) bool) {
		// After a reading that was cut short, the attempts are there already, and
		// pass over what they have seen.
		for p, err := range s.points(ctx) {
			if err != nil || p.Session == 0 {
				if !yield(p.Point, err) {
					return
				}
				continue
			}
			for len(s.later) < p.Session {
				one := make(session)
				s.later = append(s.later, one)
				s.next(len(s.later), p.Began[len(s.later)], one)
			}
			select {
			case s.later[p.Session-1] <- p.Point:
			case <-ctx.Done():
				return
			}
		}
		if ctx.Err() == nil {
			for _, one := range s.later {
				close(one)
			}
			s.later = nil
		}
	}
}

// session is one session after the first. It ends when all are read.
type session chan collector.Point

// Points implements collector.Source.
func (s session) Points(ctx context.Context) iter.Seq2[collector.Point, error] {
	return func(yield func(collector.Point, error) bool) {
		for {
			select {
			case p, open := <-s:
				if !open || !yield(p, nil) {
					return
				}
			case <-ctx.Done():
				yield(collector.Point{}, ctx.Err())
				return
			}
		}
	}
}
