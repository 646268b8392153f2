package webhook

import (
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kontiki/apiserver/admission"
)

// callError is a hook that could not be asked, or whose answer makes no sense: the failure policy decides what that means.
type callError struct {
	hook   string
	reason error
}

// Error implements error.
func (e *callError) Error() string {
	return fmt.Sprintf("failed calling webhook %q: %v", e.hook, e.reason)
}

// Unwrap gives errors.Is the reason.
func (e *callError) Unwrap() error { return e.reason }

func failed(hook, format string, args ...any) error {
	return &callError{hook, fmt.Errorf(format, args...)}
}

// isCallError says whether the failure policy has the say.
func isCallError(err error) bool {
	var failure *callError
	return errors.As(err, &failure)
}

// denied is the refusal of a hook, in its own words where it has any.
func denied(hook string, result *metav1.Status) error {
	status := metav1.Status{}
	if result != nil {
		status = *result
	}
	status.Status = metav1.StatusFailure
	if status.Code < http.StatusBadRequest {
		status.Code = http.StatusBadRequest
	}
	by := fmt.Sprintf("admission webhook %q denied the request", hook)
	switch {
	case status.Message != "":
		status.Message = by + ": " + status.Message
	case status.Reason != "":
		status.Message = by + ": " + string(status.Reason)
	default:
		status.Message = by + " without explanation"
	}
	return &apierrors.StatusError{ErrStatus: status}
}

// noDryRun refuses a dry run that would ask a hook with side effects.
func noDryRun(hook string) error {
	return apierrors.NewBadRequest(fmt.Sprintf("admission webhook %q does not support dry run", hook))
}

// notDecided refuses a request because conditions failed.
func notDecided(r *admission.Request, err error) error {
	return apierrors.NewForbidden(r.Resource.GroupResource(), r.Name, err)
}

func internal(err error) error { return apierrors.NewInternalError(err) }

func timedOut() error {
	return apierrors.NewTimeoutError("request did not complete within requested timeout", 0)
}
