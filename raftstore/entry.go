package raftstore

import (
	"fmt"

	"kontiki/mvcc"
)

// A raft entry carries one or more proposals, in the order in which they are applied. A proposal is a
// command for the mvcc store and who asked for it. docs/formats/raft-entry.md draws the bytes.

// entryVersion is the first byte of every entry. A member that meets a version it does not know stops:
// to skip the entry would be to differ from the others.
const entryVersion = 1

// Kinds of proposal.
const (
	proposalTxn     = 1
	proposalCompact = 2
)

// MaxProposalBytes bounds one encoded proposal: keys, values and who asked.
const MaxProposalBytes = 4 << 20

func encodeProposal(o Origin, c mvcc.Command) ([]byte, error) {
	var e encoder
	if c.Txn != nil {
		e.byte(proposalTxn)
	} else {
		e.byte(proposalCompact)
	}
	e.string(o.User)
	e.string(o.UserAgent)
	e.string(o.RequestID)
	if c.Txn != nil {
		e.txn(c.Txn)
	} else {
		e.varint(c.Compact)
	}
	if len(e.b) > MaxProposalBytes {
		return nil, fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, len(e.b), MaxProposalBytes)
	}
	return e.b, nil
}

func decodeProposal(b []byte) (o Origin, c mvcc.Command, err error) {
	d := decoder{b: b}
	kind := d.byte()
	o = Origin{User: d.string(), UserAgent: d.string(), RequestID: d.string()}
	switch kind {
	case proposalTxn:
		c.Txn = d.txn(1)
	case proposalCompact:
		c.Compact = d.varint()
	default:
		d.fail()
	}
	return o, c, d.end()
}

// encodeEntry packs encoded proposals into an entry.
func encodeEntry(proposals [][]byte) []byte {
	size := 16
	for _, p := range proposals {
		size += len(p) + 5
	}
	e := encoder{b: make([]byte, 0, size)}
	e.byte(entryVersion)
	e.uvarint(uint64(len(proposals)))
	for _, p := range proposals {
		e.bytes(p)
	}
	return e.b
}

// decodeCommands returns the commands of an entry, in order. They point into b.
func decodeCommands(b []byte) ([]mvcc.Command, error) {
	d := decoder{b: b}
	if v := d.byte(); v != entryVersion {
		return nil, fmt.Errorf("%w: entry of version %d, want %d", ErrFormat, v, entryVersion)
	}
	commands := make([]mvcc.Command, d.count())
	for i := range commands {
		_, c, err := decodeProposal(d.bytes())
		if err != nil {
			return nil, fmt.Errorf("proposal %d of an entry: %w", i, err)
		}
		commands[i] = c
	}
	return commands, d.end()
}
