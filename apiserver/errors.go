package apiserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"kontiki/apiserver/flowcontrol"
	"kontiki/apiserver/storage"
	"kontiki/raftstore"
	"kontiki/watch"
)

// ErrNoCertificate is returned by New when Config.TLS cannot serve.
var ErrNoCertificate = errors.New("apiserver: Config.TLS has no server certificate")

// errPanic stands for a panic whose details are in the log.
var errPanic = errors.New("panic in a handler")

// optimisticLockMessage is what client-go's users know a lost race by.
const optimisticLockMessage = "the object has been modified; please apply your changes to the latest version and try again"

func badRequest(format string, args ...any) error {
	return apierrors.NewBadRequest(fmt.Sprintf(format, args...))
}

// invalidOptions refuses query parameters the way Kubernetes does: as if they were an object.
func invalidOptions(kind string, faults field.ErrorList) error {
	if len(faults) == 0 {
		return nil
	}
	return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: kind}, "", faults)
}

// statusError makes errors that apimachinery has no constructor for.
func statusError(code int32, reason metav1.StatusReason, message string) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		TypeMeta: statusTypeMeta,
		Status:   metav1.StatusFailure,
		Code:     code,
		Reason:   reason,
		Message:  message,
	}}
}

var statusTypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}

// errNotFoundPath is the answer to a URL that names nothing the server has.
func errNotFoundPath() error {
	err := statusError(http.StatusNotFound, metav1.StatusReasonNotFound, "the server could not find the requested resource")
	err.ErrStatus.Details = &metav1.StatusDetails{}
	return err
}

func errMethodNotAllowed() error {
	err := statusError(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed,
		"the server does not allow this method on the requested resource")
	err.ErrStatus.Details = &metav1.StatusDetails{}
	return err
}

// errNotAcceptable is the answer to a client that takes no media type which the server has.
func errNotAcceptable(supported []string) error {
	err := statusError(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable,
		fmt.Sprintf("406: Not Acceptable\n\nAvailable representations: %s", strings.Join(supported, ", ")))
	err.ErrStatus.Details = &metav1.StatusDetails{}
	return err
}

// errNoSuchForm is the answer to a client that takes one of the server's media types, but not as what it wants to see in it.
func errNoSuchForm(supported []string) error {
	return statusError(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable,
		"only the following media types are accepted: "+strings.Join(supported, ", "))
}

// errWrongShape is the answer to a client that wants to see a list as one object's metadata, or one object as a list's.
func errWrongShape(as shape) error {
	is := "a list"
	if as == asPartialList {
		is = "not a list"
	}
	return statusError(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable,
		fmt.Sprintf("you requested %s, but the requested object is %s", as, is))
}

// errCannotApply is the answer to a patch that is well formed and does not fit the object.
func errCannotApply(reason string) error {
	err := statusError(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "the server rejected our request due to an error in our request: "+reason)
	err.ErrStatus.Details = &metav1.StatusDetails{}
	return err
}

// errUnsupportedPatch is the answer to a patch of a type that is none.
func errUnsupportedPatch() error {
	err := statusError(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType, "415: Unsupported Media Type")
	err.ErrStatus.Details = &metav1.StatusDetails{}
	return err
}

// errInvalidJSONPatch is the answer to a patch that is not JSON.
func errInvalidJSONPatch() error { return badRequest("invalid JSON patch") }

func errUnsupportedMediaType(supported []string) error {
	return statusError(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType,
		fmt.Sprintf("the body of the request was in an unknown format - accepted media types include: %s", strings.Join(supported, ", ")))
}

// statusOf turns any error into the Status that the client gets. Errors that are Status already pass
// as they are; those of the layers below are translated; what is left is a 500 that says what failed.
func statusOf(err error) *metav1.Status {
	var api apierrors.APIStatus
	if errors.As(err, &api) {
		status := api.Status()
		return completed(&status)
	}
	if translated := translate(err); translated != nil {
		return completed(&translated.ErrStatus)
	}
	return completed(&apierrors.NewInternalError(err).ErrStatus)
}

// completed fills in what some errors leave out and every client relies on.
func completed(status *metav1.Status) *metav1.Status {
	status.TypeMeta = statusTypeMeta
	if status.Status == "" {
		status.Status = metav1.StatusFailure
	}
	if status.Code == 0 {
		status.Code = http.StatusInternalServerError
	}
	return status
}

