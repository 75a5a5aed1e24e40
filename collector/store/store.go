// Package store keeps the points of trials. A store is chosen by the scheme of
// its URL; each implementation is one file (or a few of one prefix), stands in
// Drivers, and passes the contract suite, contract_test.go.
package store

import (
	"context"
	"errors"
	"fmt"
	"math"
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
		{Scheme: "mysql", Form: "mysql://USER:PASSWORD@HOST:PORT/DATABASE", Open: openMySQL},
		{Scheme: "postgres", Form: "postgres://USER:PASSWORD@HOST:PORT/DATABASE", Open: openPostgres},
		{Scheme: "sqlite", Form: "sqlite:PATH", Open: openSQLite},
	}
}

// Limits of what a store keeps, in bytes. They are those of the engine that keeps
// least.
const (
	maxID   = 512 // UID, namespace, name and experiment of a trial, ID of an attempt
	maxName = 2048
	maxText = 16384 // of a point, or a note
)

// check refuses what no store can keep, before anything is written.
func check(trial collector.TrialID, attempt collector.Attempt, points []collector.Point) error {
	if trial.UID == "" {
		return fmt.Errorf("trial %s/%s has no UID", trial.Namespace, trial.Name)
	}
	if max(len(trial.UID), len(trial.Namespace), len(trial.Name), len(trial.Experiment), len(attempt.ID)) > maxID {
		return fmt.Errorf("trial %.100s: the UID, a name or the attempt's ID has more than %d bytes", trial.UID, maxID)
	}
	if attempt.ID == "" {
		return fmt.Errorf("trial %s: an attempt without ID", trial.UID)
	}
	for i := range points {
		p := &points[i]
		if p.Metric == "" || p.Source == "" || p.Seq < 0 || p.Seq == math.MaxInt64 {
			return fmt.Errorf("trial %s: point %d: metric %.100q, source %.100q, sequence %d: "+
				"metric and source must not be empty, the sequence must lie in [0, 2^63-2]",
				trial.UID, i, p.Metric, p.Source, p.Seq)
		}
		if len(p.Metric) > maxName || len(p.Source) > maxName || len(p.Text) > maxText {
			return fmt.Errorf("trial %s: point %d of metric %.100q: the metric has %d bytes, the source %d, the text %d: "+
				"at most %d, %d and %d are kept", trial.UID, i, p.Metric, len(p.Metric), len(p.Source), len(p.Text), maxName, maxName, maxText)
		}
	}
	return nil
}

func checkNote(note string) error {
	if len(note) > maxText {
		return fmt.Errorf("the note has %d bytes: at most %d are kept", len(note), maxText)
	}
	return nil
}

// restored is the time of a column; those that do not fit are kept as the zero time.
func restored(nanos int64, ok bool) time.Time {
	if !ok {
		return time.Time{}
	}
	return time.Unix(0, nanos).UTC()
}
