package watch

import (
	"sort"
	"sync/atomic"
)

// change is what one write did to one object. Changes are shared by all watchers of a cache.
type change struct {
	revision int64
	object   *Object // the new state; nil if the object was deleted
	previous *Object // the state before; nil if the object was created

	last atomic.Pointer[Object] // previous, under this change's revision; nil until asked for
}

// lastState is what a DELETED event shows: the state before the change, with the change's
// resourceVersion, so that a client that restarts its watch from it misses nothing and sees nothing twice.
func (c *change) lastState() *Object {
	if c.last.Load() == nil {
		c.last.CompareAndSwap(nil, c.previous.At(c.revision))
	}
	return c.last.Load()
}

// event is what a watcher with this filter sees of the change: nothing if neither state matches. An
// object that leaves the filter's view is DELETED for the watcher, one that enters it ADDED.
func (c *change) event(filter Filter) (Event, bool, error) {
	before, err := filter.Matches(c.previous)
	if err != nil {
		return Event{}, false, err
	}
	after, err := filter.Matches(c.object)
	if err != nil {
		return Event{}, false, err
	}
	switch {
	case before && after:
		return Event{Type: Modified, Object: c.object, Revision: c.revision}, true, nil
	case after:
		return Event{Type: Added, Object: c.object, Revision: c.revision}, true, nil
	case before:
		return Event{Type: Deleted, Object: c.lastState(), Revision: c.revision}, true, nil
	}
	return Event{}, false, nil
}

// changelog is the recent past of a cache, in order. Each change has a sequence number, which is a
// watcher's position: watchers read the same slice, each at its own pace.
//
//	      floor=40        41 41 44 47
//	                    +--+--+--+--+
//	changes             |  |  |  |  |   end = first+4
//	                    +--+--+--+--+
//	sequence      first=7  8  9  10
//
// Whoever has seen everything up to revision R can go on here if R >= floor. The floor is the
// revision of the last change that was dropped from the front, or the revision the cache was loaded at.
type changelog struct {
	changes []*change
	first   uint64 // sequence number of changes[0]
	floor   int64
}

// end is the sequence number that the next change will get.
func (l *changelog) end() uint64 { return l.first + uint64(len(l.changes)) }

func (l *changelog) append(c *change) { l.changes = append(l.changes, c) }

// after returns the position behind everything up to revision; false if the log does not reach back
// that far.
func (l *changelog) after(revision int64) (uint64, bool) {
	if revision < l.floor {
		return 0, false
	}
	i := sort.Search(len(l.changes), func(i int) bool { return l.changes[i].revision > revision })
	return l.first + uint64(i), true
}

// read returns at most about limit changes from position on, never splitting a revision; false if
// they have been dropped.
func (l *changelog) read(position uint64, limit int) ([]*change, bool) {
	if position < l.first {
		return nil, false
	}
	changes := l.changes[position-l.first:]
	if len(changes) <= limit {
		return changes, true
	}
	n := limit
	for n < len(changes) && changes[n].revision == changes[n-1].revision {
		n++
	}
	return changes[:n], true
}

// trim drops the oldest changes: down to keep if no position below needed is in use, and down to
// most in any case.
func (l *changelog) trim(keep, most int, needed uint64) {
	drop := 0
	if unneeded := int64(needed) - int64(l.first); unneeded > 0 {
		drop = min(len(l.changes)-keep, int(unneeded))
	}
	drop = max(drop, len(l.changes)-most)
	if drop <= 0 {
		return
	}
	l.floor = l.changes[drop-1].revision
	l.first += uint64(drop)
	clear(l.changes[:drop]) // the array lives on; what it points to must not
	l.changes = l.changes[drop:]
}