// storeError gives an error of the storage the words for the target; other errors pass, to be
// translated by statusOf. name is the object's, or empty for collections.
func (t *target) storeError(err error, name string) error {
	var precondition *storage.PreconditionError
	var claim *storage.ClaimError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, storage.ErrNotFound):
		return apierrors.NewNotFound(t.groupResource(), name)
	case errors.Is(err, storage.ErrExists):
		return apierrors.NewAlreadyExists(t.groupResource(), name)
	case errors.As(err, &precondition):
		return apierrors.NewConflict(t.groupResource(), name, precondition)
	case errors.As(err, &claim):
		return apierrors.NewInvalid(t.resource.GroupVersionKind().GroupKind(), name, field.ErrorList{
			field.Invalid(field.NewPath("spec"), claim.Claim, "provided value is already allocated"),
		})
	}
	return err
}

// translate gives errors that do not concern one resource their Status; nil if it knows none.
func translate(err error) *apierrors.StatusError {
	var expired *watch.ExpiredError
	var expiredList *storage.ExpiredListError
	var future *storage.FutureRevisionError
	var option *storage.OptionError
	var fieldError *storage.FieldError
	var noSeat *flowcontrol.RejectedError
	switch {
	case errors.As(err, &noSeat):
		return rejected(noSeat)
	case errors.Is(err, raftstore.ErrNoSpace):
		return noSpace(err)
	case errors.As(err, &expiredList):
		out := goneRevision(expiredList.Error(), &expiredList.ExpiredError)
		out.ErrStatus.Continue = expiredList.Continue
		return out
	case errors.As(err, &expired):
		return goneRevision(expired.Error(), expired)
	case errors.As(err, &future):
		return tooLargeRevision(future)
	case errors.As(err, &option), errors.As(err, &fieldError), errors.Is(err, storage.ErrContinueToken), errors.Is(err, storage.ErrInvalidName):
		return apierrors.NewBadRequest(err.Error())
	case errors.Is(err, raftstore.ErrUnknownOutcome):
		return apierrors.NewTimeoutError("the store did not confirm the write in time; it may or may not have happened: "+err.Error(), 1)
	case errors.Is(err, raftstore.ErrNoLeader), errors.Is(err, raftstore.ErrNotLeader):
		return apierrors.NewServiceUnavailable("the store has no leader: " + err.Error())
	case errors.Is(err, context.DeadlineExceeded):
		return apierrors.NewTimeoutError("request did not complete within the allotted timeout", 0)
	case errors.Is(err, context.Canceled):
		return apierrors.NewTimeoutError("the request was cancelled", 0)
	}
	return nil
}

// goneRevision is a 410 whose causes say, for programs, which revisions there are and why there are no others.
func goneRevision(message string, err *watch.ExpiredError) *apierrors.StatusError {
	out := apierrors.NewResourceExpired(message)
	causes := []metav1.StatusCause{{Type: "RequestedRevision", Message: revisionString(err.Requested)}}
	if err.Compacted > 0 {
		causes = append(causes, metav1.StatusCause{Type: "CompactedRevision", Message: revisionString(err.Compacted)})
	}
	out.ErrStatus.Details = &metav1.StatusDetails{Causes: append(causes,
		metav1.StatusCause{Type: "CurrentRevision", Message: revisionString(err.Current)},
		metav1.StatusCause{Type: "HistoryRetention", Message: err.Retention})}
	return out
}

// noSpace tells whoever looks after the cluster the way out.
func noSpace(err error) *apierrors.StatusError {
	return statusError(http.StatusInsufficientStorage, metav1.StatusReasonInternalError, err.Error()+
		"; objects can be read and deleted: make room (kontiki store compact, kontiki store defrag, or a larger disk or quota), then kontiki store alarms clear NOSPACE MEMBER (kontiki store alarms names the member)")
}

// tooLargeRevision tells a client that it is ahead of this server, and when to ask again.
func tooLargeRevision(err *storage.FutureRevisionError) *apierrors.StatusError {
	out := apierrors.NewTimeoutError(err.Error(), 1)
	out.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"}}
	return out
}
