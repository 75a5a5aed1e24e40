package api

import (
	"context"
	"errors"
	"fmt"

	"connectrpc.com/connect"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	vernierv1 "github.com/vernier-ml/vernier/api/proto/vernier/v1"
	"github.com/vernier-ml/vernier/controllers/experiment"
	"github.com/vernier-ml/vernier/server"
)

// Reasons of errors, for programs.
const (
	ReasonUnauthenticated  = "UNAUTHENTICATED"
	ReasonForbidden        = "FORBIDDEN"
	ReasonInvalid          = "INVALID"
	ReasonNotFound         = "NOT_FOUND"
	ReasonAlreadyExists    = "ALREADY_EXISTS"
	ReasonHasTemplate      = "HAS_TEMPLATE"
	ReasonCannotStart      = "CANNOT_START"
	ReasonStaleAttempt     = "STALE_ATTEMPT"
	ReasonAlreadyCompleted = "ALREADY_COMPLETED"
	ReasonNotMeasured      = "NOT_MEASURED"
	ReasonQuota            = "QUOTA"
	ReasonConflict         = "CONFLICT"
	ReasonUnavailable      = "UNAVAILABLE"
	// ReasonTooFew says that there are not enough results yet.
	ReasonTooFew = "TOO_FEW_RESULTS"
)

// fault is an error of the API: what is wrong, in words that end without a stop, a
// reason for programs, and what to do.
func fault(code connect.Code, reason, remedy, format string, args ...any) error {
	e := connect.NewError(code, fmt.Errorf("%w: %s", fmt.Errorf(format, args...), remedy))
	// An ErrorInfo can always be encoded.
	if detail, err := connect.NewErrorDetail(&vernierv1.ErrorInfo{Reason: reason, Remedy: remedy}); err == nil {
		e.AddDetail(detail)
	}
	return e
}

func invalid(remedy, format string, args ...any) error {
	return fault(connect.CodeInvalidArgument, ReasonInvalid, remedy, format, args...)
}

// explain makes a fault of an error that came from elsewhere.
func explain(ctx context.Context, err error) error {
	var known *connect.Error
	switch {
	case err == nil || errors.As(err, &known):
		return err
	case ctx.Err() != nil:
		return connect.NewError(connect.CodeCanceled, err)
	case errors.Is(err, experiment.ErrHasTemplate):
		return fault(connect.CodeFailedPrecondition, ReasonHasTemplate, "create one without trialTemplate to run the trials yourself", "%w", err)
	case experiment.IsFatal(err):
		return fault(connect.CodeFailedPrecondition, ReasonCannotStart, "correct what is named: the same request is refused again", "%w", err)
	case errors.Is(err, server.ErrQuota):
		return fault(connect.CodeResourceExhausted, ReasonQuota, "report less often, or have the operator raise the limit", "%w", err)
	case apierrors.IsNotFound(err):
		return fault(connect.CodeNotFound, ReasonNotFound, "correct the name, or create it", "%w", err)
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return invalid("correct what is named", "%w", err)
	case apierrors.IsForbidden(err):
		return fault(connect.CodePermissionDenied, ReasonForbidden, "what admission or a quota of the namespace refuses cannot be created", "%w", err)
	}
	return fault(connect.CodeUnavailable, ReasonUnavailable, "send the request again", "%w", err)
}

func tooFew(err error) error {
	return fault(connect.CodeFailedPrecondition, ReasonTooFew, "wait for more trials to succeed", "%w", err)
}
