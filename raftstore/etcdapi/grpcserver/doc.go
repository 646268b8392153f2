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
//   - Close returns when no call runs any more.
//   - Nobody but the writer's goroutine writes to a connection, and only it may be held up by a client that does not read.
//
// # What is not there
//
// Compression, headers and trailers from handlers, details of a status, statistics, pings from the server (TCP's own
// find dead clients), and all that a peer without certificates would make necessary: who may connect is trusted
// not to overload the server.
//
// Read first: server.go, conn.go, writer.go. The protocol is described in grpc's doc/PROTOCOL-HTTP2.md.
package grpcserver
