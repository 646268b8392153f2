// Package lingering closes the connections of a server so that the peer gets all that was written to them.
//
// When a socket is closed that holds bytes which nobody has read, or gets some later, the kernel answers with a reset and
// throws away what it has not sent yet (RFC 1122, 4.2.2.13); what the peer has received and not read may go with it.
// A server that is done before its client is does just that: it refuses a body that is too large, or the command ends that
// kubectl exec sends its input to, and the last words, the refusal or the exit code, are lost. So Close sends only
// the end (FIN), and a goroutine reads and drops what comes until the peer has ended as well, for a few seconds at most, and
// closes then. Nginx calls it lingering_close.
//
// Invariants:
//   - After Close, reads and writes fail at once as on any closed connection.
//   - A connection whose peer has ended first is closed without lingering.
//   - No goroutine outlives Listener.Drain, which a server calls when it has stopped.
//
// Read conn.go, then leaving.go.
package lingering
