//go:build !linux

package local

import (
	"errors"
	"time"
)

// Diagnose stops before it asks these.
func writable(string) bool             { return false }
func freeBytes(string) (uint64, error) { return 0, errors.ErrUnsupported }
func limitFindings() []Finding         { return nil }
func clockFinding(time.Time) Finding   { return Finding{} }
