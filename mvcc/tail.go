package mvcc

import "sort"

// tail is the newest stretch of history, in memory and in order: first some records that are in the
// file too, kept because watchers and readers mostly want what is new, then those that are not.
//
//	   start                             durable
//	┌────┴──────────────────────────────────┬───────────────────────┐
//	│ in the file as well, bounded in bytes │ to be committed next  │ ◄─ add
//	└───────────────────────────────────────┴───────────────────────┘
//
// It is guarded by Store.mu. A slice taken from it stays valid without the lock: records do not
// change, add only writes behind the slice's end, and trim copies.
type tail struct {
	records      []*record
	start        int64 // every change at or after this main revision is in records
	durable      int   // records[:durable] are in the file
	bytes        int   // of all records
	durableBytes int   // of records[:durable]
}

func (t *tail) add(r *record) {
	t.records = append(t.records, r)
	t.bytes += r.size()
}

// undurable returns what is not in the file.
func (t *tail) undurable() []*record { return t.records[t.durable:] }

func (t *tail) undurableBytes() int { return t.bytes - t.durableBytes }

// committed notes that the first n undurable records are in the file now, and drops the oldest
// durable ones if they take more than limit bytes, whole transactions at a time.
func (t *tail) committed(n, limit int) {
	for _, r := range t.records[t.durable : t.durable+n] {
		t.durableBytes += r.size()
	}
	t.durable += n
	if t.durableBytes > limit {
		t.trim(limit / 2) // to half, so that the copying below is rare
	}
}

func (t *tail) trim(limit int) {
	n, dropped := 0, 0
	for n < t.durable && t.durableBytes-dropped > limit {
		main := t.records[n].rev.Main
		for n < t.durable && t.records[n].rev.Main == main {
			dropped += t.records[n].size()
			n++
		}
		t.start = main + 1
	}
	t.records = append([]*record(nil), t.records[n:]...)
	t.durable -= n
	t.bytes -= dropped
	t.durableBytes -= dropped
}

// from returns the records of main revision main and later.
func recordsFrom(records []*record, main int64) []*record {
	i := sort.Search(len(records), func(i int) bool { return records[i].rev.Main >= main })
	return records[i:]
}

// findRecord returns the record of a revision, nil if it is not among the records.
func findRecord(records []*record, rev Revision) *record {
	i := sort.Search(len(records), func(i int) bool { return records[i].rev.Compare(rev) >= 0 })
	if i < len(records) && records[i].rev == rev {
		return records[i]
	}
	return nil
}
