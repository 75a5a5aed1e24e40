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
	exitTimeout          = 124
	exitInterrupted      = 130
	exitTerminated       = 143
)

// exitError is an error with an exit code of its own.
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

// exitCode is the code that a command leaves with for err.
func exitCode(err error) int {
	var coded *exitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &coded):
		return coded.code
	case isUnreachable(err):
		return exitUnreachable
	case isUsage(err):
		return exitUsage
	}
	return exitFailure
}

// isUsage recognizes the errors that cobra makes of a wrong command line; it has
// no type for them.
func isUsage(err error) bool {
	for _, start := range []string{"unknown command", "unknown flag", "unknown shorthand", "flag needed", "flag needs", "required flag", "invalid argument", "accepts ", "requires at least"} {
		if strings.HasPrefix(err.Error(), start) {
			return true
		}
	}
	return false
}

// apiError gives an error of the API its exit code.
func apiError(err error) error {
	var coded *exitError
	code := 0
	switch {
	case err == nil, errors.As(err, &coded):
		return err
	case apierrors.IsNotFound(err):
		code = exitNotFound
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), isAdmissionDenial(err):
		code = exitInvalid
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		code = exitNotAllowed
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		code = exitConflict
	case isUnreachable(err):
		code = exitUnreachable
	default:
		return err
	}
	return &exitError{code: code, err: err}
}

// isAdmissionDenial says whether a webhook or a policy refused the object: that
// is an invalid object, not a lack of rights.
func isAdmissionDenial(err error) bool {
	return err != nil && strings.Contains(err.Error(), "admission webhook") && strings.Contains(err.Error(), "denied the request")
}
