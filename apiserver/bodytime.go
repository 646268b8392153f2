package apiserver

import (
	"net/http"
	"time"
)

// boundBody lets a body that dribbles in end with the request's time. What has no body has no such time: on HTTP/1 net/http
// reads ahead for the next request while the handler runs, and takes it for a client that is gone when that fails, by a
// deadline as well. It would cancel this request and all later ones on the connection. Where there is a body it
// takes the deadline back when it begins to read ahead.
func boundBody(w http.ResponseWriter, r *http.Request, timeout time.Duration) {
	if r.Body != nil && r.Body != http.NoBody {
		// Where there is no deadline to set there is no connection either (tests).
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(timeout))
	}
}
