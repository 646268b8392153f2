package apiserver

import (
	"context"
	"fmt"
	"net/http"
	"runtime/debug"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// withRecovery makes a panic in a handler a 500 for that request alone. http.ErrAbortHandler is the
// way to cut a stream short and passes.
func (s *Server) withRecovery(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			cause := recover()
			if cause == nil {
				return
			}
			if cause == http.ErrAbortHandler {
				panic(cause)
			}
			s.log.ErrorContext(r.Context(), "request panicked", "method", r.Method, "path", r.URL.Path, "panic", cause, "stack", string(debug.Stack()))
			if started(w) {
				panic(http.ErrAbortHandler) // headers are out: only a cut connection tells the client
			}
			writeError(w, r, apierrors.NewInternalError(fmt.Errorf("panic in the handler of %s", r.URL.Path)))
		}()
		next.ServeHTTP(w, r)
	})
}

// recoverInto makes a panic in a goroutine of a handler's own an error of that handler: withRecovery
// sees the request's goroutine alone.
func (s *Server) recoverInto(ctx context.Context, err *error) {
	if cause := recover(); cause != nil {
		s.log.ErrorContext(ctx, "request panicked", "panic", cause, "stack", string(debug.Stack()))
		*err = errPanic
	}
}
