package mvcc

import (
	"maps"
	"slices"
	"strings"

	"go.etcd.io/bbolt"
)

// A note is something that whoever runs the store wants every member to know, beside the keys: who the
// members are, which alarms are on. Notes are replicated and in every snapshot, but they have no
// revision, no history and no watchers, no range shows them, and no fingerprint covers them.

// Note sets a note, or with a nil Value removes it.
type Note struct {
	Name  string
	Value []byte
}

// notes are the notes that exist. It is guarded by Store.mu.
type notes struct {
	byName  map[string][]byte
	changed map[string]struct{} // those that the file does not have like this yet
}

func newNotes() *notes {
	return &notes{byName: map[string][]byte{}, changed: map[string]struct{}{}}
}

func (ns *notes) set(n *Note) {
	if n.Value == nil {
		delete(ns.byName, n.Name)
	} else {
		ns.byName[n.Name] = n.Value
	}
	ns.changed[n.Name] = struct{}{}
}

// takeChanged returns the notes that are to be written to the file, and forgets that they are: it is
// for the caller to give them back (giveBack) if that fails.
func (ns *notes) takeChanged() []Note {
	changes := make([]Note, 0, len(ns.changed))
	for name := range ns.changed {
		changes = append(changes, Note{Name: name, Value: ns.byName[name]})
	}
	clear(ns.changed)
	return changes
}

func (ns *notes) giveBack(changes []Note) {
	for _, n := range changes {
		ns.changed[n.Name] = struct{}{}
	}
}

// Notes returns the notes whose names begin with prefix, by name. Their values are shared with the store:
// read them, never write them.
func (s *Store) Notes(prefix string) []Note {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var found []Note
	for _, name := range slices.Sorted(maps.Keys(s.notes.byName)) {
		if strings.HasPrefix(name, prefix) {
			found = append(found, Note{Name: name, Value: s.notes.byName[name]})
		}
	}
	return found
}

// Note returns a note's value, nil if it does not exist.
func (s *Store) Note(name string) []byte {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.notes.byName[name]
}

func (c *content) loadNotes(tx *bbolt.Tx) error {
	return tx.Bucket(notesBucket).ForEach(func(k, v []byte) error {
		c.notes.byName[string(k)] = append([]byte{}, v...) // v is the file itself
		return nil
	})
}

func writeNotes(tx *bbolt.Tx, changes []Note) error {
	b := tx.Bucket(notesBucket)
	for _, n := range changes {
		var err error
		if n.Value == nil {
			err = b.Delete([]byte(n.Name))
		} else {
			err = b.Put([]byte(n.Name), n.Value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
