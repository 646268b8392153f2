// Package gather makes one write to a connection of what many goroutines write at about the same time.
//
// An HTTP/2 connection carries many answers and watches, and net/http writes what each has to say as soon as it says it:
// when an object changes that a hundred watchers of eight connections follow, that is a hundred TLS records and system
// calls for the server, and as many for the clients to read them. Here a Write only leaves its bytes behind; a goroutine
// that exists while there are some lets those go first who are ready to run, and then writes all there is.
//
//	handler ──┐                    ┌ Gosched: the others get their turn
//	handler ──┼─► Write ─► pending ┴► one write(2)
//	handler ──┘   (returns)
//
// It stands below TLS, around the connections of a net.Listener.
//
// Invariants:
//   - Bytes that a Write has taken go out in the order in which they were written, unless the connection fails; a failure is
//     returned by every later Write. A write deadline says until when Writes are taken, as it does of a socket's own buffer.
//   - No more than pendingBytes (and one Write) wait for a slow peer: then Write waits, as it would without this package.
//   - Close returns at once: what was written before still goes out, for lingerTime at most, or until Listener.Drain
//     gives it up.
//
// Read conn.go, then deadline.go and listener.go.
package gather
