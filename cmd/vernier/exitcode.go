package main

import (
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// The exit codes of every command.
const (
	exitFailure          = 1
	exitUsage            = 2
	exitInvalid          = 3
	exitNotFound         = 4
	exitNotAllowed       = 5
	exitConflict         = 6
	exitUnreachable      = 7
	exitExperimentFailed = 8
	exitGoalNotReached   = 9
	exitDiffers          = 10
	exitTimeout          = 124
	exitInterrupted      = 130
	exitTerminated       = 143
)

type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

func usageErrorf(format string, args ...any) error {
	return &exitError{code: exitUsage, err: fmt.Errorf(format, args...)}
}

func invalidErrorf(format string, args ...any) error {
	return &exitError{code: exitInvalid, err: fmt.Errorf(format, args...)}
}

func notFoundErrorf(format string, args ...any) error {
	return &exitError{code: exitNotFound, err: fmt.Errorf(format, args...)}
}

// exitCode is the code that a command leaves with for err: the error's own, that
// of the API's answer, or 1.
func exitCode(err error) int {
	var coded *exitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &coded):
		return coded.code
	case apierrors.IsNotFound(err):
		return exitNotFound
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), isAdmissionDenial(err):
		return exitInvalid
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return exitNotAllowed
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		return exitConflict
	case isUnreachable(err):
		return exitUnreachable
	case isUsage(err):
		return exitUsage
	}
	return exitFailure
}

// isUsage recognizes cobra's errors about a wrong command line, which have no
// type of their own.
func isUsage(err error) bool {
	for _, start := range []string{"unknown command", "unknown flag", "unknown shorthand", "flag needed", "flag needs", "required flag", "invalid argument", "accepts ", "requires at least"} {
		if strings.HasPrefix(err.Error(), start) {
			return true
		}
	}
	return false
}

// isAdmissionDenial reports whether a webhook or a policy refused the object,
// which makes the object invalid although the API server answers Forbidden.
func isAdmissionDenial(err error) bool {
	return strings.Contains(err.Error(), "admission webhook") && strings.Contains(err.Error(), "denied the request")
}
