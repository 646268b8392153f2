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
	proposalTxn        = 1
	proposalCompact    = 2
	proposalGrant      = 3
	proposalRevoke     = 4
	proposalCheckpoint = 5
	proposalNote       = 6

	// proposalInTerm is set in the kind of a proposal that counts only in an entry of one term.
	proposalInTerm = 1 << 7
)

// MaxProposalBytes bounds one encoded proposal: keys, values and who asked.
const MaxProposalBytes = 4 << 20

// encodeProposal encodes a proposal that counts in every term.
func encodeProposal(o Origin, c mvcc.Command) ([]byte, error) { return encodeProposalIn(0, o, c) }

// encodeProposalIn encodes one that counts in a term alone.
func encodeProposalIn(term uint64, o Origin, c mvcc.Command) ([]byte, error) {
	var e encoder
	err := e.proposal(term, o, c)
	return e.b, err
}

// proposal encodes a proposal that does nothing unless its entry is of the given term; 0 is any.
// What a leader proposes because of what it remembers (a lease was not renewed) must not be appended
// by a later leader, itself perhaps, after another has led in between.
func (e *encoder) proposal(term uint64, o Origin, c mvcc.Command) error {
	kind := kindOf(c)
	if term != 0 {
		e.byte(kind | proposalInTerm)
		e.uvarint(term)
	} else {
		e.byte(kind)
	}
	e.string(o.User)
	e.string(o.UserAgent)
	e.string(o.RequestID)
	e.command(kind, c)
	if len(e.b) > MaxProposalBytes {
		return fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, len(e.b), MaxProposalBytes)
	}
	return nil
}

func kindOf(c mvcc.Command) byte {
	switch {
	case c.Txn != nil:
		return proposalTxn
	case c.Grant != nil:
		return proposalGrant
	case c.Revoke != 0:
		return proposalRevoke
	case c.Checkpoint != nil:
		return proposalCheckpoint
	case c.Note != nil:
		return proposalNote
	default:
		return proposalCompact
	}
}

// proposed is a decoded proposal.
type proposed struct {
	term    uint64 // 0: any
	origin  Origin
	command mvcc.Command
}

func decodeProposal(b []byte) (Origin, mvcc.Command, error) {
	p, err := decodeProposed(b)
	return p.origin, p.command, err
}

func decodeProposed(b []byte) (p proposed, err error) {
	d := decoder{b: b}
	kind, term := d.proposalKind()
	p.term = term
	p.origin = Origin{User: d.string(), UserAgent: d.string(), RequestID: d.string()}
	p.command = d.command(kind)
	return p, d.end()
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

// entry decodes the beginning of an entry: how many proposals come.
func (d *decoder) entry() (proposals int, err error) {
	if v := d.byte(); v != entryVersion {
		return 0, fmt.Errorf("%w: entry of version %d, want %d", ErrFormat, v, entryVersion)
	}
	return d.count(), nil
}

// decodeEntry returns the proposals of an entry, in order. They point into b.
func decodeEntry(b []byte) ([]proposed, error) {
	d := decoder{b: b}
	n, err := d.entry()
	if err != nil {
		return nil, err
	}
	proposals := make([]proposed, n)
	for i := range proposals {
		p, err := decodeProposed(d.bytes())
		if err != nil {
			return nil, fmt.Errorf("proposal %d of an entry: %w", i, err)
		}
		proposals[i] = p
	}
	return proposals, d.end()
}

// decodeCommands is decodeEntry for the state machine, which asks for less and more often: it returns the commands of an
// entry of a term, in order, without who asked. They point into b. In the place of a proposal for another term is a
// command that does nothing.
func decodeCommands(b []byte, term uint64) ([]mvcc.Command, error) {
	d := decoder{b: b}
	n, err := d.entry()
	if err != nil {
		return nil, err
	}
	commands := make([]mvcc.Command, n)
	allotted := newAllotment(len(commands))
	for i := range commands {
		p := decoder{b: d.bytes(), allotment: allotted}
		if commands[i] = p.commandIn(term); p.end() != nil {
			return nil, fmt.Errorf("proposal %d of an entry: %w", i, ErrFormat)
		}
	}
	return commands, d.end()
}

// commandIn decodes a proposal in an entry of a term, without who asked.
func (d *decoder) commandIn(term uint64) mvcc.Command {
	kind, only := d.proposalKind()
	for range 3 { // who asked
		d.bytes()
	}
	c := d.command(kind)
	if only != 0 && only != term {
		return mvcc.Command{Checkpoint: []mvcc.LeaseCheckpoint{}}
	}
	return c
}

// proposalKind decodes a proposal's kind, and the only term in which it counts, 0 for any.
func (d *decoder) proposalKind() (kind byte, term uint64) {
	kind = d.byte()
	if kind&proposalInTerm != 0 {
		if term = d.uvarint(); term == 0 {
			d.fail()
		}
	}
	return kind &^ proposalInTerm, term
}
