package raftstore

import (
	"context"
	"strings"
	"sync/atomic"

	"kontiki/mvcc"
)

// Alarm is something that is wrong with a member, and that all members know of. It stays on until ClearAlarm.
type Alarm struct {
	Kind     string `json:"kind"`
	MemberID string `json:"memberID"`
}

// Kinds of alarm, as in etcd.
const (
	// AlarmNoSpace: the store of the member is larger than its quota, or its disk is nearly full. Nothing is
	// added to the store while it is on.
	AlarmNoSpace = "NOSPACE"
	// AlarmCorrupt: the content of the member differs from that of most others at the same revision.
	AlarmCorrupt = "CORRUPT"
)

// Alarms returns the alarms that this member knows to be on.
func (m *Member) Alarms() (alarms []Alarm) {
	for _, n := range m.store.Notes(alarmNotes) {
		kind, id, _ := strings.Cut(strings.TrimPrefix(n.Name, alarmNotes), "/")
		alarms = append(alarms, Alarm{Kind: kind, MemberID: id})
	}
	return alarms
}

// ClearAlarm ends an alarm, on all members. While its cause lasts it comes back within a second or so.
func (m *Member) ClearAlarm(ctx context.Context, a Alarm) error {
	return m.note(ctx, a.note(), nil)
}

func (m *Member) raise(ctx context.Context, a Alarm) error {
	return m.note(ctx, a.note(), []byte{})
}

func (a Alarm) note() string { return alarmNotes + a.Kind + "/" + a.MemberID }

// checkSpace refuses, on the leader, what would add to the store while there is no space for it.
func (m *Member) checkSpace(c mvcc.Command) error {
	if adds(c) && m.noSpace.isOn() {
		return ErrNoSpace
	}
	return nil
}

// noSpace knows whether a NOSPACE alarm is on, without a look through the notes for every write.
type noSpace struct {
	store *mvcc.Store
	known atomic.Bool // nothing that matters was applied since on was set
	on    atomic.Bool
}

func (n *noSpace) isOn() bool {
	if !n.known.Swap(true) {
		n.on.Store(len(n.store.Notes(alarmNotes+AlarmNoSpace+"/")) > 0)
	}
	return n.on.Load()
}

// applied hears, from the state machine, of a command that was just applied.
func (n *noSpace) applied(c mvcc.Command) {
	if n != nil && c.Note != nil {
		n.known.Store(false)
	}
}

// restored hears that everything may be different.
func (n *noSpace) restored() {
	if n != nil {
		n.known.Store(false)
	}
}

func adds(c mvcc.Command) bool { return c.Grant != nil || c.Txn != nil && puts(c.Txn) }

func puts(t *mvcc.TxnRequest) bool {
	for _, ops := range [][]mvcc.Op{t.Then, t.Else} {
		for _, op := range ops {
			if op.Put != nil || op.Txn != nil && puts(op.Txn) {
				return true
			}
		}
	}
	return false
}
