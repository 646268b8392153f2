package apiserver

import (
	"net/http"
	"time"
)

// defaultAnswerTime is how long a client may take over reading an answer, as in Kubernetes. Who asks
// and does not read would keep the answer in memory, and a place among the requests in flight, for as
// long as it likes.
const defaultAnswerTime = 60 * time.Second

// answerDeadline returns what to do when the answer begins: bound the time for writing it. When it is over the
// connection is closed, or the HTTP/2 stream reset. Watches and streams to nodes last; they have no such bound.
func (s *Server) answerDeadline(w http.ResponseWriter, r *http.Request, facts *requestFacts) func() {
	conn := http.NewResponseController(w)
	if r.ProtoMajor == 1 {
		_ = conn.SetWriteDeadline(time.Time{}) // that of the connection's last answer
	}
	return func() {
		if !facts.longRunning {
			// Where there is no deadline to set there is no connection either (tests).
			_ = conn.SetWriteDeadline(time.Now().Add(s.config.AnswerTime))
		}
	}
}
