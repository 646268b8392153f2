package mvcc

import "fmt"

// Command is one change of the store as the raft log carries it. One of its fields is set.
type Command struct {
	Txn        *TxnRequest
	Grant      *LeaseGrant
	Revoke     int64             // a lease
	Checkpoint []LeaseCheckpoint // an empty list that is not nil does nothing
	Note       *Note
	Compact    int64 // compact at this revision, if no other field is set
}

// Result answers a Command. Err means that the command changed nothing; it is the same on every member.
type Result struct {
	Txn TxnResult // for commands that are no transaction only Revision is set
	Err error
}

// Apply applies the commands of the raft entry at index, in order, each atomically. An index that was
// applied before is skipped, with nil results: after a restart raft replays more than is missing.
//
// Apply panics if the file does not hold what it should: going on would make members differ.
func (s *Store) Apply(index uint64, commands ...Command) []Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waitForRoom()
	if s.closed {
		return failAll(commands, ErrClosed)
	}
	if index <= s.meta.applied {
		return nil
	}
	t, before := newWriteTxn(s), s.meta.revision
	results := make([]Result, len(commands))
	for i, c := range commands {
		t.cause, t.allotment.left = Cause{Index: index, Position: i}, len(commands)-i
		results[i] = s.applyOne(t, c)
	}
	s.meta.applied = index
	if s.meta.revision > before {
		s.noteDirty()
	}
	s.waiters.wake(index)
	return results
}

func failAll(commands []Command, err error) []Result {
	results := make([]Result, len(commands))
	for i := range results {
		results[i].Err = err
	}
	return results
}

func (s *Store) applyOne(t *writeTxn, c Command) Result {
	var err error
	switch {
	case c.Txn != nil:
		return t.apply(c.Txn)
	case c.Grant != nil:
		err = s.grant(c.Grant)
	case c.Revoke != 0:
		err = s.revoke(t, c.Revoke)
	case c.Checkpoint != nil:
		s.checkpoint(c.Checkpoint)
	case c.Note != nil:
		s.notes.set(c.Note)
		s.noteDirty()
	default:
		err = s.compact(c.Compact)
	}
	return Result{Txn: TxnResult{Revision: s.meta.revision}, Err: err}
}

func (t *writeTxn) apply(req *TxnRequest) Result {
	if err := req.Validate(); err != nil {
		return Result{Err: err}
	}
	result, err := t.run(req)
	return Result{Txn: result, Err: err}
}

// compact raises the revision below which nothing can be read. The space is freed later (sweep).
func (s *Store) compact(revision int64) error {
	switch {
	case revision <= s.meta.compacted:
		return ErrCompacted
	case revision > s.meta.revision:
		return ErrFutureRevision
	}
	s.meta.compacted = revision
	s.noteDirty()
	kick(s.background.sweep)
	return nil
}

// must is for what cannot fail unless the file or this package is broken.
func must[T any](v T, err error) T {
	if err != nil {
		panic(fmt.Sprintf("mvcc: cannot apply: %v", err))
	}
	return v
}
