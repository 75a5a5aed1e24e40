package study

import (
	"context"
	"testing"
	"time"
)

// learner stands for what an algorithm learns: it tells when it begins and how
// it ended, and ends when it is told to.
type learner struct {
	began chan context.Context
	end   chan struct{}
	woken chan struct{}
}

func newLearner() *learner {
	return &learner{began: make(chan context.Context, 10), end: make(chan struct{}), woken: make(chan struct{}, 10)}
}

func (l *learner) learn(ctx context.Context) {
	l.began <- ctx
	select {
	case <-l.end:
	case <-ctx.Done():
	}
}

func (l *learner) wake(context.Context) { l.woken <- struct{}{} }

func TestQuickLearningDelaysNothing(t *testing.T) {
	l, p := newLearner(), learning{}
	close(l.end)
	// The first may take its time on a busy machine; then the wake comes.
	for !p.ready(t.Context(), noon, knowledge{trials: 3, ended: 2}, l.learn, l.wake) {
		<-l.woken
	}
	if len(l.began) != 1 || p.cancel != nil || !p.since.IsZero() {
		t.Errorf("it began %d times; afterwards: %+v", len(l.began), p)
	}
}

func TestSlowLearningHoldsNewTrialsBackAndWakes(t *testing.T) {
	l, p := newLearner(), learning{}
	known := knowledge{trials: 3, ended: 2}
	for range 3 {
		if p.ready(t.Context(), noon, known, l.learn, l.wake) {
			t.Fatal("it is ready before it has learned")
		}
	}
	if len(l.woken) > 0 {
		t.Fatal("it wakes before it has learned")
	}
	close(l.end)
	<-l.woken
	if !p.ready(t.Context(), noon, known, l.learn, l.wake) || len(l.began) != 1 || len(l.woken) != 0 {
		t.Errorf("it began %d times, and woke again %d times", len(l.began), len(l.woken))
	}
}

// A reconcile that comes to its look late, as on a busy machine, finds both the
// learning and its patience at their end. To wait again would be for ever.
func TestWhoIsLateSeesThatLearningHasEnded(t *testing.T) {
	for range 100 {
		l, p := newLearner(), learning{inline: time.Nanosecond}
		if p.ready(t.Context(), noon, knowledge{trials: 1}, l.learn, l.wake) {
			t.Fatal("it is ready before it has learned")
		}
		close(l.end)
		<-l.woken
		if !p.ready(t.Context(), noon, knowledge{trials: 1}, l.learn, l.wake) {
			t.Fatal("it has learned, and waits to be woken again")
		}
	}
}

func TestNewResultsEndLearningThatIsOutOfDate(t *testing.T) {
	l, p := newLearner(), learning{}
	p.ready(t.Context(), noon, knowledge{trials: 3, ended: 2}, l.learn, l.wake)
	old := <-l.began
	if p.ready(t.Context(), noon, knowledge{trials: 3, ended: 3}, l.learn, l.wake) {
		t.Fatal("it is ready before it has learned")
	}
	<-old.Done()
	if now := <-l.began; now.Err() != nil {
		t.Errorf("the new one: %v", now.Err())
	}
	close(l.end)
}

func TestNewTrialsWaitABoundedTime(t *testing.T) {
	const most = 5 * time.Hour // what is left is real time, and must not pass on a busy machine
	l, p := newLearner(), learning{most: most}
	for i := range 5 { // new results all the time
		if p.ready(t.Context(), noon.Add(time.Duration(i)*time.Hour), knowledge{trials: 9, ended: i}, l.learn, l.wake) {
			t.Fatalf("it is ready after %d hours", i)
		}
	}
	if !p.ready(t.Context(), noon.Add(most), knowledge{trials: 9, ended: 8}, l.learn, l.wake) {
		t.Fatal("new trials wait for longer than they may")
	}
	for range 5 {
		<-(<-l.began).Done() // none goes on
	}
	if p.ready(t.Context(), noon.Add(most), knowledge{trials: 9, ended: 9}, l.learn, l.wake) {
		t.Error("the next question does not wait")
	}
	if deadline, ok := (<-l.began).Deadline(); !ok || time.Until(deadline) > most {
		t.Errorf("deadline %v", deadline)
	}
	close(l.end)
}

func TestLearningThatPanicsHarmsNoOtherStudy(t *testing.T) {
	p, woken := learning{}, make(chan struct{}, 1)
	for !p.ready(t.Context(), noon, knowledge{}, func(context.Context) { panic("out of range") }, func(context.Context) { woken <- struct{}{} }) {
		<-woken
	}
}
