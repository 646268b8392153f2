package aggregation

import (
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ErrUnavailable is what errors of a Proxy match when a backend cannot answer. They are API status errors with code 503.
var ErrUnavailable = errors.New("service unavailable")

// unavailable is the 503 that a client gets. It begins with what kube-apiserver says, and goes on with why.
func unavailable(name, why string) error {
	status := apierrors.NewServiceUnavailable(fmt.Sprintf("%v: APIService %s: %s", ErrUnavailable, name, why))
	return errors.Join(status, ErrUnavailable)
}

// errRedirect is the answer to a client whose backend would send it somewhere else, maybe to a server that knows the front proxy.
func errRedirect() error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusBadGateway, Reason: metav1.StatusReasonInternalError,
		Message: "the backend attempted to redirect this request, which is not permitted",
	}}
}
