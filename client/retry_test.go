package client

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"
)

// A program whose training took hours must not lose its result to a manager that is
// replaced; one whose service was never there must not wait for minutes.
func TestAServiceThatHasAnsweredIsWaitedFor(t *testing.T) {
	tests := map[string]struct {
		answered bool
		away     time.Duration
		want     bool
		within   time.Duration
	}{
		"it was never there":     {away: time.Hour, within: 10 * time.Second},
		"it comes up":            {away: 3 * time.Second, want: true, within: 10 * time.Second},
		"it is replaced":         {answered: true, away: 90 * time.Second, want: true, within: 100 * time.Second},
		"it does not come again": {answered: true, away: time.Hour, within: 130 * time.Second},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, began := &Client{}, time.Now()
				c.answered.Store(tc.answered)
				_, err := retry(t.Context(), c, func(context.Context, *int) (*int, error) {
					if time.Since(began) < tc.away {
						return nil, connect.NewError(connect.CodeUnavailable, nil)
					}
					return new(int), nil
				}, new(int))
				if took := time.Since(began); (err == nil) != tc.want || took > tc.within {
					t.Errorf("after %s: %v", took, err)
				}
			})
		})
	}
}
