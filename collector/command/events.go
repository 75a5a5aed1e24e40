package command

import (
	"context"
	"iter"
	"path/filepath"
	"strconv"
	"time"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/source/events"
)

// fileEvents is what the TensorFlowEvent kind remembers.
const fileEvents = "events.state"

func prepareEvents(_ context.Context, j job) (opener, error) {
	before, err := before(j.cfg, events.IsEventFile)
	if err != nil {
		return nil, err
	}
	dir, err := events.New(events.Config{
		Dir: j.cfg.path, Metrics: j.cfg.metrics, Before: before, Given: j.cfg.given(),
		State: filepath.Join(j.cfg.dir, fileEvents), Drain: j.drain})
	if err != nil {
		return nil, err
	}
	return func(map[string]int64) ([]collector.Source, error) {
		return []collector.Source{&sessions{points: dir.Sessions, next: j.next}}, nil
	}, nil
}

// sessions is the first session of an event directory. The others become
// attempts of their own: what a program measured before it went back to an
// earlier step is void from that step on, as between the attempts of a program
// that is started anew.
type sessions struct {
	points func(ctx context.Context) iter.Seq2[events.SessionPoint, error]
	// next begins an attempt.
	next func(n int, started time.Time, s collector.Source)
	// later are the sessions from 1 on. They outlive one reading.
	later []*session
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
				one := &session{points: make(chan collector.Point)}
				s.later = append(s.later, one)
				s.next(len(s.later), p.Began[len(s.later)], one)
			}
			select {
			case s.later[p.Session-1].points <- p.Point:
			case <-ctx.Done():
				return
			}
		}
		if ctx.Err() == nil {
			for _, one := range s.later {
				close(one.points)
			}
			s.later = nil
		}
	}
}

// session is one session after the first. It ends when all are read.
type session struct{ points chan collector.Point }

// Points implements collector.Source.
func (s *session) Points(ctx context.Context) iter.Seq2[collector.Point, error] {
	return func(yield func(collector.Point, error) bool) {
		for {
			select {
			case p, open := <-s.points:
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

// follow begins attempts whose sources are there already. They are later than
// the first, whatever the program's clock says.
func (r *runner) follow(ctx context.Context, first collector.Attempt, drain <-chan struct{}) func(int, time.Time, collector.Source) {
	return func(n int, started time.Time, s collector.Source) {
		if least := first.Started.Add(time.Duration(n)); started.Before(least) {
			started = least
		}
		r.report(ctx, n, collector.Attempt{ID: r.cfg.podUID + "/" + strconv.Itoa(n), Started: started}, drain,
			func(map[string]int64) ([]collector.Source, error) { return []collector.Source{s}, nil })
	}
}
