package raftstore

import "errors"

var (
	// ErrUnknownOutcome: the proposal may or may not be, or become, part of history. Who must know
	// reads the store; who sends the same transaction again needs a compare that makes that harmless.
	ErrUnknownOutcome = errors.New("raftstore: outcome of the proposal is unknown")
	// ErrNoLeader: no leader could be reached for as long as the request waited. Nothing was changed.
	// With members running, it means that they are no quorum, or cannot reach each other.
	ErrNoLeader = errors.New("raftstore: no leader (is a majority of the members up and connected?)")
	// ErrNotLeader: the member that was asked does not lead. Nothing was changed. Member's own methods
	// look for the leader and ask again; they do not return it.
	ErrNotLeader = errors.New("raftstore: not the leader")
	// ErrTooLarge: the proposal is larger than MaxProposalBytes. Nothing was changed.
	ErrTooLarge = errors.New("raftstore: request is too large")
	// ErrClosed: the member was closed. Nothing was changed.
	ErrClosed = errors.New("raftstore: member is closed")
	// ErrFormat: bytes are not what the format says: an entry, a frame or a result cannot be decoded.
	ErrFormat = errors.New("raftstore: malformed bytes")
)
