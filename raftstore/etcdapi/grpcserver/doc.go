// Package grpcserver is a small gRPC server: HTTP/2 streams in, calls of protoc's service descriptions out.
// It takes the place of grpc.Server because most of what a small read costs is the server below it
// (docs/benchmarks.md has the figures).
//
// # How a call goes
//
// A connection has two goroutines. One reads frames and puts messages together (conn.go); the other writes
// (writer.go). A unary call runs in one of a few workers once its message is complete, a stream in a
// goroutine of its own (stream.go). What calls have to say waits in the connection until the writer comes by, which
// takes along all there is in one write: under load many answers, and many events, share a system call.
//
//	client ──► reader ──► call ──► conn.ready ──► writer ──► client
//	             │                                  ▲
//	             └── window updates, pings ─────────┘
//
// A client sends nearly the same headers with every call, and HPACK (RFC 7541) then sends indexes into a table alone.
// Such a block of headers is decoded once (head.go).
//
// # Invariants
//
//   - Everything sent respects the windows of the client (RFC 9113, 5.2): who has more to send waits.
//   - A call's context ends with the call, with its deadline, when the client resets the stream, and with the connection.
//   - Close ends connections and calls, whatever they do, and returns when no call runs any more. Clients see
//     UNAVAILABLE, and turn to another server.
//   - Nobody but the writer's goroutine writes to a connection. A client that does not read holds up that goroutine and
//     its own streams, nobody else.
//
// # Limits
//
// They keep the mistakes of one client from others; docs/limits.md has them in a table. Who may connect is trusted not to
// overload the server on purpose: nothing limits connections and the calls of one, as in etcd, nor pings.
//
//   - A message has at most Config.MaxMessageBytes; the call with a larger one ends with RESOURCE_EXHAUSTED.
//   - A stream has a window of one such message: what has come and was not taken. A client that sends more has the stream
//     reset (FLOW_CONTROL_ERROR). The connection's window is always opened again, so that no call stops another.
//   - Of what a client does not read, a stream keeps 64 KiB and one message, then SendMsg waits; a unary call keeps its
//     answer. 1 MiB of answers to pings and settings end the connection (ENHANCE_YOUR_CALM).
//   - A call's headers have at most 64 KiB, decoded; more end the connection, for HPACK's table is unknown from then on.
//   - TLS and the first bytes of HTTP/2 have to come within 20 seconds. After that a connection may stay idle.
//   - A frame that breaks the protocol ends its stream or its connection, with the code of RFC 9113.
//
// # What is not there
//
// Compression, headers and trailers from handlers, details of a status, statistics, and pings from the server: TCP's own
// find dead clients.
//
// Read first: server.go, conn.go, writer.go. The protocol is described in grpc's doc/PROTOCOL-HTTP2.md.
package grpcserver
