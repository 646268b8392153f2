package apiserver

import (
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// connect opens a stream to the node that runs the target's object.
//
// Not yet: any stream (apiserver/nodeproxy).
func (s *Server) connect(http.ResponseWriter, *http.Request, *target) error {
	return statusError(http.StatusNotImplemented, metav1.StatusReasonMethodNotAllowed, "streams to nodes are not served yet")
}
