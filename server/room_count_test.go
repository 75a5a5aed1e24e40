package server_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/server"
)

func isFull(err error) bool {
	return err != nil && strings.Contains(err.Error(), "no more is stored of this trial")
}

// What is sent again makes no trial full.
func TestATrialIsRefusedByItsCountAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsked(t)
		s := server.LimitStore(a, 1600)
		send := func(from, n int64) error { return s.Append(t.Context(), trial, podAttempt, lines(from, n)) }
		if err := errors.Join(send(0, 1450), send(0, 99), send(0, 99)); err != nil {
			t.Fatal(err)
		}
		for range 50 {
			if err := send(0, 99); err == nil || isFull(err) || !strings.Contains(err.Error(), "send these again") {
				t.Fatalf("before it is counted again: %v", err)
			}
		}
		if a.questions["count"] != 1 {
			t.Errorf("counted %d times within a minute", a.questions["count"])
		}
		<-time.After(time.Minute)
		if err := send(1450, 99); err != nil {
			t.Errorf("a minute later: %v", err)
		}
		<-time.After(time.Minute)
		if err := send(1549, 51); err != nil {
			t.Errorf("the last ones: %v", err)
		}
		<-time.After(time.Minute)
		if err := send(1600, 1); !isFull(err) || !strings.Contains(err.Error(), "has 1600 points, and at most 1600 are kept") {
			t.Errorf("one more: %v", err)
		}
	})
}

func TestAStoreThatCannotCountIsNotAskedAllTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gates{Store: newAsked(t).Store, slow: make(chan error), counting: make(chan error)}
		s := server.LimitStore(g, 100)
		send := func(from, n int64) error { return s.Append(t.Context(), trial, podAttempt, lines(from, n)) }
		if err := send(0, 100); err != nil {
			t.Fatal(err)
		}
		go func() { g.counting <- errors.New("down") }()
		for range 20 { // another count would wait for ever
			if err := send(0, 1); err == nil || isFull(err) {
				t.Fatalf("error %v", err)
			}
		}
		<-time.After(time.Minute)
		go func() { g.counting <- nil }()
		if err := send(100, 1); !isFull(err) {
			t.Errorf("once it can: %v", err)
		}
	})
}

// gates holds up counts, and reports of 50 points, until the test says how they end.
type gates struct {
	collector.Store
	slow, counting chan error
}

func (g *gates) Append(ctx context.Context, trial collector.TrialID, attempt collector.Attempt, points []collector.Point) error {
	if len(points) == 50 {
		if err := <-g.slow; err != nil {
			return err
		}
	}
	return g.Store.Append(ctx, trial, attempt, points)
}

func (g *gates) Count(ctx context.Context, uid string) (int64, error) {
	n, err := g.Store.Count(ctx, uid)
	return n, errors.Join(err, <-g.counting)
}

// A trial has 850 points and looks as if it had 950 when 50 are on their way and
// it is counted.
func TestACountDoesNotForgetWhatIsOnItsWay(t *testing.T) {
	down := errors.New("down")
	tests := map[string]struct {
		end    error // of those on their way
		during bool  // they arrive while it is counted
		room   int64 // for so many more
	}{
		"stored after the count":  {room: 99},
		"stored during the count": {during: true, room: 99},
		"failed after the count":  {end: down, room: 149},
		"failed during the count": {end: down, during: true, room: 149},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := &gates{Store: newAsked(t).Store, slow: make(chan error), counting: make(chan error)}
				s := server.LimitStore(g, 1000)
				send := func(from, n int64) error { return s.Append(t.Context(), trial, podAttempt, lines(from, n)) }
				if err := errors.Join(send(0, 850), send(0, 100)); err != nil {
					t.Fatal(err)
				}
				first, second := make(chan error), make(chan error)
				go func() { first <- send(850, 50) }()
				synctest.Wait()
				go func() { second <- send(0, 1) }()
				synctest.Wait()
				arrive := func() {
					g.slow <- tc.end
					if err := <-first; !errors.Is(err, tc.end) {
						t.Errorf("those on their way: %v", err)
					}
				}
				count := func() {
					g.counting <- nil
					if err := <-second; err != nil {
						t.Errorf("one that is sent again: %v", err)
					}
				}
				if tc.during {
					arrive()
					count()
				} else {
					count()
					arrive()
				}
				if err := send(900, tc.room+1); err == nil || isFull(err) {
					t.Errorf("one too many: %v", err)
				}
				if err := send(900, tc.room); err != nil {
					t.Errorf("as many as fit: %v", err)
				}
			})
		})
	}
}
