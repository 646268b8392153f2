package mvcc

import "bytes"

// Bounds of one look at history by a watcher. A batch may be larger by the rest of its last
// transaction, since transactions are never split.
const (
	batchRecords = 1000    // records looked at
	batchBytes   = 1 << 20 // keys and values delivered
)

// collect gives a watcher what happened since it last looked, or a part of that; more says that there
// is more to look at right away. The batch may be empty; its Revision says how far the watcher has come.
func (s *Store) collect(w *watcher) (batch WatchBatch, more bool) {
	v, newest, err := s.lookFrom(w)
	if err != nil {
		return WatchBatch{Revision: newest.revision, Err: err, CompactRevision: newest.compacted}, false
	}
	defer v.close()
	c := &collector{w: w, v: v, last: w.next - 1, compacted: newest.compacted}
	if err := c.collect(); err != nil {
		return WatchBatch{Revision: c.last, Err: err}, false
	}
	if !c.full { // everything there is was looked at
		c.last = max(c.last, newest.revision)
	}
	w.next, w.behind = c.last+1, c.full
	// A watch that starts in the future has come as far as everybody, no farther.
	return WatchBatch{Revision: min(c.last, newest.revision), Events: c.events}, c.full
}

// lookFrom does the part of collect that needs the lock. It moves the watcher to the first revision
// that it has to look at, and takes a view of history from there.
func (s *Store) lookFrom(w *watcher) (*view, meta, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return nil, s.meta, ErrClosed
	}
	missed := w.missed.Swap(0)
	if !w.behind {
		// It has seen everything up to when it last looked, and nothing before missed concerned it.
		if missed == 0 {
			missed = s.meta.revision + 1
		}
		w.next = max(w.next, missed)
	}
	if w.next < s.meta.compacted || w.next == s.meta.compacted && w.req.PrevKV && !w.req.PartialPrevKV {
		return nil, s.meta, ErrCompacted
	}
	v, err := s.newView(w.next >= s.tail.start && !w.req.PrevKV)
	return v, s.meta, err
}

// collector goes through history, in order, and gathers a batch of events for one watcher.
type collector struct {
	w         *watcher
	v         *view
	events    []Event
	last      int64 // all of this main revision, and everything before, was looked at
	compacted int64 // what a change up to this revision replaced may be gone
	records   int
	bytes     int
	full      bool // there is more, but the batch is large enough
}

func (c *collector) collect() error {
	from := c.w.next
	if from < c.v.tailStart {
		if err := c.collectFile(from); err != nil || c.full {
			return err
		}
		from = c.v.tailStart
	}
	for _, r := range recordsFrom(c.v.tail, from) {
		if c.enough(r.rev) {
			return nil
		}
		if !c.w.wants(r) {
			continue
		}
		if err := c.deliver(r); err != nil {
			return err
		}
	}
	return nil
}

// collectFile goes through what is in the file alone.
func (c *collector) collectFile(from int64) error {
	cursor := c.v.tx.Bucket(historyBucket).Cursor()
	for k, b := cursor.Seek(Revision{Main: from}.bytes()); k != nil; k, b = cursor.Next() {
		rev, err := parseRevision(k)
		if err != nil {
			return err
		}
		if rev.Main >= c.v.tailStart || c.enough(rev) {
			return nil
		}
		r, err := decodeRecord(rev, b)
		if err != nil {
			return err
		}
		if !c.w.wants(&r) {
			continue
		}
		if r, err = decodeRecord(rev, bytes.Clone(b)); err != nil { // b is the file itself
			return err
		}
		if err := c.deliver(&r); err != nil {
			return err
		}
	}
	return nil
}

// enough decides, before each record, whether the batch ends here: only between transactions.
func (c *collector) enough(rev Revision) bool {
	if rev.Main > c.last && (c.records >= batchRecords || c.bytes >= batchBytes) {
		c.full = true
		return true
	}
	c.last = rev.Main
	c.records++
	return false
}

func (c *collector) deliver(r *record) error {
	var prev *KeyValue
	if c.w.req.PrevKV && r.rev.Main > c.compacted {
		var err error
		if prev, err = c.v.previous(r); err != nil {
			return err
		}
	}
	c.bytes += r.size()
	c.events = append(c.events, r.event(prev))
	return nil
}
