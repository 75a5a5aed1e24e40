package study

import (
	"cmp"
	"context"
	"time"

	"github.com/vernier-ml/vernier/suggest"
)

const (
	// learnInline is how long a reconcile waits for an algorithm to learn from new
	// results. Most take less; a Gaussian process takes up to a second, and the
	// reconcile then goes on without new trials until it is ready.
	learnInline = 10 * time.Millisecond
	// learnMost bounds how long new trials wait in all, however often new results
	// make the algorithm begin again. After that it learns within the question.
	learnMost = 5 * time.Second
)

// learning is what an algorithm does between two questions. Losing it costs time
// only.
type learning struct {
	inline, most time.Duration // 0: learnInline and learnMost

	from   knowledge
	cancel context.CancelFunc // nil: nothing was begun
	done   chan struct{}
	waking bool      // wake will be called after done
	since  time.Time // of the first one since the last question
}

// knowledge tells what there is to learn from. Trials never lose a result, so
// counting them is enough.
type knowledge struct{ trials, ended int }

// Ready says whether the next question may be asked. An algorithm that learns from
// results does so in the background; when that does not end soon, the answer is no,
// and wake is called once it has.
func (s *Study) Ready(ctx context.Context, now time.Time, wake func(context.Context)) bool {
	p, ok := s.algorithm.(suggest.Preparer)
	if !ok {
		return true
	}
	k := knowledge{trials: len(s.trials.current)}
	for _, t := range s.trials.current {
		if t.State.Finished() {
			k.ended++
		}
	}
	return s.learning.ready(ctx, now, k, func(ctx context.Context) { p.Prepare(ctx, s.question()) }, wake)
}

// Learning says whether the algorithm learns in the background.
func (s *Study) Learning() bool { return s.learning.cancel != nil }

// ready is Ready. When there is something new, learn is called in the background,
// and cancelled by what is newer.
func (l *learning) ready(ctx context.Context, now time.Time, k knowledge, learn func(context.Context), wake func(context.Context)) bool {
	if l.cancel != nil && l.from != k {
		l.cancel()
		l.cancel = nil
	}
	if l.since.IsZero() {
		l.since = now
	}
	left := cmp.Or(l.most, learnMost) - now.Sub(l.since)
	if left <= 0 {
		l.end()
		return true
	}
	if l.cancel == nil {
		l.begin(ctx, left, k, learn)
	}
	timer := time.NewTimer(cmp.Or(l.inline, learnInline))
	defer timer.Stop()
	select {
	case <-l.done:
	case <-timer.C:
	}
	select { // a late look finds both, and would not be woken again
	case <-l.done:
		l.end()
		return true
	default:
	}
	if !l.waking {
		l.waking = true
		go func(done <-chan struct{}) {
			<-done
			wake(ctx)
		}(l.done)
	}
	return false
}

func (l *learning) begin(ctx context.Context, most time.Duration, k knowledge, learn func(context.Context)) {
	ctx, cancel := context.WithTimeout(ctx, most)
	done := make(chan struct{})
	l.from, l.cancel, l.done, l.waking = k, cancel, done, false
	go func() {
		defer close(done)
		defer cancel()
		defer func() { _ = recover() }() // what panics here panics again in the question, which reports it
		learn(ctx)
	}()
}

func (l *learning) end() {
	if l.cancel != nil {
		l.cancel()
	}
	*l = learning{inline: l.inline, most: l.most}
}
