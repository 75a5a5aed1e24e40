// Package store keeps the points of trials. A store is chosen by the scheme of
// its URL; each implementation is one file (or a few of one prefix), stands in
// Drivers, and passes the contract suite in storetest.
package store

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/vernier-ml/vernier/collector"
)

// ErrClosed is returned by every method of a store after Close.
var ErrClosed = errors.New("the store is closed")

// Driver opens the stores of one URL scheme.
type Driver struct {
	// Scheme is the part of the URL before the first colon.
	Scheme string
	// Form says how a URL of this scheme is written, for error messages.
	Form string
	// Open opens the store. rest is the URL after the scheme and its colon.
	Open func(ctx context.Context, rest string) (collector.Store, error)
}

// Drivers returns all drivers in order of Scheme.
func Drivers() []Driver {
	return []Driver{
		{Scheme: "memory", Form: "memory:", Open: openMemory},
		{Scheme: "sqlite", Form: "sqlite:PATH", Open: openSQLite},
	}
}

// Open opens the store at url, for instance "sqlite:/var/lib/vernier/points.db".
// An unknown scheme is an error that lists the known ones.
func Open(ctx context.Context, url string) (collector.Store, error) {
	scheme, rest, found := strings.Cut(url, ":")
	var forms []string
	for _, d := range Drivers() {
		if found && d.Scheme == scheme {
			s, err := d.Open(ctx, rest)
			if err != nil {
				return nil, fmt.Errorf("open store %s: %w", url, err)
			}
			return s, nil
		}
		forms = append(forms, d.Form)
	}
	// The URL of a store may hold a password: an unknown one is not repeated.
	return nil, fmt.Errorf("open store: the URL begins with none of the known forms; write one of: %s",
		strings.Join(forms, ", "))
}

// check refuses what no store can keep, before anything is written.
func check(trial collector.TrialID, attempt collector.Attempt, points []collector.Point) error {
	if trial.UID == "" {
		return fmt.Errorf("trial %s/%s has no UID", trial.Namespace, trial.Name)
	}
	if attempt.ID == "" {
		return fmt.Errorf("trial %s: an attempt without ID", trial.UID)
	}
	for i, p := range points {
		if p.Metric == "" || p.Source == "" || p.Seq < 0 || p.Seq == math.MaxInt64 {
			return fmt.Errorf("trial %s: point %d: metric %q, source %q, sequence %d: "+
				"metric and source must not be empty, the sequence must lie in [0, 2^63-2]",
				trial.UID, i, p.Metric, p.Source, p.Seq)
		}
	}
	return nil
}

// Times are kept as nanoseconds in 64 bits. Those outside the years 1678 to 2261
// do not fit and are kept as the zero time.
func storable(t time.Time) (nanos int64, ok bool) {
	if y := t.Year(); y < 1678 || y > 2261 {
		return 0, false
	}
	return t.UnixNano(), true
}

func restored(nanos int64, ok bool) time.Time {
	if !ok {
		return time.Time{}
	}
	return time.Unix(0, nanos).UTC()
}
