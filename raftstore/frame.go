package raftstore

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"kontiki/mvcc"
)

// Members forward requests to the leader, and a leader asks members, over one connection each way. It carries frames; a request
// has a number of the sender's choice, its answer has the same, and answers come in any order.
//
//	 0        4                12     13
//	┌────────┬────────────────┬──────┬───────────┐
//	│ length │ number         │ kind │ body …    │   length counts from number on; big-endian
//	└────────┴────────────────┴──────┴───────────┘
type frame struct {
	number uint64
	kind   byte
	body   []byte
}

// Kinds of frame.
const (
	frameProposal  = 1  // an encoded proposal; answered by frameResult
	frameReadIndex = 2  // no body; answered by frameIndex
	frameResult    = 3  // an encoded result
	frameIndex     = 4  // a uvarint
	frameError     = 5  // code byte, text
	frameTerm      = 6  // no body; answered by frameTermIs
	frameTermIs    = 7  // a uvarint
	frameRenew     = 8  // varint, a lease; answered by frameLease
	frameTTL       = 9  // varint, a lease; answered by frameLease
	frameLease     = 10 // varint TTL in seconds, varint nanoseconds left

	frameChange     = 16 // a change of membership, see change.go; answered by frameDone
	frameJoin       = 17 // id, address, name (strings); answered by frameDone
	frameMembership = 18 // id (string); answered by frameDone, or ErrRemoved
	frameStatus     = 19 // no body; answered by frameStatusIs
	frameStatusIs   = 20 // Status in JSON
	frameDone       = 21 // no body
	frameHash       = 22 // varint, a revision; answered by frameHashIs
	frameHashIs     = 23 // the fingerprint, 32 bytes
	frameKnown      = 24 // a list of names, see identity.go; answered by frameKnownIs
	frameKnownIs    = 25 // flags: known
	frameDefragment = 26 // no body; answered by frameDone
	frameLog        = 27 // uvarint, an index; answered by frameLogIs
	frameLogIs      = 28 // LogEntry in JSON, one after the other, from that index on
)

const (
	frameHeaderBytes = 13
	// maxFrameBytes bounds what a member reads for one frame. Answers carry what a transaction's
	// ranges read, so it is a good deal more than MaxProposalBytes.
	maxFrameBytes = 256 << 20
)

func writeFrame(w *bufio.Writer, f frame) error {
	var h [frameHeaderBytes]byte
	binary.BigEndian.PutUint32(h[:], uint32(frameHeaderBytes-4+len(f.body)))
	binary.BigEndian.PutUint64(h[4:], f.number)
	h[12] = f.kind
	_, err := w.Write(h[:])
	_, err2 := w.Write(f.body)
	return errors.Join(err, err2, w.Flush())
}

func readFrame(r *bufio.Reader) (frame, error) {
	var h [frameHeaderBytes]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return frame{}, err
	}
	n := binary.BigEndian.Uint32(h[:])
	if n < frameHeaderBytes-4 || n > maxFrameBytes {
		return frame{}, fmt.Errorf("%w: frame of %d bytes", ErrFormat, n)
	}
	body, err := readBody(r, int(n-(frameHeaderBytes-4)))
	return frame{number: binary.BigEndian.Uint64(h[4:]), kind: h[12], body: body}, err
}

// promptBodyBytes is how much memory the mere announcement of a body gets.
const promptBodyBytes = 64 << 10

// readBody reads a body of n bytes. What is larger gets its memory as the bytes arrive, so that who announces much
// and sends little costs little.
func readBody(r io.Reader, n int) ([]byte, error) {
	if n <= promptBodyBytes {
		body := make([]byte, n)
		_, err := io.ReadFull(r, body)
		return body, err
	}
	var body bytes.Buffer
	body.Grow(promptBodyBytes)
	_, err := io.CopyN(&body, r, int64(n))
	return body.Bytes(), err
}

// errorCodes are the sentinels that keep their identity across members. The place in the list is the
// code on the wire, from 1; 0 is any other error.
var errorCodes = []error{
	ErrUnknownOutcome, ErrNotLeader, ErrNoLeader, ErrTooLarge, ErrClosed, ErrFormat,
	mvcc.ErrCompacted, mvcc.ErrFutureRevision, mvcc.ErrDuplicateKey, mvcc.ErrEmptyKey, mvcc.ErrKeyNotFound,
	mvcc.ErrValueProvided, mvcc.ErrLeaseProvided, mvcc.ErrTooManyOps, mvcc.ErrInvalidOp,
	mvcc.ErrLeaseNotFound, mvcc.ErrLeaseExists, mvcc.ErrLeaseTTL,
	ErrMemberNotFound, ErrMemberExists, ErrAddressTaken, ErrInvalidMember, ErrNotLearner, ErrLearnerNotReady,
	ErrNotEnoughMembers, ErrTransferFailed, ErrBadTransferee, ErrRemoved, ErrNoSpace, ErrNameTaken, ErrStranger,
}

func encodeError(err error) []byte {
	code := 0
	for i, sentinel := range errorCodes {
		if errors.Is(err, sentinel) {
			code = i + 1
			break
		}
	}
	return append([]byte{byte(code)}, err.Error()...)
}

// remoteError is an error that the leader answered.
type remoteError struct {
	sentinel error
	text     string
}

func (e *remoteError) Error() string { return "leader: " + e.text }
func (e *remoteError) Unwrap() error { return e.sentinel }

func decodeError(b []byte) error {
	if len(b) == 0 || int(b[0]) > len(errorCodes) {
		return ErrFormat
	}
	e := &remoteError{text: string(b[1:])}
	if b[0] > 0 {
		e.sentinel = errorCodes[b[0]-1]
	}
	return e
}
