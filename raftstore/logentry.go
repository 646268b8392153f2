package raftstore

import (
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"kontiki/mvcc"
)

// LogEntry is an entry of the raft log, for people.
type LogEntry struct {
	Index      uint64        `json:"index"`
	Term       uint64        `json:"term"`
	Kind       string        `json:"kind"` // command, noop, barrier or configuration
	AppendedAt time.Time     `json:"appendedAt"`
	Bytes      int           `json:"bytes"`
	Committed  bool          `json:"committed"`
	Proposals  []LogProposal `json:"proposals,omitempty"`
	Members    []MemberInfo  `json:"members,omitempty"` // of a configuration
}

// LogProposal is one of an entry's proposals. An operation is written as its kind and its key, in
// double quotes if that is not printable, and a range of keys as [key, end).
type LogProposal struct {
	Kind     string   `json:"kind"` // txn, compact, lease-grant, lease-revoke, lease-checkpoint or note
	Origin            // who asked
	Compares []string `json:"compares,omitempty"`
	Then     []string `json:"then,omitempty"` // of all kinds but txn: what is done
	Else     []string `json:"else,omitempty"`
	// Revision is what came of it; 0 if nothing was written, or it was not applied, or is compacted.
	Revision int64 `json:"revision,omitempty"`
}

func (p *LogProposal) describe(c mvcc.Command) {
	does := func(kind, format string, args ...any) {
		p.Kind, p.Then = kind, append(p.Then, fmt.Sprintf(format, args...))
	}
	switch {
	case c.Txn != nil:
		p.Kind = "txn"
		for _, compare := range c.Txn.Compare {
			p.Compares = append(p.Compares, describeCompare(compare))
		}
		p.Then, p.Else = describeOps(c.Txn.Then), describeOps(c.Txn.Else)
	case c.Grant != nil:
		does("lease-grant", "lease %x for %d s", c.Grant.ID, c.Grant.TTLSeconds)
	case c.Revoke != 0:
		does("lease-revoke", "lease %x", c.Revoke)
	case c.Checkpoint != nil:
		p.Kind = "lease-checkpoint"
		for _, x := range c.Checkpoint {
			does("lease-checkpoint", "lease %x has %d ms", x.ID, x.RemainingMillis)
		}
	case c.Note != nil && c.Note.Value == nil:
		does("note", "remove %s", c.Note.Name)
	case c.Note != nil:
		does("note", "set %s", c.Note.Name)
	default:
		does("compact", "revision %d", c.Compact)
	}
}

func describeCompare(c mvcc.Compare) string {
	target := []string{"version", "create", "mod", "lease", "value"}
	relation := []string{"=", ">", "<", "!="}
	if int(c.Target) >= len(target) || int(c.Result) >= len(relation) {
		return "invalid"
	}
	operand := strconv.FormatInt(c.Number, 10)
	if c.Target == mvcc.CompareValue {
		operand = fmt.Sprintf("%d bytes", len(c.Value))
	}
	return fmt.Sprintf("%s(%s) %s %s", target[c.Target], describeRange(c.Key, c.End), relation[c.Result], operand)
}

func describeOps(ops []mvcc.Op) (list []string) {
	for _, op := range ops {
		switch {
		case op.Range != nil:
			list = append(list, "range "+describeRange(op.Range.Key, op.Range.End))
		case op.Put != nil:
			list = append(list, fmt.Sprintf("put %s (%d bytes)", printable(op.Put.Key), len(op.Put.Value)))
		case op.Delete != nil:
			list = append(list, "delete "+describeRange(op.Delete.Key, op.Delete.End))
		case op.Txn != nil:
			list = append(list, fmt.Sprintf("txn if %d compares then %q else %q", len(op.Txn.Compare), describeOps(op.Txn.Then), describeOps(op.Txn.Else)))
		}
	}
	return list
}

func describeRange(key, end []byte) string {
	switch {
	case len(end) == 0:
		return printable(key)
	case len(end) == 1 && end[0] == 0:
		return "[" + printable(key) + ", ∞)"
	default:
		return "[" + printable(key) + ", " + printable(end) + ")"
	}
}

// printable is a key as people can read it: in double quotes, with escapes, if it is not text.
func printable(key []byte) string {
	quoted := strconv.Quote(string(key))
	if utf8.Valid(key) && quoted[1:len(quoted)-1] == string(key) {
		return string(key)
	}
	return quoted
}
