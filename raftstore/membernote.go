package raftstore

import (
	"context"
	"slices"
	"strings"

	"kontiki/mvcc"
)

// What members tell each other in notes (mvcc/note.go), because raft's configuration has no place for it. The
// names are those of the constants, each followed by what its comment says.
const (
	memberNotes  = "member/"  // + id: name (string), list of client URLs (string); written by the member itself
	learnerNotes = "learner/" // + id: empty; this learner is to stay one until it is promoted by hand
	alarmNotes   = "alarm/"   // + kind + "/" + id: empty; the alarm is on
)

// clearNotes removes what was noted about a member that is gone.
func (m *Member) clearNotes(ctx context.Context, id string) error {
	for _, n := range m.store.Notes("") {
		if n.Name == memberNotes+id || n.Name == learnerNotes+id || strings.HasPrefix(n.Name, alarmNotes) && strings.HasSuffix(n.Name, "/"+id) {
			if err := m.note(ctx, n.Name, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// note sets a note, unless it is like that already; with a nil value it removes it.
func (m *Member) note(ctx context.Context, name string, value []byte) error {
	if have := m.store.Note(name); string(have) == string(value) && (have == nil) == (value == nil) {
		return nil
	}
	_, err := m.propose(ctx, mvcc.Command{Note: &mvcc.Note{Name: name, Value: value}})
	return err
}

func encodeMemberNote(name string, clientURLs []string) []byte {
	var e encoder
	e.string(name)
	e.strings(clientURLs)
	return e.b
}

// readMemberNote returns what a member has said about itself; nothing if it never started, or has
// nothing to say.
func readMemberNote(store *mvcc.Store, id string) (name string, clientURLs []string) {
	d := decoder{b: store.Note(memberNotes + id)}
	if len(d.b) == 0 {
		return "", nil
	}
	name, clientURLs = d.string(), d.strings()
	if d.end() != nil {
		return "", nil
	}
	return name, slices.Clip(clientURLs)
}

func (e *encoder) strings(list []string) {
	e.uvarint(uint64(len(list)))
	for _, s := range list {
		e.string(s)
	}
}

func (d *decoder) strings() (list []string) {
	for range d.count() {
		list = append(list, d.string())
	}
	return list
}
